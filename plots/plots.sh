#!/bin/sh
# plots.sh [RESULTS_DIR [OUT_DIR]]: draws every figure as SVG and PNG from ladder.csv, verify.csv,
# bench.csv, splits.csv and decode.csv, and
# those of the results recorded on a GPU.
set -eu
results=${1:-build/report}
out=${2:-$results}
plots=$(cd "$(dirname "$0")" && pwd)

fail() {
    echo "plots: $*" >&2
    exit 2
}

for f in ladder.csv verify.csv; do
    [ -f "$results/$f" ] || fail "$results/$f is missing; make report writes it"
done
set -- "$results/ladder.csv" "$results/verify.csv"
for f in bench.csv splits.csv decode.csv; do
    [ ! -f "$results/$f" ] || set -- "$@" "$results/$f"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk -v dir="$work" -f "$plots/csv.awk" -f "$plots/results.awk" -f "$plots/figure_parts.awk" \
    -f "$plots/figures.awk" -f "$plots/figures_ladder.awk" -f "$plots/figures_splits.awk" "$@"

# Figures of an earlier run must not survive in a page about this one.
mkdir -p "$out"
for f in "$out"/[0-9][0-9]-*.svg "$out"/[0-9][0-9]-*.png "$out"/ladder-*.svg "$out"/ladder-*.png "$out"/gpu-*.svg \
    "$out"/gpu-*.png; do
    rm -f "$f"
done
sh "$plots/draw.sh" "$work" "$out"
sh "$plots/gpu.sh" figures "$out"
