#!/bin/sh
# tightness.sh VERIFY.csv OUT_DIR: OUT_DIR/proofs-tightness.svg, how near to the proved bound inputs come.
set -eu
plots=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk -v dir="$work" -f "$plots/csv.awk" -f "$plots/figure_parts.awk" -f "$plots/tightness.awk" "$1"
sh "$plots/draw.sh" "$work" "$work/drawn"
cp "$work/drawn/proofs-tightness.svg" "$2/"
[ -z "${PNG:-}" ] || cp "$work/drawn/proofs-tightness.png" "$2/"
