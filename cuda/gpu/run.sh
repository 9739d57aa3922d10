#!/bin/sh
# run.sh PART OUT [PROGRAM]: one part of the work on a machine with a GPU; results and logs go to the folder OUT. Each part
# can be cut off and called again with the same OUT: what OUT/PART.csv has is not done again.
#
#   math      expf, logf, exp2f, ex2.approx, lg2.approx on every float   -> math.csv
#   verify    every CUDA rung on every case, tiers 1 to 3, then tier 4   -> verify.csv, relations.csv
#   huge      every CUDA rung past 2^31 elements, where they fit         -> huge.csv
#   sanitize  compute-sanitizer's four tools over each CUDA rung         -> sanitize.csv
#   counters  Nsight Compute's requests, sectors and wavefronts          -> ncu.csv
#   bench     every CUDA rung over batch, heads and kv_len               -> bench.csv
#   observe   why: SMs that a read takes, num_splits, combines, blocks   -> sms.csv, parts.csv, blocks.csv
#
# Built elsewhere with `make gpu`, the program needs nothing here but the C library and the driver. Environment: RUNGS,
# numbers separated by blanks (default: all CUDA rungs), KV_LENS (512 to 262144 in powers of two, by commas). For
# observe, whose rungs and lengths are its own, OBSERVER, the program of `make gpu OBSERVE=1` (build/observe/flashdecode):
# without it no blocks.csv.
# Exit code: 0 all good, 1 a failure, 2 usage, 77 no GPU.
set -u

usage() {
    sed -n '2,3p;5,11p' "$0" | sed 's/^# \{0,1\}//' >&2
    exit 2
}

[ $# -eq 2 ] || [ $# -eq 3 ] || usage
part=$1 out=$2 program=${3:-build/gpu/flashdecode}
case $part in math | verify | huge | sanitize | counters | bench | observe) ;; *) usage ;; esac
[ -x "$program" ] || { echo "run.sh: no program $program here; build it with make gpu, or name it as third argument" >&2; exit 2; }
mkdir -p "$out" 2>/dev/null
[ -w "$out" ] || { echo "run.sh: folder $out cannot be written" >&2; exit 2; }

FD_LIBM_CACHE=${FD_LIBM_CACHE:-$out/libm_error.csv}
FD_COMMIT=${FD_COMMIT:-$(git rev-parse --short HEAD 2>/dev/null)}
export FD_LIBM_CACHE FD_COMMIT
# What the part math measured here is what verify and relations take this GPU's expf and logf to be.
[ -n "${FD_GPU_MATH:-}" ] || [ ! -f "$out/math.csv" ] || FD_GPU_MATH=$out/math.csv
[ -z "${FD_GPU_MATH:-}" ] || export FD_GPU_MATH
RUNGS=${RUNGS:-$("$program" ladder | awk '$1 + 0 >= 20 { print $1 }')}
KV_LENS=${KV_LENS:-512,1024,2048,4096,8192,16384,32768,65536,131072,262144}
[ -n "$RUNGS" ] || { echo "run.sh: $program has no CUDA rung" >&2; exit 2; }
worst=0

# Is there a GPU? One line if not, instead of one from every step.
"$program" verify --where gpu --level exact --case gaussian/fff/h4:1/d64/n1 >/dev/null
[ $? -ne 77 ] || exit 77

# note CODE: a failure wins over everything, bad input over a skip.
note() {
    case $1 in
    0) ;;
    1) worst=1 ;;
    77) [ $worst -ne 0 ] || worst=77 ;;
    *) [ $worst -eq 1 ] || worst=2 ;;
    esac
}

# What the card is and does: once a call, on top of each log.
card() {
    if command -v nvidia-smi >/dev/null; then
        nvidia-smi --format=csv,noheader --query-gpu=name,driver_version,vbios_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,ecc.mode.current,power.limit,temperature.gpu |
            sed 's/^/# gpu, driver, vbios, clocks sm, mem, max sm, max mem, ecc, power limit, temperature: /'
    else
        echo "# nvidia-smi is not here"
    fi
}

# has FILE PREFIX: a line of FILE begins so.
has() { [ -f "$1" ] && awk -v p="$2" 'index($0, p) == 1 { found = 1 } END { exit !found }' "$1"; }

# append NEW FILE: the lines of NEW; its header and its record only where FILE has none yet.
append() {
    if [ -f "$2" ]; then
        awk '!/^#/ && !head { head = 1; next } !/^#/' "$1" >>"$2"
    else
        { card; cat "$1"; } >"$2"
    fi
}

math() {
    if [ -f "$out/math.csv" ]; then
        echo "math: done before"
        return
    fi
    { card; "$program" exp --gpu --csv "$out/math.csv"; } >"$out/math.txt"
    note $?
    cat "$out/math.txt"
}

