#!/bin/sh
# run.sh BUILD CC [TAG...]: one-token mutants of readable rungs (tags 01 02 03 05), and of row.h and plan.c (tags row
# and plan, seen through rung 05), judged. `make source-mutants` calls it, with LIBS and OBJECTS set. Results:
# BUILD/source_mutants/results.tsv; README.md has the stages.
# Exit code: 0, or 1 if a mutant survives that survivors.md does not explain, 2 if something could not be run.
set -u
here=tests/source_mutants

# ---- one mutant, called by xargs: run.sh --one ID. WORK, MUTANT_CC, MUTANT_FLAGS, MUTANT_LIBS: from the environment.

# limited SECONDS COMMAND...: the exit code; 124 for a spent limit of CPU time.
limited() {
    seconds=$1
    shift
    (ulimit -c 0; ulimit -t "$seconds"; exec timeout 600 "$@") >"$dir/log" 2>&1
    code=$?
    case $code in 137 | 152) code=124 ;; esac
    return $code
}

# verdict STAGE CODE: writes the end of this mutant and leaves, unless it passed.
verdict() {
    case $2 in
    0) return ;;
    124) end=timeout ;;
    1 | 2 | 77) end=$1 ;;
    *) end=crash ;;
    esac
    finish "$end"
}

finish() {
    printf '%s\t%s\n' "$id" "$1" >"$WORK/ends/$id"
    rm -rf "$dir"
    exit 0
}

# unit_tests OBJECT
unit_tests() {
    # shellcheck disable=SC2086
    $MUTANT_CC "$dir/x.o" "$WORK/$1" "$WORK/tables.o" "$WORK/lib.a" -fopenmp -o "$dir/s" -lcriterion $MUTANT_LIBS ||
        finish lost
    limited 120 "$dir/s"
    verdict unit-tests $?
}

one() {
    id=$1 dir=$WORK/m/$1 tag=${1%%.*}
    number=$tag
    case $tag in row | plan) number=05 ;; esac
    file=$(cd reference && echo "$number"_*.c)
    [ "$tag" != plan ] || file=plan.c
    [ "$tag" != row ] || cp "reference/$file" "$dir/"
    # shellcheck disable=SC2086
    $MUTANT_CC $MUTANT_FLAGS -w -I"$dir" -Ireference -c "$dir/$file" -o "$dir/x.o" 2>/dev/null || finish stillborn
    cmp -s "$dir/x.o" "$WORK/original/$file.o" && finish same-code
    # shellcheck disable=SC2086
    $MUTANT_CC "$dir/x.o" "$WORK/main.o" "$WORK/tables.o" "$WORK/lib.a" -fopenmp -o "$dir/x" $MUTANT_LIBS || finish lost

    [ "$tag" != plan ] || unit_tests plan.o # a poor cut changes no answer

    run=$dir/x
    with_memory_limit() { (ulimit -v 4194304; limited "$@"); }
    FD_DATA=$WORK/first with_memory_limit 2 "$run" verify --rung "${number#0}"
    verdict verify $?
    FD_DATA=$WORK/quick with_memory_limit 20 "$run" verify --rung "${number#0}"
    verdict verify $?
    FD_DATA=$WORK/quick with_memory_limit 20 "$run" relations --rung "${number#0}"
    verdict relations $?

    # Reads and writes beyond an array that reach no result: the rung alone is instrumented.
    # shellcheck disable=SC2086
    $MUTANT_CC $MUTANT_FLAGS -w -fsanitize=address,undefined -fno-sanitize-recover=undefined -I"$dir" -Ireference \
        -c "$dir/$file" -o "$dir/a.o" &&
        $MUTANT_CC "$dir/a.o" "$WORK/main.o" "$WORK/tables.o" "$WORK/lib.a" -fsanitize=address,undefined -fopenmp \
            -o "$dir/a" $MUTANT_LIBS &&
        {
            FD_DATA=$WORK/bounds limited 60 "$dir/a" verify --rung "${number#0}"
            code=$?
            [ $code -eq 0 ] || finish sanitizer
        }

    explained=$(awk -v id="\`$id\`" '/^## / { section = tolower($2) } /^### / && index($0, id) { print section }' $here/survivors.md)
    [ -z "$explained" ] || finish "$explained" # a section of survivors.md: equivalent or gap
    unit_tests unit.o
    [ "${FULL:-1}" = 1 ] || finish survivor
    FD_DATA=data with_memory_limit 300 "$run" verify --rung "${number#0}"
    verdict full-table $?
    finish survivor
}

if [ "${1-}" = --one ]; then
    one "$2"
fi

# ---- all of them

