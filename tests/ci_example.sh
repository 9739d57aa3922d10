#!/bin/sh
# ci_example.sh PROGRAM: what tutorials/ci.md promises to somebody else's CI, without a network where this machine lets us: a
# right plug-in passes; a wrong one fails; against a baseline of its own failures it passes, and something worse or slower fails;
# bad input ends with 2. JUnit is read by a parser that is not ours. Exit code: 0, 1.
set -u
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
top=$(pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
offline=
unshare -rn true 2>/dev/null && offline="unshare -rn"
mkdir "$work/bin" && ln -s "$program" "$work/bin/flashdecode"
export PATH="$work/bin:$PATH" FD_DATA="$top/data"
FD_LIBM_CACHE=${FD_LIBM_CACHE:-$(dirname "$program")/libm_error.csv}
export FD_LIBM_CACHE
cd "$work" || exit 2

fail() {
    echo "ci_example.sh: $*"
    cat "$work/said.txt"
    exit 1
}
plugin() { # NAME [sed script]: the example, changed
    sed "${2:-}" "$top/tutorials/plugin/sdpa.c" >"$1.c" &&
        gcc -O2 -shared -fPIC -I "$top/reference" "$1.c" -o "$1.so" -lm || exit 2
}
judge() { # CODE WHAT TARGET
    $offline sh "$top/tutorials/ci/judge.sh" "$3" --smoke --level statistical >said.txt 2>&1
    code=$?
    [ $code -eq "$1" ] || fail "$2: exit code $code, not $1"
    [ "$1" -eq 2 ] || if command -v xmllint >/dev/null; then
        xmllint --noout judged.xml || fail "$2: judged.xml"
    elif command -v python3 >/dev/null; then
        python3 -c 'import xml.etree.ElementTree as e; e.parse("judged.xml")' || fail "$2: judged.xml"
    fi
}

plugin right
plugin wrong 's/m = -INFINITY/m = 0.0f/'
plugin worse 's/o\[i\] += /o[i] = /'
grep -q 'm = 0.0f' wrong.c || fail "the example has another first maximum"
cmp -s right.c worse.c && fail "the example sums o in another way"
judge 0 "a right plug-in" ./right.so
judge 1 "a maximum started at 0" ./wrong.so
cp judged.csv attention-baseline.csv
judge 0 "known failures" ./wrong.so
grep -q 'known' said.txt || fail "known failures are not named"
judge 1 "worse than the baseline" ./worse.so
judge 0 "better than the baseline" ./right.so
grep -q 'passes now' said.txt || fail "what passes now is not named"
judge 2 "no such file" ./none.so
# Called from a folder that is not the project's, with nothing set, the program finds the cases of its checkout.
if [ -f "$(dirname "$program")/../data/cases.csv" ]; then
    (unset FD_DATA FD_LIBM_CACHE && flashdecode check ./right.so --smoke --level exact) >said.txt 2>&1 || fail "from another folder"
fi
sed 's/static fd_status run(/static fd_status once(/; s/^static const fd_caps /static fd_status run(const fd_problem *p, const fd_context *c)\n{\n    (void)once(p, c), (void)once(p, c), (void)once(p, c);\n    return once(p, c);\n}\n\n&/' \
    "$top/tutorials/plugin/sdpa.c" >slow.c
grep -q 'return once' slow.c || fail "the example has other names"
gcc -O2 -shared -fPIC -I "$top/reference" slow.c -o slow.so -lm || exit 2
rm attention-baseline.csv
flashdecode check ./right.so --family selector --level exact --time --csv times.csv >said.txt 2>&1 || fail "a right plug-in, timed"
grep -q 'the reading of k and v' said.txt || fail "no times"
flashdecode check ./slow.so --family selector --level exact --time --baseline times.csv >said.txt 2>&1
[ $? -eq 1 ] || fail "four times as slow as the baseline must fail"
grep -q 'slower' said.txt || fail "slower is not named"
echo "no baseline" >attention-baseline.csv
judge 2 "a baseline that is none" ./right.so
echo "ci_example.sh: 9 runs as promised${offline:+, without a network}"