verify() {
    "$program" exp --if-needed >"$out/exp.txt" || note $?
    for rung in $RUNGS; do
        if has "$out/verify.csv" "$rung,"; then
            echo "verify $rung: done before"
            continue
        fi
        "$program" verify --where gpu --rung "$rung" --csv "$out/new.csv" >"$out/new.txt"
        code=$?
        note $code
        [ -s "$out/new.txt" ] && tail -n 1 "$out/new.txt" | sed "s/^/verify $rung: /"
        grep '^FAIL' "$out/new.txt"
        cat "$out/new.txt" >>"$out/verify.txt"
        [ $code -gt 1 ] || append "$out/new.csv" "$out/verify.csv"
    done
    [ -f "$out/relations.csv" ] || echo "rung,passed,failed,skipped" >"$out/relations.csv"
    for rung in $RUNGS; do
        if has "$out/relations.csv" "$rung,"; then
            echo "relations $rung: done before"
            continue
        fi
        "$program" relations --rung "$rung" >"$out/new.txt"
        code=$?
        note $code
        [ -s "$out/new.txt" ] && tail -n 1 "$out/new.txt" | sed "s/^/relations $rung: /"
        grep '^FAIL' "$out/new.txt"
        cat "$out/new.txt" >>"$out/verify.txt"
        [ $code -gt 1 ] || sed -n "\$s/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped.*/$rung,\1,\2,\3/p" "$out/new.txt" >>"$out/relations.csv"
    done
    rm -f "$out/new.csv" "$out/new.txt"
}

huge() {
    if [ -f "$out/huge.csv" ]; then
        echo "huge: done before"
        return
    fi
    flags=""
    for rung in $RUNGS; do flags="$flags --rung $rung"; done
    # shellcheck disable=SC2086
    "$program" huge --where gpu $flags --csv "$out/new.csv" >"$out/huge.txt"
    code=$?
    note $code
    cat "$out/huge.txt"
    [ $code -gt 1 ] || append "$out/new.csv" "$out/huge.csv"
    rm -f "$out/new.csv"
}

# Small, and different in dtype, group, tails and empty sequences: a sanitizer slows a kernel a hundredfold. The third is ragged
# in 16 bits, for rungs on tensor cores, which refuse the first.
sanitize_cases='gaussian/fff/h6:2/d40/n5+0+0+300+0+64+65+1/s64 gaussian/bbb/h4:2/d96/64/n97 gaussian/bbb/h4:1/d64/n1000+0+17/s256'

sanitize() {
    if ! command -v compute-sanitizer >/dev/null; then
        echo "run.sh: compute-sanitizer is not here; it comes with the CUDA toolkit" >&2
        note 77
        return
    fi
    [ -f "$out/sanitize.csv" ] || { card; echo "rung,tool,case,code,errors"; } >"$out/sanitize.csv"
    for rung in $RUNGS; do
        for tool in memcheck racecheck initcheck synccheck; do
            for name in $sanitize_cases; do
                if has "$out/sanitize.csv" "$rung,$tool,$name,"; then
                    continue
                fi
                compute-sanitizer --tool "$tool" --error-exitcode 99 "$program" verify --where gpu --rung "$rung" --level exact --case "$name" >"$out/new.txt" 2>&1
                code=$?
                errors=$(sed -n 's/.*ERROR SUMMARY: \([0-9]*\) error.*/\1/p; s/.*RACECHECK SUMMARY: \([0-9]*\) hazard.*/\1/p' "$out/new.txt" | tail -n 1)
                echo "sanitize $rung $tool $name: ${errors:-no summary}, exit code $code"
                case $code in # 77: the rung does not take this case
                0 | 77) ;;
                99 | 1) note 1 ;;
                *) note 2 ;;
                esac
                if [ $code -ne 0 ]; then
                    { echo "== $rung $tool $name"; cat "$out/new.txt"; } >>"$out/sanitize.txt"
                fi
                case $code in 0 | 1 | 77 | 99) echo "$rung,$tool,$name,$code,${errors:-}" >>"$out/sanitize.csv" ;; esac
            done
        done
    done
    rm -f "$out/new.txt"
}

# What the emulator counts, too; of each rung the first three launches. Asynchronous copies count among the loads of global
# memory, but not among the stores to shared memory: those have metrics of their own.
counter_cases='gaussian/fff/h4:1/d64/n257 gaussian/bbb/h4:1/d64/n257'
counter_metrics='l1tex__t_requests_pipe_lsu_mem_global_op_ld l1tex__t_sectors_pipe_lsu_mem_global_op_ld
l1tex__t_requests_pipe_lsu_mem_global_op_st l1tex__t_sectors_pipe_lsu_mem_global_op_st
smsp__inst_executed_op_shared_ld l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld
smsp__inst_executed_op_shared_st l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st
smsp__inst_executed_op_ldgsts sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts'

