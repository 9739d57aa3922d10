#!/bin/sh
# report_text.sh [RESULTS_DIR]: the ladder and its figures for a terminal of 80 columns.
set -eu
results=${1:-build/report}
plots=$(cd "$(dirname "$0")" && pwd)

fail() {
    echo "report_text: $*" >&2
    exit 2
}

command -v gnuplot > /dev/null || fail "gnuplot is not installed; make setup installs it (Debian: gnuplot-nox)"
for f in ladder.csv verify.csv; do
    [ -f "$results/$f" ] || fail "$results/$f is missing; make report writes it"
done
set -- "$results/ladder.csv" "$results/verify.csv"
for f in bench.csv splits.csv decode.csv mutants.csv; do
    [ ! -f "$results/$f" ] || set -- "$@" "$results/$f"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk -f "$plots/csv.awk" -f "$plots/results.awk" -f "$plots/text.awk" "$@"
awk -v dir="$work" -f "$plots/csv.awk" -f "$plots/results.awk" -f "$plots/figure_parts.awk" \
    -f "$plots/figures.awk" -f "$plots/figures_ladder.awk" -f "$plots/figures_splits.awk" "$@"
for figure in ladder-error ladder-floor ladder-decode; do
    echo
    if [ ! -f "$work/$figure.set" ]; then
        echo "$figure: no rows to draw it from; make report writes them"
        continue
    fi
    sed -n 1p "$work/$figure.alt" | fold -s -w 79
    echo "Each rung is its number; where rungs agree, the later hides the earlier."
    gnuplot -e "base='$work/$figure'" "$plots/text.gp"
done
