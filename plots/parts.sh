#!/bin/sh
# parts.sh COMMAND BUILD SIZE: brings BUILD/report/COMMAND.csv up to date, and runs no more than it must.
#
# Results are kept per rung, in BUILD/report/parts/COMMAND/NN.csv beside NN.key: a checksum of what they depend on, which
# is the object file of the rung, those of the judge, the case table, expf and logf of this machine, and the size. Rungs whose
# checksum is another are run again, in one go; the rest is left alone: an edit of one rung judges that rung. Only bench
# then times all of them, for times of one run are comparable, and others are not.
# COMMAND.csv is their sum, and is touched only if it changes. mutants and killtable are one part each.
set -eu
command=$1 build=$2 size=$3
report=$build/report
parts=$report/parts/$command
program=$build/flashdecode
mkdir -p "$parts"
rm -f "$parts"/*.tmp "$parts"/*.newkey # of a run that was stopped

# Object files that results of a command depend on, rungs apart. What only another command uses is left out.
common() { # cpu, emu or all
    find "$build/obj/reference" "$build/obj/tests" "$build/obj/cuda" -name '*.o' | sort | while read -r o; do
        case ${o##*/} in
        [0-9][0-9]_* | test_* | main.o | parse.o | rules*.o | curves.o | killtable.o | seeds.o | plan_options.o) ;;
        emulate*.o | observe_*.o | point_gpu.o | trial*.o | worker*.o | plugin*.o | dump*.o | given*.o | golden*.o | junit*.o | claims_options.o | safetensors_write.o | huge*.o) ;;
        cmd_*) [ "${o##*/}" != "cmd_$command.o" ] || echo "$o" ;;
        bench*.o | read_floor.o) case $command in bench | splits | decode) echo "$o" ;; esac ;;
        splits.o) [ "$command" != splits ] || echo "$o" ;;
        decode*.o) [ "$command" != decode ] || echo "$o" ;;
        *) case $o in
            */cuda/*) [ "$1" = cpu ] || echo "$o" ;;
            *) echo "$o" ;;
            esac ;;
        esac
    done
}

# Of the files named on standard input, the cases, and expf and logf of this machine.
sum() { { xargs cat; cat data/cases.csv "$build/libm_error.csv"; } | cksum; }

place() { if [ "$1" -lt 20 ]; then echo cpu; else echo emu; fi; }

# A failing verdict is a result; anything else ends here, and the next run begins where this one stopped.
judge() { # exit code, log
    if [ "$1" -gt 1 ] && [ "$1" -ne 77 ]; then
        echo "parts.sh: flashdecode $command ended with exit code $1" >&2
        exit 2
    fi
    mv "$2.tmp" "$2"
}

run() { # log, arguments
    log=$1
    shift
    code=0
    "$program" "$@" > "$log.tmp" || code=$?
    judge $code "$log"
}

replace() { # new, old: keeps the old file's time if they are the same
    if cmp -s "$1" "$2"; then rm "$1"; else mv "$1" "$2"; fi
}

options=
case $command in
mutants | killtable)
    # Both judge copies of the committed rungs, so that an edited one does not run them again.
    key="$size $({
        common cpu
        ls "$build"/mutants/*.o "$build"/parents/*.o
        [ "$command" = mutants ] || ls "$build"/obj/tests/rules*.o "$build"/obj/tests/killtable.o
    } | sum)"
    if [ ! -f "$report/$command.csv" ] || [ "$key" != "$(cat "$parts/key" 2> /dev/null)" ]; then
        run "$report/$command.txt" "$command" --csv "$parts/new.csv"
        mv "$parts/new.csv" "$report/$command.csv"
        echo "$key" > "$parts/key"
    fi
    exit 0
    ;;
verify | bench) options="--size $size" ;;
decode)
    options="--steps 96 --append 128 --heads 4:4 --head-dim 64"
    [ "$size" = small ] || options="--steps 256 --append 256"
    ;;
splits) [ "$size" = small ] || options="--seeds 64" ;;
*) echo "parts.sh: no command $command" >&2 && exit 2 ;;
esac

cpu_sum=$(common cpu | sum)
emu_sum=$(common all | sum)
rungs=$(awk -F, '!/^#/ && $1 + 0 > 0 { print $1 + 0 }' "$report/ladder.csv")
stale_cpu='' stale_emu='' stale_emu_too='' # the emulator's rungs in two halves
for r in $rungs; do
    nn=$(printf %02d "$r")
    where=$(place "$r")
    [ "$where" = cpu ] || [ "$command" = verify ] || continue
    if [ "$where" = cpu ]; then object=$(ls "$build"/obj/reference/"$nn"_*.o) shared=$cpu_sum; else
        object=$(ls "$build"/obj/cuda/"$nn"_*.o) shared=$emu_sum
    fi
    key="$options $shared $(cksum < "$object")"
    echo "$key" > "$parts/$nn.newkey"
    if [ ! -f "$parts/$nn.csv" ] || ! cmp -s "$parts/$nn.newkey" "$parts/$nn.key"; then
        case $where in
        cpu) stale_cpu="$stale_cpu --rung $r" ;;
        *) next="$stale_emu_too --rung $r" stale_emu_too=$stale_emu stale_emu=$next ;;
        esac
    fi
done

# Times of two runs are not compared, so all rungs are timed in turns again. It takes seconds.
if [ "$command" = bench ] && [ -n "$stale_cpu" ]; then
    stale_cpu=
    for r in $rungs; do
        [ "$(place "$r")" != cpu ] || stale_cpu="$stale_cpu --rung $r"
    done
fi

# The rungs of a finished run, each into its own file under the run's head; one that has no rows gets an empty file.
divide() { # csv, rungs as options
    [ -f "$1" ] || return 0 # there is no device, and no emulator
    for r in $2; do
        [ "$r" != --rung ] || continue
        nn=$(printf %02d "$r")
        awk -F, -v r="$r" '/^#/ || !head { print; head = !/^#/; next } $1 + 0 == r + 0' "$1" > "$parts/$nn.tmp"
        mv "$parts/$nn.tmp" "$parts/$nn.csv"
        mv "$parts/$nn.newkey" "$parts/$nn.key"
    done
    rm "$1"
}

# A process of the emulator runs on one core: two of them beside the rungs that use all cores.
[ "$command" != verify ] || export OMP_WAIT_POLICY=passive
beside='' beside_too=''
# shellcheck disable=SC2086
trap 'kill $beside $beside_too 2> /dev/null || true' EXIT
trap 'exit 130' INT TERM
# shellcheck disable=SC2086
if [ -n "$stale_emu" ]; then
    "$program" $command $options $stale_emu --csv "$parts/emu.new" > "$report/$command-emu.log.tmp" &
    beside=$!
fi
# shellcheck disable=SC2086
if [ -n "$stale_emu_too" ]; then
    "$program" $command $options $stale_emu_too --csv "$parts/emu-too.new" > "$report/$command-emu-too.log.tmp" &
    beside_too=$!
fi
# shellcheck disable=SC2086
if [ -n "$stale_cpu" ]; then
    run "$report/$command.log" $command $options $stale_cpu --csv "$parts/cpu.new"
    divide "$parts/cpu.new" "$stale_cpu"
fi
if [ -n "$beside" ]; then
    code=0
    wait "$beside" || code=$?
    beside=
    judge $code "$report/$command-emu.log"
    divide "$parts/emu.new" "$stale_emu"
fi
if [ -n "$beside_too" ]; then
    code=0
    wait "$beside_too" || code=$?
    beside_too=
    judge $code "$report/$command-emu-too.log"
    divide "$parts/emu-too.new" "$stale_emu_too"
fi
rm -f "$parts"/*.newkey

# The sum: every line of a machine record once, one header, all rows of the rungs that there are.
files=
for r in $rungs; do
    nn=$(printf %02d "$r")
    [ ! -f "$parts/$nn.csv" ] || files="$files $parts/$nn.csv"
done
# shellcheck disable=SC2086
awk '/^#/ { if (!seen[$0]++) comments = comments $0 "\n"; head = 0; next }
    !head { head = 1; header = $0; next }
    { rows = rows $0 "\n" }
    END { printf "%s%s\n%s", comments, header, rows }' $files > "$parts/sum"
replace "$parts/sum" "$report/$command.csv"
if [ "$command" = verify ]; then
    awk -f plots/csv.awk -f plots/verdicts.awk "$report/verify.csv" > "$parts/text"
    replace "$parts/text" "$report/verify.txt"
fi
