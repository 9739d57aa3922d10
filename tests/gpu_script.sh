#!/bin/sh
# gpu_script.sh: cuda/gpu/run.sh with a program and a sanitizer that only note how they were called: arguments, exit codes,
# and that what is done is not done again. Exit code 1 and one line at the first thing that is wrong.
set -u
cd "$(dirname "$0")/.." || exit 2
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/bin"

cat >"$dir/bin/program" <<'FAKE'
#!/bin/sh
# CODE_<what>: the exit code to give; the probe for a GPU is not noted.
case "$*" in *'--case gaussian/fff/h4:1/d64/n1') exit "${CODE_PROBE:-0}" ;; esac
case $1 in ladder) printf 'rung\n  05 x\n  20 x\n  21 x\n'; exit 0 ;; esac
echo "$*" >>"$CALLS"
rung="" csv=""
while [ $# -gt 0 ]; do
    case $1 in --rung) rung=${2%%,*} ;; --csv) csv=$2 ;; verify | relations | bench | exp | observe) what=$1 ;; esac
    shift
done
case $what in
verify) [ -z "$csv" ] || printf '# record\nrung,verdict\n%s,pass\n' "$rung" >"$csv"; echo "3 passed, 0 failed, 0 skipped" ;;
relations) echo "5 passed, 1 failed, 2 skipped" ;;
bench) echo "timed" ;;
observe) echo "7 observed, 0 skipped, 0 failed" ;;
exp) [ -z "$csv" ] || echo function >"$csv" ;;
esac
eval "exit \${CODE_$rung:-\${CODE:-0}}"
FAKE
cat >"$dir/bin/compute-sanitizer" <<'FAKE'
#!/bin/sh
echo "sanitizer $*" >>"$CALLS"
echo "========= ERROR SUMMARY: 0 errors"
exit "${CODE:-0}"
FAKE
chmod +x "$dir/bin/program" "$dir/bin/compute-sanitizer"
PATH=$dir/bin:$PATH CALLS=$dir/calls
export PATH CALLS

# expect CODE CALLS WHAT COMMAND...: exit code and number of calls noted.
expect() {
    code=$1 calls=$2 what=$3
    shift 3
    : >"$CALLS"
    "$@" >"$dir/output" 2>&1
    got=$?
    made=$(wc -l <"$CALLS")
    if [ $got -ne "$code" ] || { [ "$calls" != - ] && [ "$made" -ne "$calls" ]; }; then
        echo "gpu_script: $what: exit code $got, expected $code; $made calls, expected $calls"
        cat "$dir/output" "$CALLS"
        exit 1
    fi
}
run() { sh cuda/gpu/run.sh "$@" "$dir/bin/program"; }

expect 2 0 "no arguments" sh cuda/gpu/run.sh
expect 2 0 "no such part" run nonsense "$dir/out"
expect 2 0 "no such program" sh cuda/gpu/run.sh verify "$dir/out" /nonexistent/program
expect 2 0 "a folder that cannot be made" run verify /proc/nowhere
CODE_PROBE=77 expect 77 0 "no GPU" run bench "$dir/out"

# verify: exp, then each rung, then each rung's relations.
expect 0 5 "verify" run verify "$dir/out"
expect 0 1 "verify again: only exp is asked" run verify "$dir/out"
grep -q '^20,pass' "$dir/out/verify.csv" && grep -q '^21,5,1,2$' "$dir/out/relations.csv" || { echo "gpu_script: rows are missing"; exit 1; }
[ "$(grep -c '^rung,verdict' "$dir/out/verify.csv")" -eq 1 ] || { echo "gpu_script: two headers in verify.csv"; exit 1; }
sed -i '/^21/d' "$dir/out/verify.csv"
expect 0 2 "verify goes on where it was" run verify "$dir/out"
rm -rf "$dir/out"
CODE_20=1 expect 1 5 "a failed rung does not stop the others" run verify "$dir/out"
expect 0 1 "a failed rung is a result" run verify "$dir/out"
rm -rf "$dir/out"
CODE_20=2 expect 2 5 "a rung that cannot be judged" run verify "$dir/out"
expect 0 3 "is tried again" run verify "$dir/out"

# sanitize: 2 rungs, 4 tools, 3 cases.
expect 0 24 "sanitize" run sanitize "$dir/out"
expect 0 0 "sanitize again" run sanitize "$dir/out"
sed -i '/^21,racecheck/d' "$dir/out/sanitize.csv"
CODE=99 expect 1 3 "sanitize goes on, and finds something" run sanitize "$dir/out"
RUNGS=20 expect 0 0 "sanitize of one rung" run sanitize "$dir/out"

# bench: 3 batches, 3 numbers of heads; the program itself skips what the CSV has.
expect 0 9 "bench" run bench "$dir/out"
grep -q -- '--rung 20 --rung 21 --batch 64 --heads-q 64 --heads-kv 8' "$CALLS" || { echo "gpu_script: a shape is missing"; exit 1; }
CODE=1 expect 1 9 "bench with a failure" run bench "$dir/out"

# observe: one read, two numbers of heads with three lists of splits; then the observed program, twice for each.
expect 77 7 "observe without a program that notes blocks" env OBSERVER=/nonexistent sh cuda/gpu/run.sh observe "$dir/out" "$dir/bin/program"
OBSERVER=$dir/bin/program expect 0 11 "observe" run observe "$dir/out"
grep -q -- 'observe blocks --csv .*/blocks.csv --heads 32:32 --kv-len 65536$' "$CALLS" || { echo "gpu_script: nobody asked for all rungs"; exit 1; }
OBSERVER=$dir/bin/program CODE_22=1 expect 1 11 "observe with a failure" run observe "$dir/out"

expect 0 1 "math" run math "$dir/out"
expect 0 0 "math again" run math "$dir/out"
# plugin.sh: a compiler that compiles nothing, and a program that finds nothing wrong: what should be found is missed then.
cat >"$dir/bin/nvcc" <<'FAKE'
#!/bin/sh
[ "$1" != --version ] || { echo "release 1.2, V1"; exit 0; }
while [ $# -gt 1 ]; do [ "$1" != -o ] || : >"$2"; shift; done
FAKE
cat >"$dir/bin/check" <<'FAKE'
#!/bin/sh
echo "$*" >>"$CALLS"
[ "$1" != check ] || echo "3 passed, 0 failed, 0 skipped"
exit "${CODE:-0}"
FAKE
chmod +x "$dir/bin/nvcc" "$dir/bin/check"
plugin() { sh cuda/gpu/plugin.sh "$@" "$dir/bin/check"; }
expect 2 0 "plugin.sh without arguments" sh cuda/gpu/plugin.sh
expect 2 0 "plugin.sh: no such program" sh cuda/gpu/plugin.sh "$dir/out" /nonexistent/program
CODE=77 expect 77 1 "plugin.sh: no GPU" plugin "$dir/out"
FILTER='^sdpa 0 .*--smoke' expect 0 3 "plugin.sh: one right plug-in" plugin "$dir/out"
grep -q '^sdpa,"a plug-in for a GPU.*,0,0,yes,3,0,0,' "$dir/out/plugin.csv" || { echo "gpu_script: no row"; exit 1; }
expect 1 - "plugin.sh: faults that are not found" plugin "$dir/out"
[ "$(grep -c ',1,0,no,3,0,0,' "$dir/out/plugin.csv")" -eq "$(grep -c '^[a-z]* gpu_[a-z_0-9]* 1 ' cuda/gpu/plugin.sh)" ] || { echo "gpu_script: a fault is missing"; exit 1; }
echo "gpu_script: all as expected"
