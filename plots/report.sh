#!/bin/sh
# report.sh [RESULTS_DIR [OUT.html]]: one page, without network or scripts, from the CSV files and figures there.
set -eu
results=${1:-build/report}
out=${2:-$results/index.html}
plots=$(cd "$(dirname "$0")" && pwd -P)
root=$(dirname "$plots")

fail() {
    echo "report: $*" >&2
    exit 2
}

for f in ladder.csv verify.csv; do
    [ -f "$results/$f" ] || fail "$results/$f is missing; make report writes it"
done
set -- "$results/ladder.csv" "$results/verify.csv"
for f in bench.csv splits.csv decode.csv mutants.csv; do
    [ ! -f "$results/$f" ] || set -- "$@" "$results/$f"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Links to tutorials and sources, by the way from the page up to the root; none when the page lies elsewhere.
mkdir -p "$(dirname "$out")"
folder=$(cd "$(dirname "$out")" && pwd -P)
echo rung,tutorial,source > "$work/links.csv"
case $folder/ in
"$root"/*)
    up=$(printf '%s' "${folder#"$root"}" | sed 's|/[^/]*|../|g')
    cd "$root"
    for f in tutorials/[0-9][0-9]-*.md reference/[0-9][0-9]_*.c cuda/[0-9][0-9]_*.cu; do
        [ -f "$f" ] || continue
        number=$(basename "$f" | cut -c1-2)
        case $f in
        *.md) echo "$number,$up$f," ;;
        *) echo "$number,,$up$f" ;;
        esac
    done >> "$work/links.csv"
    cd "$OLDPWD"
    ;;
esac

if [ -f "$results/killtable.csv" ]; then
    awk -v format=html -f "$plots/csv.awk" -f "$plots/killtable.awk" "$results/killtable.csv" > "$work/killtable.html"
fi
sh "$plots/gpu.sh" section "$results" > "$work/gpu.html"
sh "$plots/adapters.sh" --html > "$work/adapters.html"
awk -v plots="$plots" -v results="$results" -v killtable="$work/killtable.html" -v gpu="$work/gpu.html" \
    -v adapters="$work/adapters.html" \
    -f "$plots/csv.awk" -f "$plots/results.awk" -f "$plots/html.awk" -f "$plots/report.awk" "$@" "$work/links.csv" \
    > "$work/page"
cp "$work/page" "$out.tmp" 2> "$work/why" && mv "$out.tmp" "$out" || {
    rm -f "$out.tmp"
    fail "cannot write $out: $(sed 's/.*: //' "$work/why")"
}
echo "report: $out"
