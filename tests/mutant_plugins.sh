#!/bin/sh
# mutant_plugins.sh BUILD [NAME...]: every wrong kernel of tests/mutants (or those named), compiled as somebody else's plug-in, must
# fail in `check` and be called what it is, alone, over all its failures. First on the smoke cases, in a second; whoever they
# do not convict is judged on all cases, which takes half a minute. Exit code: 0, 1 one lives or is called something else.
set -u
build=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 whole=0
[ $# -gt 0 ] || set -- $(for m in tests/mutants/*.mutant; do basename "$m" .mutant; done)

for mutant in "$@"; do
    cat >"$work/$mutant.c" <<END
#include "$PWD/$build/mutants/$mutant.c"

#include "ladder.h"

const fd_rung *const fd_ladder[] = {NULL}; /* fd.c searches it */
const int fd_ladder_count = 0;

const fd_rung *fd_plugin(uint32_t host_abi)
{
    return host_abi == FD_ABI ? &fd_mutant_$mutant : NULL;
}
END
    gcc -std=c11 -O2 -g -ffp-contract=off -fopenmp -shared -fPIC -w -I reference -I tests "$work/$mutant.c" reference/fd.c \
        reference/plan.c -o "$work/$mutant.so" -lm || exit 2
    name=$(sed -n 's/^ *\.name = "\(.*\)",$/\1/p' "$build/mutants/$mutant.c")
    for cases in --smoke ''; do
        # shellcheck disable=SC2086
        "$build/flashdecode" check "$work/$mutant.so" $cases >"$work/said.txt" 2>&1
        code=$?
        said=$(sed -n 's/^ *over all failures it looks like: //p' "$work/said.txt")
        [ $code -ne 1 ] || [ "$said" != "$name" ] || break
        [ -n "$cases" ] && whole=$((whole + 1))
    done
    if [ $code -eq 1 ] && [ "$said" = "$name" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $mutant: exit code $code, called \"$said\" instead of \"$name\""
    fi
    rm -f "$work/$mutant".*
done
echo "$whole of them judged on all cases"
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
