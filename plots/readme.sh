#!/bin/sh
# readme.sh RESULTS_DIR FILE.md: writes the measured ladder between the two marker lines of FILE.md,
#   <!-- ladder: begin -->  and  <!-- ladder: end -->
# likewise the kill table between those of killtable; the errors of CUDA rungs into the pages of tutorials/, between
#   <!-- errors: begin, rungs 21,22 -->  and  <!-- errors: end -->
# error against num_splits likewise, between those of splits,
# and what gpu.sh says of the results recorded on a GPU.
# It keeps what it was written from: the results in data/measured/MACHINE_ID, the figures in tutorials/figures.
set -eu
results=${1:-build/report}
readme=${2:-README.md}
plots=$(cd "$(dirname "$0")" && pwd)

fail() {
    echo "readme: $*" >&2
    exit 2
}

for f in "$results/ladder.csv" "$results/verify.csv" "$results/killtable.csv"; do
    [ -f "$f" ] || fail "$f is missing; make report writes it"
done
for mark in "ladder: begin" "ladder: end" "killtable: begin" "killtable: end"; do
    grep -qx "<!-- $mark -->" "$readme" || fail "$readme has no line <!-- $mark -->"
done
set -- "$results/ladder.csv" "$results/verify.csv"
for f in bench.csv splits.csv decode.csv mutants.csv; do
    [ ! -f "$results/$f" ] || set -- "$@" "$results/$f"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk -f "$plots/csv.awk" -f "$plots/results.awk" -f "$plots/readme.awk" "$@" > "$work/ladder"
awk -v format=markdown -f "$plots/csv.awk" -f "$plots/killtable.awk" "$results/killtable.csv" > "$work/killtable"
awk -v folder="$work" '
    $0 ~ /^<!-- (ladder|killtable): end -->$/ { inside = 0 }
    !inside { print }
    $0 ~ /^<!-- (ladder|killtable): begin -->$/ {
        inside = 1
        table = folder "/" substr($2, 1, length($2) - 1)
        while ((getline line < table) > 0)
            print line
    }
' "$readme" > "$work/readme"
cp "$work/readme" "$readme"

top=$(dirname "$readme")
for page in "$top"/tutorials/*.md; do
    rungs=$(sed -n 's/^<!-- errors: begin, rungs \([0-9,]*\) -->$/\1/p' "$page")
    [ -n "$rungs" ] || continue
    awk -v page="$rungs" -f "$plots/csv.awk" -f "$plots/results.awk" -f "$plots/rung_errors.awk" \
        "$results/ladder.csv" "$results/verify.csv" > "$work/errors"
    sed -e '/^<!-- errors: begin/,/^<!-- errors: end/{/^<!-- errors/!d}' -e "/^<!-- errors: begin/r $work/errors" \
        "$page" > "$work/page"
    cp "$work/page" "$page"
done
# splits_into PAGE: the table of error against num_splits, between its marker lines.
splits_into() {
    rungs=$(sed -n 's/^<!-- splits: begin, rungs \([0-9,]*\) -->$/\1/p' "$1")
    [ -n "$rungs" ] && [ -f "$results/splits.csv" ] || return 0
    awk -v page="$rungs" -f "$plots/csv.awk" -f "$plots/results.awk" -f "$plots/splits_table.awk" \
        "$results/ladder.csv" "$results/splits.csv" > "$work/splits"
    sed -e '/^<!-- splits: begin/,/^<!-- splits: end/{/^<!-- splits/!d}' -e "/^<!-- splits: begin/r $work/splits" \
        "$1" > "$work/page"
    cp "$work/page" "$1"
}
for page in "$top"/tutorials/*.md; do
    splits_into "$page"
done
id=$(sed -n 's/^# machine_id: *//p' "$results/verify.csv")
mkdir -p "$top/data/measured/$id" "$top/tutorials/figures"
cp "$@" "$results/killtable.csv" "$top/data/measured/$id/"
for figure in "$results"/*.svg; do # those that a page shows
    ! grep -qF "figures/$(basename "$figure")" "$readme" "$top"/tutorials/*.md || cp "$figure" "$top/tutorials/figures/"
done
sh "$plots/tightness.sh" "$top/data/measured/$id/verify.csv" "$top/tutorials/figures"
sh "$plots/gpu.sh" pages "$readme"
for figure in "$top"/tutorials/figures/*.svg; do # those that none shows any more
    grep -qF "figures/$(basename "$figure")" "$readme" "$top"/tutorials/*.md "$top"/proofs/README.md || rm "$figure"
done
echo "readme: $readme, data/measured/$id, tutorials/figures"
