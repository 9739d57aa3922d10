#!/bin/sh
# hostile.sh BUILD: closed streams, low limits, pipes in the place of files, file names that collide or are no text. The
# program ends soon, with 0, 1, 2 or 77; what it could not do is one line; and no result is lost or mixed with another.
# Needs the plug-ins that `make BUILD/suite` makes.
set -u
build=${1:-build}
program=$build/flashdecode
right=$build/plugins/right.so
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

wrong() {
    echo "hostile: $*"
    failed=$((failed + 1))
}

# The program with these words ends with this code, and says this on stderr, in one line.
says() { # code, words of its message or "", command...
    expected=$1 words=$2
    shift 2
    timeout 60 "$@" > "$work/out" 2> "$work/err" < /dev/null
    code=$?
    [ $code -eq "$expected" ] || wrong "$*: exit code $code, not $expected: $(cat "$work/err")"
    [ -z "$words" ] || { grep -q -- "$words" "$work/err" && [ "$(wc -l < "$work/err")" -eq 1 ]; } ||
        wrong "$*: says \"$(cat "$work/err")\", not \"$words\""
}
check() { # code, words, options...
    expected=$1 words=$2
    shift 2
    says "$expected" "$words" "$program" check "$@" --case flat-integer/fff/h4:2/d64/n64/s64 --level exact
}

# Sleeps for some seconds, beside the rest: a run may take --seconds, however many are timed at a time.
"$program" check "$build/plugins/takes_a_while.so" --case flat-integer/fff/h4:2/d64/n64/s64 --level exact --seconds 1 \
    --time > "$work/timed" 2>&1 &
timed=$!

# A stream that is closed does not lend its number to a file.
"$program" bench --kv-len 16 --repeats 3 --rung 1 --csv "$work/closed.csv" >&- 2> "$work/err"
code=$?
[ $code -eq 2 ] || wrong "bench with standard output closed: exit code $code"
grep -q '^# machine_id' "$work/closed.csv" || wrong "bench with standard output closed: the table is mixed with what is printed"
check 0 "" "$right" --csv "$work/closed.csv" 2>&-
"$program" check "$right" --case flat-integer/fff/h4:2/d64/n64/s64 --level exact --csv "$work/all.csv" <&- >&- 2>&-
[ $? -eq 2 ] || wrong "check with all streams closed: exit code $?, not 2"
[ "$(head -c 14 "$work/all.csv")" = "# machine_id: " ] || wrong "check with all streams closed: no table"

# What is written is neither what is read nor the other thing that is written; folders are found out before the work.
cp "$right" "$work/mine.so"
check 2 "is the file to be judged; name another" "$work/mine.so" --csv "$work/mine.so"
check 2 "is the file to be judged; name another" "$work/mine.so" --junit "$work/./mine.so"
cmp -s "$right" "$work/mine.so" || wrong "check overwrites what it judges"
check 2 "is the --csv file; name another" "$right" --csv "$work/both" --junit "$work/both"
check 0 "" "$right" --csv "$work/base.csv"
check 2 "is the baseline; name another" "$right" --junit "$work/base.csv" --baseline "$work/base.csv"
check 0 "" "$right" --csv "$work/base.csv" --baseline "$work/base.csv"
check 2 "Is a directory; give a writable path" "$right" --csv "$work"
[ ! -s "$work/out" ] || wrong "check judges before it finds that --csv is a folder"

# A result that is a symbolic link to where results are kept.
mkdir "$work/kept"
echo old > "$work/kept/x.csv"
ln -s kept/x.csv "$work/link.csv"
check 0 "" "$right" --csv "$work/link.csv"
{ [ -L "$work/link.csv" ] && grep -q '^implementation,' "$work/kept/x.csv"; } ||
    wrong "--csv replaces a symbolic link, not what it names"

# A baseline as a spreadsheet or a mail leaves it; one that is cut off, or has verdicts that are none.
sed 's/$/\r/' "$work/base.csv" > "$work/crlf.csv"
check 0 "" "$right" --baseline "$work/crlf.csv"
! grep -q "another machine" "$work/out" || wrong "a baseline with CRLF is taken for another machine's"
{ printf '\357\273\277' && cat "$work/base.csv"; } > "$work/bom.csv"
check 0 "" "$right" --baseline "$work/bom.csv"
sed 's/,pass,/,fine,/' "$work/base.csv" > "$work/verdict.csv"
check 2 "not written by .flashdecode check --csv" "$right" --baseline "$work/verdict.csv"
sed 's/,"sums in fp32.*/,"sums in fp32/' "$work/base.csv" > "$work/cut.csv"
check 2 "is the file cut off" "$right" --baseline "$work/cut.csv"

# Pipes into which nobody writes.
mkfifo "$work/pipe" "$work/pipe.so"
says 2 "no regular file" "$program" check "$work/pipe"
says 2 "is no file; name the shared object" "$program" check "$work/pipe.so"
mkdir "$work/cases"
mkfifo "$work/cases/index.csv"
says 2 "is no regular file" "$program" check "$work/cases"

