#!/bin/sh
# adapters.sh FILE.md [--check]: the verdicts on other people's attention that data/measured keeps, between the lines
# <!-- adapters: begin --> and <!-- adapters: end --> of FILE.md. --check: exit code 1 if something would change.
# adapters.sh --html: the same table for the report, on standard output.
set -eu
page=$1 mode=${2:-}
plots=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
set --
for f in "$plots"/../data/measured/*/adapter-*.csv; do
    set -- "$@" "$f"
done
if [ "$page" = --html ]; then
    awk -v format=html -f "$plots/csv.awk" -f "$plots/html.awk" -f "$plots/adapters.awk" "$@"
    exit
fi
grep -q '^<!-- adapters: begin -->$' "$page" || { echo "adapters.sh: $page has no line <!-- adapters: begin -->" >&2; exit 2; }
awk -f "$plots/csv.awk" -f "$plots/html.awk" -f "$plots/adapters.awk" "$@" > "$work/block"
sed -e '/^<!-- adapters: begin/,/^<!-- adapters: end/{/^<!-- adapters/!d}' -e "/^<!-- adapters: begin/r $work/block" "$page" > "$work/page"
cmp -s "$work/page" "$page" && exit 0
if [ "$mode" = --check ]; then
    diff "$page" "$work/page" || true
    echo "adapters.sh: $page is out of date; sh plots/adapters.sh $page"
    exit 1
fi
cp "$work/page" "$page"
echo "adapters.sh: $page"