build=$1 MUTANT_CC=$2
shift 2
[ $# -gt 0 ] || set -- 01 02 03 05 row plan
WORK=$build/source_mutants
MUTANT_FLAGS="-std=c11 -O2 -ffp-contract=off -fno-fast-math"
FD_LIBM_CACHE=${FD_LIBM_CACHE:-$build/libm_error.csv}
MUTANT_LIBS=${LIBS:--lmpfr -lgmp -ljansson -lm}
export WORK MUTANT_CC MUTANT_FLAGS MUTANT_LIBS FD_LIBM_CACHE

rm -rf "$WORK"
mkdir -p "$WORK/m" "$WORK/ends" "$WORK/original" "$WORK/first" "$WORK/quick" "$WORK/bounds" || exit 2
cp $here/first.csv "$WORK/first/cases.csv"
cp $here/bounds.csv "$WORK/bounds/cases.csv"
cp $here/cases.csv "$WORK/quick/cases.csv"
ln -s "$PWD/data/real" "$WORK/quick/real"

# Every object, as the Makefile lists them, but those that the mutants replace; no wrong rungs, whose diagnosis would
# take most of the time.
others=${OBJECTS:?is set by make source-mutants}
{
    echo '#include "mutants.h"'
    for table in fd_mutants fd_parents; do
        echo "const fd_rung *const $table[] = {0}; const int ${table}_count = 0;"
    done
    echo "const char *const fd_mutant_files[] = {0}; const char *const fd_mutant_changes[] = {0};"
    # Of the ladder, what runs on a CPU: the emulator would take most of the time of the unit tests.
    echo '#include "ladder.h"'
    for file in reference/[0-9][0-9]_*.c; do
        echo "extern const fd_rung fd_rung_$(basename "$file" .c);"
    done
    echo "const fd_rung *const fd_ladder[] = {"
    for file in reference/[0-9][0-9]_*.c; do
        echo "    &fd_rung_$(basename "$file" .c),"
    done
    echo "};"
    echo "const int fd_ladder_count = sizeof fd_ladder / sizeof *fd_ladder;"
    echo "const int fd_ladder_cpu_count = sizeof fd_ladder / sizeof *fd_ladder;"
} >"$WORK/tables.c"
# shellcheck disable=SC2086
"$MUTANT_CC" -std=c11 -Ireference -Itests -c "$WORK/tables.c" -o "$WORK/tables.o" &&
    cp "$build/obj/tests/main.o" "$WORK/main.o" && ar rcs "$WORK/lib.a" $others || exit 2
"$MUTANT_CC" -r -nostdlib "$build/obj/tests/test_contract.o" "$build/obj/tests/test_bug_cases.o" "$build/obj/tests/test_bug_numbers.o" -o "$WORK/unit.o" &&
    "$MUTANT_CC" -r -nostdlib "$build/obj/tests/test_contract.o" "$build/obj/tests/test_plan.o" \
        "$build/obj/tests/test_plan_policies.o" -o "$WORK/plan.o" || exit 2

# Nothing is learnt from mutants where the right rungs themselves do not link or pass.
# shellcheck disable=SC2086
"$MUTANT_CC" "$WORK/main.o" "$WORK/tables.o" "$WORK/lib.a" -fopenmp -o "$WORK/right" $MUTANT_LIBS &&
    FD_DATA=$WORK/first "$WORK/right" verify >"$WORK/right.txt" 2>&1 || {
    echo "source-mutants: the right rungs do not link, or do not pass $here/first.csv; see $WORK/right.txt" >&2
    exit 2
}

for file in reference/0*_*.c reference/plan.c; do
    # shellcheck disable=SC2086
    $MUTANT_CC $MUTANT_FLAGS -w -Ireference -c "$file" -o "$WORK/original/${file##*/}.o" || exit 2
done
for tag in "$@"; do
    case $tag in
    row) file=reference/row.h ;;
    plan) file=reference/plan.c ;;
    *) file=$(echo reference/"$tag"_*.c) ;;
    esac
    awk -f $here/mutate.awk -v tag="$tag" -v out="$WORK/m" "$file" >>"$WORK/made.tsv" || exit 2
done

cut -f1 "$WORK/made.tsv" | xargs -P 2 -n 1 sh $here/run.sh --one 2>"$WORK/stderr.txt" # the shell names each signal
cat "$WORK"/ends/* >"$WORK/ends.tsv"
awk -F '\t' 'NR == FNR { end[$1] = $2; next } { print $0 "\t" (($1 in end) ? end[$1] : "lost") }' "$WORK/ends.tsv" \
    "$WORK/made.tsv" >"$WORK/results.tsv"
awk -f $here/report.awk "$WORK/results.tsv"
