#!/bin/sh
# run_tests.sh BUILD SIZE: unit tests, the CPU rungs against the oracle, the mutants, the CUDA rungs on the emulator, and the
# relations, one part more at a time than there are processors. Closes with one line of counts over all. Exit code: 1 if
# anything failed, 2 if something could not be run, else 0.
set -u
if [ "$1" = --part ]; then
    part=$2
else
    build=$1 size=$2 part=
fi
out=$build/tests
FD_LIBM_CACHE=${FD_LIBM_CACHE:-$build/libm_error.csv}
OMP_WAIT_POLICY=passive # whoever waits leaves the processor to another part
export build size FD_LIBM_CACHE OMP_WAIT_POLICY

# Every other rung that runs on the emulator, from the first or from the second on: two parts of about the same length.
emulated() {
    for file in cuda/[0-9][0-9]_*.cu; do basename "$file"; done | awk -F_ -v share="$1" 'NR % 2 == share { print "--rung", $1 }'
}

# ---- one part, called by xargs

run_part() {
    case $part in
    unit-tests) "$build/suite" --timeout 300 -j1 ;;
    # The fast oracle judges; the plain one checks it on a row of each case, tomorrow on another, and on every row of larger
    # sizes.
    oracle)
        day=$(date +%j | sed 's/^0*//')
        if [ "$size" = small ]; then set -- --rows 1 --turn "$day"; else set -- --size "$size"; fi
        "$build/flashdecode" oracle --compare "$@"
        ;;
    verify) "$build/flashdecode" verify --where cpu --size "$size" ;;
    mutants) "$build/flashdecode" mutants ;;
    emulator-*)
        # shellcheck disable=SC2046
        "$build/flashdecode" verify $(emulated "${part#emulator-}") --size "$size"
        ;;
    relations) "$build/flashdecode" relations ;;
    esac
}

if [ -n "$part" ]; then
    start=$(date +%s)
    run_part >"$out/$part.txt" 2>"$out/$part.err"
    echo $? >"$out/$part.code"
    echo "   $part: $(($(date +%s) - start)) s"
    exit 0
fi

# ---- all of them

mkdir -p "$out" || exit 2
passed=0 failed=0 skipped=0 worst=0

# Adds the counts of a part and remembers the worst exit code: a failure (1) wins over bad input (2).
count() { # name, exit code, passed, failed, skipped
    passed=$((passed + ${3:-0})) failed=$((failed + ${4:-0})) skipped=$((skipped + ${5:-0}))
    if [ "$2" -ne 0 ]; then
        if [ "$2" -eq 1 ] || [ "${4:-0}" -gt 0 ]; then worst=1; elif [ "$worst" -eq 0 ]; then worst=2; fi
        [ "${4:-0}" -gt 0 ] || { failed=$((failed + 1)); echo "$1: ended with exit code $2"; }
    fi
}

# "a passed, b failed, c skipped" of a part's last line, as three words; of the unit tests Criterion's own.
counts() {
    if [ "$1" = unit-tests ]; then
        sed -n 's/.*Passing: *\([0-9]*\).*Failing: *\([0-9]*\).*Crashing: *\([0-9]*\).*/\1 \2 \3/p' "$out/$1.err" "$out/$1.txt" |
            tail -n 1 | { read -r p f c && echo "$p $((f + c)) 0"; }
    else
        sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped.*/\1 \2 \3/p' "$out/$1.txt" | tail -n 1
    fi
}

show() {
    if [ "$1" = unit-tests ]; then
        cat "$out/$1.txt" "$out/$1.err" | grep -E '^\[(FAIL|CRSH|----|SKIP)\]|Synthesis' | tail -n 60
    else
        cat "$out/$1.err" "$out/$1.txt"
    fi
}

echo "== expf and logf of this machine"
"$build/flashdecode" exp --if-needed >"$out/exp.txt"
code=$?
tail -n 4 "$out/exp.txt"
[ $code -eq 0 ] || count exp $code 0 0 0

parts="unit-tests emulator-0 emulator-1 verify mutants relations oracle" # the longest first
for part in $parts; do echo 2 >"$out/$part.code"; done # until it has ended
at_a_time=$(($(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 1)) # some tests of time limits sleep
echo "== $(echo "$parts" | wc -w) parts, $at_a_time at a time"
echo "$parts" | tr ' ' '\n' | xargs -n 1 -P "$at_a_time" sh tests/run_tests.sh --part
for part in $parts; do
    echo "== $part"
    show "$part"
    # shellcheck disable=SC2046
    count "$part" "$(cat "$out/$part.code")" $(counts "$part")
done

echo "== all"
echo "$passed passed, $failed failed, $skipped skipped"
exit $worst