# A file that is there and cannot be read is not left out as unanswered; one that claims to be long is not read before its
# header is.
rm -r "$work/cases"
"$program" cases "$work/cases" --case flat-integer/fff/h4:2/d64/n64/s64 > "$work/out"
for file in "$work"/cases/*.safetensors; do
    answer=${file%.safetensors}.out.safetensors
    ln -s "$answer" "$answer"
done
says 2 "Too many levels of symbolic links; check the path" "$program" check "$work/cases"
"$program" cases "$work/long" --case flat-integer/fff/h4:2/d64/n64/s64 > "$work/out"
truncate -s 1G "$work"/long/*.safetensors
says 2 "bytes behind the last tensor belong to none" "$program" check "$work/long"
if command -v python3 > /dev/null; then
    python3 - "$program" "$work/long" << 'END' || wrong "a file of 1 GiB is read before its header is checked"
import resource, subprocess, sys
subprocess.run([sys.argv[1], "check", sys.argv[2]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 300000
END
fi
says 2 "give a writable path" "$program" exp --cache "$work/no/such/file"

# A path that is no text, and one that is too long for its line.
odd=$work/$(printf 'a b"c,d\033\377<&>\nx').so
cp "$right" "$odd"
check 0 "" "$odd" --csv "$work/odd.csv" --junit "$work/odd.xml"
if command -v python3 > /dev/null; then
    python3 - "$work/odd.csv" "$work/odd.xml" << 'END' || wrong "a path that is no text leaves a table or XML that is none"
import csv, sys, xml.dom.minidom
lines = [x for x in open(sys.argv[1], encoding="utf-8", newline="") if not x.startswith("#")]
table = list(csv.reader(lines))
assert len(table) == 2 and len(table[0]) == len(table[1]) and "\033" not in "".join(table[1])
xml.dom.minidom.parse(sys.argv[2])
END
fi
long=$(head -c 3000 /dev/zero | tr '\0' a)
says 2 "File name too long; name the shared object" "$program" check "$long.so"
says 2 "no such file or folder; check the path" "$program" check "$long"

# A library that sets another rounding mode before the program begins.
cat > "$work/upward.c" << 'END'
#include <fenv.h>
__attribute__((constructor)) static void upward(void)
{
    fesetround(FE_UPWARD);
}
END
exact() {
    "$program" oracle --case gaussian/fff/h6:2/d40/n513+512+511 --row 0,0
}
if ${CC:-cc} -shared -fPIC "$work/upward.c" -o "$work/upward.so" -lm 2> /dev/null; then
    exact > "$work/exact"
    LD_PRELOAD=$work/upward.so exact > "$work/upward"
    cmp -s "$work/exact" "$work/upward" || wrong "the rounding mode that main() finds changes a case"
fi

# A terminal of 20 columns, whose lines do not break; and one that cannot return to the start of a line.
if command -v script > /dev/null && script --version 2> /dev/null | grep -q util-linux; then
    for term in xterm dumb; do
        script -qec "stty cols 20; TERM=$term '$program' check '$right' --family selector --level exact" "$work/$term" > /dev/null
    done
    tr '\r' '\n' < "$work/xterm" | grep '^check ' | awk 'length > 19 { bad = 1 } END { exit bad || NR == 0 }' ||
        wrong "progress breaks lines on a narrow terminal"
    script -qec "'$program' check '$build/plugins/opens_terminal.so' --family selector --level exact" "$work/tty" > /dev/null
    ! grep -q "past the judge" "$work/tty" || wrong "a plug-in writes to the terminal behind the judge's back"
    grep -q "0 failed" "$work/tty" || wrong "a plug-in that looks for a terminal: $(cat "$work/tty")"
    ! tr '\r' '\n' < "$work/dumb" | grep -q '^check ' || wrong "progress on a terminal that knows no carriage return"
fi

# A caller that ignores the death of its children, which programs inherit.
if command -v python3 > /dev/null; then
    says 1 "" python3 -c 'import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])' "$program" check "$build/plugins/exit_7.so" --family selector --level exact
    grep -q "ended the process with code 7 in run()" "$work/out" || wrong "where SIGCHLD is ignored: $(cat "$work/out")"
fi

# Limits, and a library that gives up: never taken for a failed number.
OMP_NUM_THREADS=2147483647 check 0 "" "$right"
says 2 "Too many open files; raise .ulimit -n" sh -c "ulimit -n 10; exec '$program' check '$right'"
if command -v prlimit > /dev/null && command -v setpriv > /dev/null && [ "$(id -u)" -eq 0 ]; then
    chmod 755 "$work" && cp "$program" "$work/flashdecode" && cp data/cases.csv "$work/"
    says 2 "" setpriv --reuid 65534 --clear-groups prlimit --nproc=8 env FD_DATA="$work" OMP_NUM_THREADS=60 \
        "$work/flashdecode" bench --kv-len 4096 --repeats 3 --rung 6 --threads 60
fi

# Ctrl-C ends a plug-in that is at work, and whatever it started.
"$program" check "$build/plugins/hang.so" > "$work/out" 2>&1 &
pid=$!
sleep 1
worker=$(ps -o pid= --ppid $pid | tr -d ' ')
kill -TERM $pid
wait $pid
code=$?
[ $code -eq 143 ] || wrong "check, stopped by TERM, ended with exit code $code"
[ -n "$worker" ] || wrong "check has no process for the plug-in"
for _ in 1 2 3 4 5 6 7 8 9 10; do
    state=$(ps -o stat= -p "${worker:-0}")
    case $state in '' | Z*) break ;; esac
    sleep 0.2
done
case $state in '' | Z*) ;; *) wrong "check, stopped by TERM, left the plug-in's process" ;; esac
wait $timed || wrong "check --time takes slow runs for one that hangs: $(cat "$work/timed")"
[ $failed -eq 0 ] && echo "hostile: closed streams, limits, pipes and odd names are met with one line"
exit $((failed > 0))
