#!/bin/sh
# counters_ncu.sh PROGRAM PAGE MEASURED [--check]: writes what the emulator counts, beside what Nsight Compute counted on a
# GPU, into PAGE between the lines <!-- ncu: begin --> and <!-- ncu: end -->. MEASURED is the folder of that GPU's results:
# ncu.csv names the cases; the multiprocessors are those of bench.csv, the splits must be those of verify.csv. --check as
# in counters.sh.
set -eu
program=$1 page=$2 measured=$3 mode=${4:-}
plots=$(cd "$(dirname "$0")" && pwd)

fail() {
    echo "counters_ncu: $*" >&2
    exit 2
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
grep -q '^<!-- ncu: begin -->$' "$page" || fail "$page has no line <!-- ncu: begin -->"
sms=$(sed -n 's/^# processor: .*, \([0-9]*\) SMs,.*/\1/p' "$measured/bench.csv" | head -n 1)
[ -n "$sms" ] || fail "$measured/bench.csv does not say how many SMs the processor has"
grep -v '^#' "$measured/ncu.csv" | sed 1d | cut -d, -f1 | uniq > "$work/cases"
n=0
while read -r case; do
    n=$((n + 1))
    "$program" emulate --case "$case" --padded --sms "$sms" --csv "$work/emulated-$n.csv" > "$work/said" ||
        { cat "$work/said"; fail "the CUDA rungs do not run without a fault on $case"; }
done < "$work/cases"
awk -v sms="$sms" -f "$plots/csv.awk" -f "$plots/counters_ncu.awk" "$measured/verify.csv" "$measured/ncu.csv" \
    "$work"/emulated-*.csv > "$work/block"
awk -v block="$work/block" '
    /^<!-- ncu: end -->$/ { inside = 0 }
    !inside { print }
    /^<!-- ncu: begin -->$/ {
        inside = 1
        while ((getline line < block) > 0)
            print line
    }
    END { if (inside) { print FILENAME ": the block of counters has no end" > "/dev/stderr"; exit 2 } }
' "$page" > "$work/page"

if cmp -s "$work/page" "$page"; then
    [ "$mode" = --check ] || echo "counters_ncu: nothing to change"
elif [ "$mode" != --check ]; then
    cp "$work/page" "$page"
    echo "counters_ncu: $page"
else
    compiler=$(sed -n 's/^# compiler: //p' "$work/emulated-1.csv")
    if ! grep -qF "Emulated with $compiler" "$page"; then
        echo "counters_ncu: not compared: the page was counted with another compiler than $compiler"
        exit 0
    fi
    diff "$page" "$work/page" || true
    echo "counters_ncu: $page is out of date; if that is meant: make counters"
    exit 1
fi
