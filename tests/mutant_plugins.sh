#!/bin/sh
# mutant_plugins.sh BUILD [NAME...]: every wrong kernel of tests/mutants (or those named), compiled as somebody else's plug-in, must
# fail in `check` and be called what it is, alone, over all its failures. First on the smoke cases, in a second or two; whoever
# they do not convict is judged on all cases, which takes half a minute. As many at a time as there are processors.
# Exit code: 0, 1 one lives or is called something else.
set -u
build=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ $# -gt 0 ] || set -- $(for m in tests/mutants/*.mutant; do basename "$m" .mutant; done)

# judge NAME: one word a mutant, "smoke" or "whole", by which cases convicted it; or a line that begins with FAIL.
cat >"$work/judge" <<'END'
build=$1 work=$2 mutant=$3
cat >"$work/$mutant.c" <<CODE
#include "$PWD/$build/mutants/$mutant.c"

#include "ladder.h"

const fd_rung *const fd_ladder[] = {NULL}; /* fd.c searches it */
const int fd_ladder_count = 0;

const fd_rung *fd_plugin(uint32_t host_abi)
{
    return host_abi == FD_ABI ? &fd_mutant_$mutant : NULL;
}
CODE
gcc -std=c11 -O2 -g -ffp-contract=off -fopenmp -shared -fPIC -w -I reference -I tests "$work/$mutant.c" reference/fd.c \
    reference/plan.c -o "$work/$mutant.so" -lm || { echo "FAIL $mutant does not compile"; exit 0; }
name=$(sed -n 's/^ *\.name = "\(.*\)",$/\1/p' "$build/mutants/$mutant.c")
for cases in smoke whole; do
    [ $cases = smoke ] && option=--smoke || option='--size small'
    # shellcheck disable=SC2086
    OMP_WAIT_POLICY=passive "$build/flashdecode" check "$work/$mutant.so" $option >"$work/$mutant.txt" 2>&1
    code=$?
    said=$(sed -n 's/^ *over all failures it looks like: //p' "$work/$mutant.txt")
    if [ $code -eq 1 ] && [ "$said" = "$name" ]; then
        echo $cases
        exit 0
    fi
done
echo "FAIL $mutant: exit code $code, called \"$said\" instead of \"$name\""
END
printf '%s\n' "$@" | xargs -P "$(getconf _NPROCESSORS_ONLN)" -n 1 sh "$work/judge" "$build" "$work" >"$work/verdicts"

grep FAIL "$work/verdicts"
passed=$(grep -cE '^(smoke|whole)$' "$work/verdicts")
echo "$(grep -c '^whole$' "$work/verdicts") of them convicted on all cases only"
echo "$passed passed, $(($# - passed)) failed, 0 skipped"
[ "$passed" -eq $# ]
