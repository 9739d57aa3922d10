#!/bin/sh
# doctor.sh CC: one line a tool: is it there, which version, what is lost without it, how to get it. Exit 2 if the
# program cannot be built.
set -u
cc=$1
bad=0
line() { printf '%-10s %-9s %s\n' "$1" "$2" "$3"; }

header() { # name, header, what is lost, package
    if printf '#include <stdio.h>\n#include <%s>\n' "$2" | $cc -E -x c - >/dev/null 2>&1; then
        line "$1" found "$(dpkg-query -W -f '${Version}' "$4" 2>/dev/null || echo "$2")"
    else
        line "$1" MISSING "$3; get it: apt-get install $4"
        [ "$5" = needed ] && bad=2
    fi
}
tool() { # name, version command, what is lost, package
    if command -v "$1" >/dev/null 2>&1; then
        line "$1" found "$($2 2>/dev/null | head -n 1)"
    else
        line "$1" missing "$3; get it: $4"
    fi
}

if command -v "$cc" >/dev/null 2>&1; then
    line "$cc" found "$($cc --version | head -n 1)"
else
    line "$cc" MISSING "nothing can be built; get it: apt-get install gcc libc6-dev, or make CC=clang"
    exit 2
fi
header GMP gmp.h "no oracle, so no program" libgmp-dev needed
header MPFR mpfr.h "no oracle, so no program" libmpfr-dev needed
header Jansson jansson.h "real input cannot be read, so no program" libjansson-dev needed
header Criterion criterion/criterion.h "make test cannot run the unit tests; verify and mutants still work" libcriterion-dev optional
if printf 'int main(void) { return 0; }' | $cc -fopenmp -x c - -o /dev/null >/dev/null 2>&1; then
    line OpenMP found "oracle and judge use every core"
else
    line OpenMP missing "everything works on one core: make OPENMP="
fi
tool gnuplot "gnuplot --version" "make report writes no plots" "apt-get install gnuplot-nox"
tool clang-format "clang-format --version" "make fmt and make lint" "apt-get install clang-format"
tool coqc "coqc --version" "make proofs cannot check the proofs; nothing else is lost" "make setup-proofs"
tool nvcc "nvcc --version" "no CUDA rung can be compiled for a GPU; nothing else is lost" "the CUDA Toolkit"
tool nvidia-smi "nvidia-smi -L" "no GPU here; nothing on the CPU is lost" "a machine with an NVIDIA GPU"
[ $bad -eq 0 ] && echo "Ready: make test, make report" || echo "Not ready: make setup installs the packages named above (Debian, Ubuntu)"
exit $bad
