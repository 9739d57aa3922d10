#!/bin/sh
# rota.sh CHECK [BUILD]: checks too long for every run of CI, which takes them in turn.
#   tsan      judge and CPU rungs under ThreadSanitizer, then a race planted in rung 06, which it must find
#   valgrind  judge and CPU rungs under memcheck
#   aarch64   cross build; under qemu-user the same bits of all small cases and of the CPU rungs' answers as here; judge, oracle
#             and emulator, both builds of a kernel. Not plug-ins: a process that qemu runs cannot start another
#   mutants-1, mutants-2: every wrong kernel (half of them) as somebody else's plug-in, which `check` must convict and name
#   proofs    Coq checks them; with its packages installed, where apt-get can
# Exit code: 0 clean, 1 not, 77 where a tool is missing, which is named.
set -u
cd "$(dirname "$0")/.." || exit 2
build=${2:-build}
FD_LIBM_CACHE=$PWD/$build/libm_error.csv # measured here: neither sanitizer nor qemu changes what libm's source computes
export FD_LIBM_CACHE

need() {
    for tool in "$@"; do
        command -v "$tool" >/dev/null || { echo "rota: $tool is missing"; exit 77; }
    done
}
fail() { echo "rota: $1"; exit 1; }

tsan() {
    need clang
    make -j2 CONFIG=tsan build/tsan/flashdecode || exit 1
    # Of libomp itself it sees only the calls of libc: not instrumented, not judged.
    TSAN_OPTIONS="ignore_noninstrumented_modules=1 exitcode=66"
    export TSAN_OPTIONS
    build/tsan/flashdecode verify --rung 6 && build/tsan/flashdecode relations --rung 6 || fail "ThreadSanitizer reports"
    # Every thread in the scratch of the first: right on one thread, and a race on two.
    sed 's/this_thread() \* plan/0 * plan/' reference/06_threads.c >build/tsan/race.c
    cmp -s reference/06_threads.c build/tsan/race.c && fail "no race was planted: rung 06 reads differently now"
    clang -std=c11 -O2 -g -fopenmp -fsanitize=thread -Ireference -c build/tsan/race.c -o build/tsan/race.o &&
        clang -fopenmp -fsanitize=thread build/tsan/race.o -o build/tsan/planted \
            $(find build/tsan -name '*.o' ! -name race.o ! -path '*obj/reference/06_threads.o') \
            -lmpfr -lgmp -ljansson -lm -ldl || fail "the planted race does not build"
    build/tsan/planted verify --rung 6 --family ragged-spike 2>&1 | grep -q 'data race.*in attend' ||
        fail "a planted race goes unseen"
    echo "rota: tsan clean; a planted race is found"
}

valgrind_() {
    need valgrind
    make -j2 "$build/flashdecode" || exit 1
    for rung in 1 2 3 4 5 6 7; do
        valgrind -q --error-exitcode=9 "$build/flashdecode" verify --rung $rung --family ragged-spike ||
            fail "rung $rung under valgrind"
    done
    valgrind -q --error-exitcode=9 "$build/flashdecode" relations --rung 7 --case gaussian/hhf/h4:1/d64/n65 ||
        fail "relations under valgrind"
    echo "rota: valgrind clean"
}

aarch64() {
    need aarch64-linux-gnu-gcc qemu-aarch64
    out=$build/aarch64
    make -j2 "$build/flashdecode" || exit 1
    make -j2 CC=aarch64-linux-gnu-gcc OBJCOPY=aarch64-linux-gnu-objcopy BUILD="$out" "$out/flashdecode" || exit 1
    qemu-aarch64 "$out/flashdecode" ladder >/dev/null 2>"$out/why.txt" || {
        head -n 1 "$out/why.txt"
        exit 77 # libraries of that machine
    }
    "$build/flashdecode" hashes && qemu-aarch64 "$out/flashdecode" hashes || fail "other bits on aarch64"
    for f in ragged-spike attained; do
        qemu-aarch64 "$out/flashdecode" verify --where cpu --family $f || fail "family $f on aarch64"
    done
    qemu-aarch64 "$out/flashdecode" verify --where emu --case selector/fff/h16:8/d8/n300+0+1+17+299/s64 ||
        fail "the emulator on aarch64"
    qemu-aarch64 "$out/flashdecode" emulate --rung 20,22,26,27 --kv-len 257 --heads 4:1 --dtype hhh ||
        fail "the emulator's hooks on aarch64"
    qemu-aarch64 "$out/flashdecode" oracle --case gaussian/fff/h4:1/d64/n65 || fail "the oracle on aarch64"
    echo "rota: aarch64 agrees"
}

# mutants REMAINDER: every other one.
mutants() {
    make -j2 "$build/flashdecode" || exit 1
    # shellcheck disable=SC2046
    sh tests/mutant_plugins.sh "$build" $(for m in tests/mutants/*.mutant; do basename "$m" .mutant; done |
        awk -v r="$1" 'NR % 2 == r') || fail "a wrong kernel lives as a plug-in"
    echo "rota: every mutant of this half is convicted as a plug-in"
}

proofs() {
    command -v coqc >/dev/null || make setup-proofs >/dev/null 2>&1
    need coqc
    make proofs || fail "a proof does not hold"
    echo "rota: the proofs hold"
}

case ${1:-} in
tsan) tsan ;;
valgrind) valgrind_ ;;
aarch64) aarch64 ;;
mutants-1) mutants 1 ;;
mutants-2) mutants 0 ;;
proofs) proofs ;;
*) sed -n '2,9s/^# //p' "$0"; exit 2 ;;
esac
