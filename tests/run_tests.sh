#!/bin/sh
# run_tests.sh BUILD SIZE: unit tests, the CPU rungs against the oracle, the mutants; beside them, on a core of their own, the
# CUDA rungs on the emulator and the relations. Closes with one line of counts over all. Exit code: 1 if anything failed, 2 if
# something could not be run, else 0.
set -u
build=$1 size=$2
out=$build/tests
mkdir -p "$out" || exit 2
passed=0 failed=0 skipped=0 worst=0
FD_LIBM_CACHE=${FD_LIBM_CACHE:-$build/libm_error.csv}
export FD_LIBM_CACHE

# Adds the counts of a part and remembers the worst exit code: a failure (1) wins over bad input (2).
count() { # name, exit code, passed, failed, skipped
    passed=$((passed + ${3:-0})) failed=$((failed + ${4:-0})) skipped=$((skipped + ${5:-0}))
    if [ "$2" -ne 0 ]; then
        if [ "$2" -eq 1 ] || [ "${4:-0}" -gt 0 ]; then worst=1; elif [ "$worst" -eq 0 ]; then worst=2; fi
        [ "${4:-0}" -gt 0 ] || { failed=$((failed + 1)); echo "$1: ended with exit code $2"; }
    fi
}

# "a passed, b failed, c skipped" of a part's last line, as three words.
last_counts() { sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped.*/\1 \2 \3/p' "$1" | tail -n 1; }

echo "== expf and logf of this machine"
"$build/flashdecode" exp --if-needed >"$out/exp.txt"
code=$?
tail -n 4 "$out/exp.txt"
[ $code -eq 0 ] || count exp $code 0 0 0

# The emulator runs on one core, so it has one to itself while the rest goes on.
export OMP_WAIT_POLICY=passive
{
    "$build/flashdecode" verify --where emu --size "$size" >"$out/emulator.txt"
    echo $? >"$out/emulator.code"
    "$build/flashdecode" relations >"$out/relations.txt"
    echo $? >"$out/relations.code"
} &

echo "== unit tests"
"$build/suite" --timeout 300 >"$out/suite.txt" 2>&1
code=$?
grep -E '^\[(FAIL|CRSH|----|SKIP)\]|Synthesis' "$out/suite.txt" | tail -n 60
synthesis() { sed -n "s/.*$1: *\([0-9]*\).*/\1/p" "$out/suite.txt" | tail -n 1; }
passing=$(synthesis Passing) failing=$(synthesis Failing) crashing=$(synthesis Crashing)
count "unit tests" $code "${passing:-0}" $((${failing:-0} + ${crashing:-0})) 0

# The fast oracle judges; the plain one checks it on a row of each case, tomorrow on another, and on every row of larger sizes.
day=$(date +%j | sed 's/^0*//')
for part in oracle verify mutants; do
    echo "== $part"
    case $part in
    oracle) if [ "$size" = small ]; then set -- oracle --compare --rows 1 --turn "$day"; else set -- oracle --compare --size "$size"; fi ;;
    verify) set -- verify --where cpu --size "$size" ;;
    *) set -- $part ;;
    esac
    "$build/flashdecode" "$@" >"$out/$part.txt"
    code=$?
    cat "$out/$part.txt"
    # shellcheck disable=SC2046
    count $part $code $(last_counts "$out/$part.txt")
done

wait
for part in emulator relations; do
    echo "== $part"
    cat "$out/$part.txt"
    # shellcheck disable=SC2046
    count $part "$(cat "$out/$part.code")" $(last_counts "$out/$part.txt")
done

echo "== all"
echo "$passed passed, $failed failed, $skipped skipped"
exit $worst
