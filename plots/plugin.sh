#!/bin/sh
# plugin.sh FILE.md [--check]: what `check` says of plug-ins on a GPU (data/measured/h200/plugin.csv, written by
# cuda/gpu/plugin.sh), between the lines <!-- plugin: begin --> and <!-- plugin: end --> of FILE.md. --check: exit code
# 1 if something would change.
set -eu
page=$1 mode=${2:-}
plots=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
grep -q '^<!-- plugin: begin -->$' "$page" || { echo "plugin.sh: $page has no line <!-- plugin: begin -->" >&2; exit 2; }
awk -f "$plots/csv.awk" -f "$plots/plugin.awk" "$plots/../data/measured/h200/plugin.csv" > "$work/block"
sed -e '/^<!-- plugin: begin/,/^<!-- plugin: end/{/^<!-- plugin/!d}' -e "/^<!-- plugin: begin/r $work/block" "$page" > "$work/page"
cmp -s "$work/page" "$page" && exit 0
if [ "$mode" = --check ]; then
    diff "$page" "$work/page" || true
    echo "plugin.sh: $page is out of date; sh plots/plugin.sh $page"
    exit 1
fi
cp "$work/page" "$page"
echo "plugin.sh: $page"
