#!/bin/sh
# interrupt.sh BUILD: Ctrl-C and a full disk. A results file is the old one or the whole new one, never a part; what was
# stopped can be started again; a full disk is one line and exit code 2.
set -u
build=${1:-build}
program=$build/flashdecode
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

wrong() {
    echo "interrupt: $*"
    failed=$((failed + 1))
}

# Under nohup, say, HUP is ignored, and remains so for what is called there.
default=
! env --default-signal=HUP true 2> /dev/null || default="env --default-signal=HUP,PIPE"

# Stops a command that would take seconds; FILE must be what it was, and nothing beside it.
stopped() { # signal, command...
    signal=$1
    shift
    rm -rf "$work/out"
    mkdir "$work/out"
    echo old > "$work/out/x.csv"
    $default "$program" "$@" --csv "$work/out/x.csv" > "$work/said" 2>&1 &
    pid=$!
    # Once the temporary file is there, the command is at work.
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        [ "$(find "$work/out" -name 'x.csv.*' | wc -l)" -eq 0 ] || break
        sleep 0.1
    done
    kill "-$signal" $pid 2> /dev/null || wrong "$1 ended before it could be stopped"
    wait $pid
    code=$?
    [ $code -gt 2 ] || wrong "$1, stopped by $signal, ended with exit code $code"
    [ "$(cat "$work/out/x.csv")" = old ] || wrong "$1, stopped by $signal, changed its CSV file"
    [ "$(find "$work/out" -type f | wc -l)" -eq 1 ] || wrong "$1, stopped by $signal, left $(ls "$work/out")"
}
stopped INT verify --rung 5
stopped TERM verify --rung 5
stopped HUP verify --rung 5
stopped PIPE verify --rung 5
stopped INT bench --size full
stopped INT splits --seeds 1000
stopped INT decode --steps 100000
stopped INT mutants
stopped INT killtable

# A report that is stopped is not taken for a whole one, and keeps what is finished.
mkdir -p "$work/build/report/parts/splits"
for f in obj mutants parents flashdecode; do
    ln -s "$(cd "$build" && pwd)/$f" "$work/build/$f"
done
cp "$build/libm_error.csv" "$work/build/" 2> /dev/null || echo none > "$work/build/libm_error.csv"
"$program" ladder --csv "$work/build/report/ladder.csv" > /dev/null
sh plots/parts.sh splits "$work/build" small > "$work/said" 2>&1 &
pid=$!
sleep 1
running=$(ps -o pid= --ppid $pid 2> /dev/null | tr '\n' ' ')
# shellcheck disable=SC2086
kill -INT $running 2> /dev/null
kill -TERM $pid 2> /dev/null
wait $pid && wrong "parts.sh, stopped, says that all is well"
[ ! -f "$work/build/report/splits.csv" ] || wrong "a stopped part of the report left splits.csv"
[ "$(find "$work/build/report/parts" -name '[0-9][0-9].key' | wc -l)" -eq 0 ] || wrong "a stopped part counts as done"

# One line, exit code 2.
full() { # what, command...
    what=$1
    shift
    "$@" > "$work/said" 2> "$work/why"
    code=$?
    [ $code -eq 2 ] || wrong "$what: exit code $code on a full disk"
    [ "$(wc -l < "$work/why")" -eq 1 ] || wrong "$what: on a full disk it says: $(cat "$work/why")"
}
quick="--kv-len 16 --repeats 5 --rung 1"
# shellcheck disable=SC2086
full "bench --csv /dev/full" "$program" bench $quick --csv /dev/full
full "decode --csv /dev/full" "$program" decode --steps 2 --rung 1 --csv /dev/full
full "splits --csv /dev/full" "$program" splits --kv-len 64 --splits 1 --seeds 1 --rung 5 --csv /dev/full
full "ladder > /dev/full" sh -c "'$program' ladder > /dev/full"

# A disk of 1 MB, filled. In a namespace of its own, where that is allowed.
cat > "$work/disk.sh" <<'END'
mount -t tmpfs -o size=1m none "$1" || exit 77
head -c 1048576 /dev/zero > "$1/filled" 2> /dev/null
if [ -f "$4/verify.csv" ]; then
    sh plots/report.sh "$4" "$1/index.html" > /dev/null 2> "$3"
    [ $? -eq 2 ] && [ "$(wc -l < "$3")" -eq 1 ] && [ "$(ls "$1")" = filled ] || exit 1
fi
"$2" plan --csv "$1/x.csv" > /dev/null 2> "$3"
code=$?
[ $code -eq 2 ] && [ ! -e "$1/x.csv" ] && [ "$(ls "$1")" = filled ]
END
mkdir "$work/disk"
if unshare -rm true 2> /dev/null; then
    unshare -rm sh "$work/disk.sh" "$work/disk" "$program" "$work/why" "$(find data/measured -name killtable.csv -exec dirname {} \; | head -n 1)"
    code=$?
    [ $code -eq 0 ] || [ $code -eq 77 ] || wrong "plan or report.sh on a full disk: $(cat "$work/why")"
    [ $code -eq 77 ] || [ "$(wc -l < "$work/why")" -eq 1 ] || wrong "plan on a full disk says: $(cat "$work/why")"
fi
[ $failed -eq 0 ] && echo "interrupt: stopped and full disks leave no half files"
exit $((failed > 0))
