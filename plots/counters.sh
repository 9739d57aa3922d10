#!/bin/sh
# counters.sh PROGRAM FOLDER [--check]: writes what the emulator counts into the pages FOLDER/*.md, between lines like
#   <!-- counters: begin, rungs 22,23, hhh -->  and  <!-- counters: end -->
# With --check no page is written; the exit code is 1 if one would change. The same compiler gives the same counts on every
# machine; another one may merge or repeat accesses, so with another one --check compares nothing and says so.
set -eu
program=$1 folder=$2 mode=${3:-}
plots=$(cd "$(dirname "$0")" && pwd)
shape="--heads 4:1 --head-dim 128 --kv-len 2048"
begin='^<!-- counters: begin, rungs \([0-9,]*\), \([fhb]*\) -->$'

fail() {
    echo "counters: $*" >&2
    exit 2
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed -n "s/$begin/\2 \1/p" "$folder"/*.md | sort -u > "$work/blocks"
[ -s "$work/blocks" ] || fail "no page of $folder has a line <!-- counters: begin, rungs N,N, hhh -->"
for types in $(cut -d' ' -f1 "$work/blocks" | sort -u); do
    rungs=$(sed -n "s/^$types //p" "$work/blocks" | tr ',\n' '\n\n' | sort -un | paste -sd, -)
    # shellcheck disable=SC2086
    "$program" emulate --rung "$rungs" $shape --dtype "$types" --csv "$work/$types.csv" > "$work/$types.txt" ||
        { cat "$work/$types.txt"; fail "the rungs $rungs do not run without a fault"; }
done
while read -r types rungs; do
    awk -v rungs="$rungs" -v command="build/flashdecode emulate --rung $rungs $shape --dtype $types" \
        -f "$plots/csv.awk" -f "$plots/counters.awk" "$work/$types.csv" > "$work/$types-$rungs"
done < "$work/blocks"

changed=""
for page in "$folder"/*.md; do
    awk -v folder="$work" '
        /^<!-- counters: end -->$/ { inside = 0 }
        !inside { print }
        /^<!-- counters: begin, rungs [0-9,]*, [fhb]* -->$/ {
            inside = 1
            rungs = $5
            sub(/,$/, "", rungs)
            table = folder "/" $6 "-" rungs
            while ((getline line < table) > 0)
                print line
            close(table)
        }
        END { if (inside) { print FILENAME ": a block of counters has no end" > "/dev/stderr"; exit 2 } }
    ' "$page" > "$work/page"
    cmp -s "$work/page" "$page" && continue
    changed="$changed $page"
    if [ "$mode" != --check ]; then
        cp "$work/page" "$page"
    else
        diff "$page" "$work/page" > "$work/diff" || true
        sed "s,^,$page: ," "$work/diff"
    fi
done
if [ "$mode" != --check ]; then
    echo "counters:${changed:- nothing to change}"
elif [ -n "$changed" ]; then
    compiler=$(sed -n 's/^# compiler: //p' "$work"/*.csv | head -n 1)
    if ! grep -qF "Counted with $compiler." "$folder"/*.md; then
        echo "counters: not compared: the pages were counted with another compiler than $compiler"
        exit 0
    fi
    echo "counters: out of date:$changed; if that is meant: make counters"
    exit 1
fi
