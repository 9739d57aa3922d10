#!/bin/sh
# plugin.sh OUT [PROGRAM]: plug-ins on a machine with a GPU and nvcc. Builds tutorials/plugin/sdpa.cu by the line in its
# head, and in the same way the gpu_*.cu of tests/plugins, each with one fault; has PROGRAM (build/gpu/flashdecode, of
# `make gpu`) judge each; and holds exit code and words against what is expected here -> OUT/plugin.csv, a line a run,
# below a record of the machine. All that was said is in OUT/plugin.txt. Call it at the top of the project.
# Environment: FILTER, a regular expression: only the calls that it matches, "PLUGIN CODE WORDS OPTIONS".
# Exit code: 0 all as expected, 1 something is not, 2 usage, 77 no GPU.
set -u

[ $# -eq 1 ] || [ $# -eq 2 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
out=$1 program=${2:-build/gpu/flashdecode} FILTER=${FILTER:-.}
[ -x "$program" ] || {
    echo "plugin.sh: no program $program here; build it with make gpu, or name it as second argument" >&2
    exit 2
}
command -v nvcc >/dev/null || { echo "plugin.sh: no nvcc here; install the CUDA toolkit" >&2; exit 2; }
mkdir -p "$out/so" 2>/dev/null
[ -w "$out" ] || { echo "plugin.sh: folder $out cannot be written" >&2; exit 2; }
FD_LIBM_CACHE=${FD_LIBM_CACHE:-$out/libm_error.csv}
FD_COMMIT=${FD_COMMIT:-$(git rev-parse --short HEAD 2>/dev/null)}
export FD_LIBM_CACHE FD_COMMIT

line=$(sed -n 's/^ \*     \(nvcc .*\)/\1/p' tutorials/plugin/sdpa.cu)
flags=$(printf '%s\n' "$line" | sed 's/^nvcc //; s/ [^ ]*\.cu -o .*//')
for f in tutorials/plugin/sdpa.cu tests/plugins/gpu_*.cu; do
    so=$out/so/$(basename "$f" .cu)
    # shellcheck disable=SC2086
    nvcc $flags "$f" -o "$so.so" >"$so.log" 2>&1 &
done
wait
for f in tutorials/plugin/sdpa.cu tests/plugins/gpu_*.cu; do
    so=$out/so/$(basename "$f" .cu)
    [ -f "$so.so" ] || { echo "plugin.sh: nvcc $flags $f failed:" >&2; cat "$so.log" >&2; exit 2; }
done

# Is there a GPU? One line if not.
one='flat-integer/fff/h4:2/d64/n64/s64'
"$program" check "$out/so/gpu_right.so" --case $one --level exact >"$out/new.txt" 2>&1
[ $? -ne 77 ] || { tail -n 1 "$out/new.txt" >&2; exit 77; }
"$program" exp --if-needed >/dev/null

quoted() { printf '"%s"' "$(printf '%s' "$1" | sed 's/"/""/g')"; }

# The failure that has the words, else a time, else the first failure; "" if nothing failed.
told() { # FILE WORDS
    sed -n 's/^FAIL [^:]*: //p' "$1" | grep -m 1 -- "$2" && return
    sed -n 's/^ *\(.*the reading of k and v.*\)/\1/p' "$1" | head -n 1 | grep . && return
    sed -n 's/^FAIL [^:]*: //p' "$1" | head -n 1
}

# judge PLUGIN CODE WORDS OPTIONS...: a line of the CSV. WORDS: what must be said, as a regular expression of grep.
# aside: the same beside other calls; lines are in the order of the calls, whichever ends first.
number=100
judge() { number=$((number + 1)); judged "$@"; }
aside() { number=$((number + 1)); judged "$@" & }
judged() {
    printf '%s\n' "$*" | grep -Eq -- "$FILTER" || return 0
    name=$1 code=$2 words=$3 new=$out/new-$number
    shift 3
    begun=$(date +%s.%N)
    "$program" check "$out/so/$name.so" "$@" --csv "$new.csv" >"$new.txt" 2>&1
    got=$?
    seconds=$(date +%s.%N | awk -v begun="$begun" '{ printf "%.1f", $1 - begun }')
    as=no
    [ $got -eq "$code" ] && grep -q -- "$words" "$new.txt" && as=yes
    says=$(told "$new.txt" "$words")
    source=tests/plugins/$name.cu
    [ -f "$source" ] || source=tutorials/plugin/$name.cu
    fault=$(sed -n '1s#^/\* ##p' "$source" | sed 's# \*/$##; s#^[a-z_]*\.cu: ##')
    counts=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped.*/\1,\2,\3/p' "$new.txt" | tail -n 1)
    options=$(printf '%s' "$*" | sed "s#$out/##")
    row=$name,$(quoted "$fault"),$(quoted "$options"),$code,$got,$as,${counts:-,,},$seconds,$(quoted "$says")
    echo "$row" >"$new.row"
    echo "$name $*: exit code $got, ${counts:-no counts}, $seconds s, as expected: $as${says:+; $says}"
    sed "1i== $name $*: exit code $got, $seconds s, as expected: $as" "$new.txt" >"$new.said"
}

rm -f "$out"/new-*

# Everything, and what only a sanitizer sees; beside what follows.
aside sdpa 0 ' 0 failed'
aside sdpa 0 ' 0 failed' --case $one --level exact --sanitize
aside gpu_overread 1 'memcheck: Invalid __global__ read' --case $one --level exact --sanitize
aside gpu_race 1 'racecheck: Error: Race reported' --case $one --level exact --sanitize

# One fault each, on one case.
judge gpu_overread 0 '1 passed, 0 failed' --case $one --level exact
judge gpu_needs_32 1 'run() returned invalid problem' --case $one --level exact
judge gpu_overrun 1 'wrote past the end of o, at byte [0-9]* of [0-9]*, in run()' --case $one --level exact
judge gpu_illegal 1 'an illegal memory access was encountered' --case $one --level exact
judge gpu_hang 1 'still running after 3 s in run()' --case $one --level exact --seconds 3
judge gpu_right 0 '1 passed, 0 failed' --case $one --level exact
judge gpu_second_stream 1 'it launches on another one' --case $one --level exact
judge gpu_default_stream 1 'it launches on another one' --case $one --level exact
judge gpu_bad_launch 1 'run() returned FD_OK, but attend cannot be launched: ' --case $one --level exact
judge gpu_raw_launch 1 'left a CUDA error behind, for the next who asks: ' --case $one --level exact
judge gpu_leaves_error 1 'left a CUDA error behind, for the next who asks: ' --case $one --level exact

# The suite goes on: a case that is wrong, and the others; a GPU that is lost, and a new process for the next case.
judge gpu_one_case 1 'o is not the exact answer' --family flat-integer --level exact
judge gpu_illegal_once 1 '^[1-9][0-9]* passed, [12] failed' --family flat-integer --level exact
judge gpu_illegal 1 'an illegal memory access was encountered' --smoke --level exact
judge gpu_hang 1 'still running after 1 s in run()' --smoke --level exact --seconds 1

# Right ones.
judge sdpa 0 ' 0 failed' --smoke
judge gpu_right 0 ' 0 failed' --smoke
judge gpu_needs_16 0 ' 0 failed' --smoke --level exact
judge gpu_merge 0 ' 0 failed' --smoke --level metamorphic
wait

# Times, against a baseline.
judge gpu_right 0 'the reading of k and v' --case $one --level exact --time
[ ! -f "$out/new-$number.csv" ] || cp "$out/new-$number.csv" "$out/time.csv"
judge gpu_right 0 ' 0 failed' --case $one --level exact --time --baseline "$out/time.csv"
judge gpu_slow 1 'slower: ' --case $one --level exact --time --baseline "$out/time.csv"
judge sdpa 0 'the reading of k and v' --case $one --level exact --time

if command -v nvidia-smi >/dev/null; then
    nvidia-smi --format=csv,noheader --query-gpu=name,driver_version | head -n 1 |
        sed 's/^/# gpu: /; s/$/ (name, driver)/'
fi >"$out/plugin.csv"
{
    cat "$out"/new-*.csv | sed -n '/^# machine_id/,/^# commit/p' | head -n 11
    echo "# nvcc: $(nvcc --version | sed -n 's/.*release \([^,]*\),.*/\1/p'); $flags"
    echo "# command: cuda/gpu/plugin.sh"
    echo "plugin,fault,options,expected,code,as_expected,passed,failed,skipped,seconds,says"
    cat "$out"/new-*.row
} >>"$out/plugin.csv"
cat "$out"/new-*.said >"$out/plugin.txt"
rm -f "$out"/new-*
! grep -q '^[a-z_0-9]*,"[^"]*","[^"]*",[0-9]*,[0-9]*,no,' "$out/plugin.csv"
