#!/bin/sh
# readme.sh RESULTS_DIR FILE.md: writes the measured ladder between the two marker lines of FILE.md,
#   <!-- ladder: begin -->  and  <!-- ladder: end -->
# and keeps what it was written from: the results in data/measured/MACHINE_ID, the figures in tutorials/figures.
set -eu
results=${1:-build/report}
readme=${2:-README.md}
plots=$(cd "$(dirname "$0")" && pwd)

fail() {
    echo "readme: $*" >&2
    exit 2
}

for f in "$results/ladder.csv" "$results/verify.csv"; do
    [ -f "$f" ] || fail "$f is missing; make report writes it"
done
for mark in begin end; do
    grep -qx "<!-- ladder: $mark -->" "$readme" || fail "$readme has no line <!-- ladder: $mark -->"
done
set -- "$results/ladder.csv" "$results/verify.csv"
for f in bench.csv mutants.csv; do
    [ ! -f "$results/$f" ] || set -- "$@" "$results/$f"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk -f "$plots/csv.awk" -f "$plots/results.awk" -f "$plots/readme.awk" "$@" > "$work/table"
awk -v table="$work/table" '
    $0 == "<!-- ladder: end -->" { inside = 0 }
    !inside { print }
    $0 == "<!-- ladder: begin -->" { inside = 1; while ((getline line < table) > 0) print line }
' "$readme" > "$work/readme"
cp "$work/readme" "$readme"

top=$(dirname "$readme")
id=$(sed -n 's/^# machine_id: *//p' "$results/verify.csv")
mkdir -p "$top/data/measured/$id" "$top/tutorials/figures"
cp "$@" "$top/data/measured/$id/"
cp "$results"/*.svg "$top/tutorials/figures/"
echo "readme: $readme, data/measured/$id, tutorials/figures"