counters() {
    if ! command -v ncu >/dev/null; then
        echo "run.sh: ncu (Nsight Compute) is not here; it comes with the CUDA toolkit" >&2
        note 77
        return
    fi
    metrics=""
    for metric in $counter_metrics; do metrics=$metrics${metrics:+,}$metric.sum; done
    [ -f "$out/ncu.csv" ] || {
        card
        echo "# commit: $FD_COMMIT"
        echo "# command: ncu --clock-control none --csv -c 3 --metrics M build/gpu/flashdecode verify --where gpu --rung N --case CASE"
        echo "case,rung,launch,kernel,metric,value"
    } >"$out/ncu.csv"
    for name in $counter_cases; do
        for rung in $RUNGS; do
            if has "$out/ncu.csv" "$name,$rung,"; then
                continue
            fi
            ncu --clock-control none --csv -c 3 --metrics "$metrics" "$program" verify --where gpu --rung "$rung" --level exact --case "$name" >"$out/new.txt" 2>&1
            code=$?
            awk -v name="$name" -v rung="$rung" '
                /^"ID",/ { n = split($0, head, /","/); sub(/"$/, "", head[n]); for (i = 1; i <= n; i++) at[head[i]] = i; next }
                /^"[0-9]/ && ("Metric Value" in at) {
                    split(substr($0, 2, length($0) - 2), cell, /","/)
                    kernel = cell[at["Kernel Name"]]
                    sub(/\(.*/, "", kernel)
                    gsub(/,/, "", cell[at["Metric Value"]])
                    printf "%s,%s,%s,%s,%s,%s\n", name, rung, cell[1], kernel, cell[at["Metric Name"]], cell[at["Metric Value"]]
                }' "$out/new.txt" >"$out/new.csv"
            echo "counters $rung $name: $(wc -l <"$out/new.csv") values, exit code $code"
            if [ $code -ne 77 ] && [ ! -s "$out/new.csv" ]; then # 77: the rung does not take this case
                cat "$out/new.txt" >>"$out/counters.txt"
                note 2
            fi
            cat "$out/new.csv" >>"$out/ncu.csv"
        done
    done
    rm -f "$out/new.txt" "$out/new.csv"
}

bench() {
    flags=""
    for rung in $RUNGS; do flags="$flags --rung $rung"; done
    [ -f "$out/bench.csv" ] || card >"$out/bench.csv"
    for batch in 1 8 64; do
        for heads in 32:32 32:8 64:8; do
            # shellcheck disable=SC2086
            "$program" bench --gpu $flags --batch $batch --heads-q ${heads%:*} --heads-kv ${heads#*:} --head-dim 128 \
                --dtype bbb --kv-len "$KV_LENS" --csv "$out/bench.csv" >"$out/new.txt"
            note $?
            cat "$out/new.txt"
            cat "$out/new.txt" >>"$out/bench.txt"
        done
    done
    rm -f "$out/new.txt"
}

# Denser where a wave of blocks is full.
num_splits=1,2,3,4,6,8,10,12,14,16,17,20,24,28,32,33,34,40,48,49,50,56,64,66,80,96,99,128,160,192,256

# observed PROGRAM WHAT FILE ARGUMENTS...: one call, its table behind the log.
observed() {
    program_of=$1 what=$2 file=$3
    shift 3
    [ -f "$out/$file.csv" ] || card >"$out/$file.csv"
    "$program_of" observe "$what" --csv "$out/$file.csv" "$@" >"$out/new.txt"
    note $?
    tail -n 1 "$out/new.txt" | sed "s/^/observe $what $*: /"
    cat "$out/new.txt" >>"$out/observe.txt"
}

observe() {
    observer=${OBSERVER:-build/observe/flashdecode}
    observed "$program" sms sms --kv-len 65536 --heads 32:8
    for heads in 32:8 32:32; do
        observed "$program" splits parts --heads $heads --rung 22,24,28 --kv-len 8192,65536 --splits 0,$num_splits
        observed "$program" splits parts --heads $heads --rung 22,24,26,27,28 --kv-len 1024,2048,4096,16384,32768,131072 --splits 0
        observed "$program" splits parts --heads $heads --rung 26,27 --kv-len 8192,65536 --splits 0,4,8,16,32,64,128
    done
    if [ ! -x "$observer" ]; then
        echo "run.sh: no program $observer: blocks are not observed; build it with make gpu OBSERVE=1, or name it in OBSERVER" >&2
        note 77
        return
    fi
    for heads in 32:8 32:32; do
        observed "$observer" blocks blocks --heads $heads --kv-len 65536
        observed "$observer" blocks blocks --heads $heads --rung 22,24,28 --kv-len 8192,65536 --splits 0,$num_splits
    done
    rm -f "$out/new.txt"
}

$part
exit $worst
