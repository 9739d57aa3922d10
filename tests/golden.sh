#!/bin/sh
# golden.sh [PROGRAM...]: the golden vectors as somebody without this project meets them: checksums, the reader in C, a right
# function and a wrong one; and each PROGRAM (other compilers' builds) writes the same bits. Exit code: 0, 1.
set -u
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
fail() {
    echo "golden.sh: $*"
    exit 1
}

(cd data/golden && sha256sum --quiet -c SHA256SUMS) || fail "checksums"
for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    build() { $compiler -std=c99 -O2 -Wall -Wextra -Wpedantic -Werror "$@" data/golden/judge.c data/golden/naive.c -lm; }
    build -o "$out/judge" && build -DWRONG -o "$out/wrong" || fail "$compiler does not compile the reader"
    "$out/judge" data/golden/*.safetensors >"$out/judge.txt" || fail "a right function: $(grep FAIL "$out/judge.txt" | head -n 1)"
    "$out/wrong" data/golden/*.safetensors >"$out/wrong.txt" && fail "a wrong function passes"
    [ "$(grep -c '^FAIL.*negative' "$out/wrong.txt")" -eq 4 ] && [ "$(grep -c '^FAIL' "$out/wrong.txt")" -eq 4 ] ||
        fail "a maximum started at 0 must fail on the four all-negative files: $(tail -n 1 "$out/wrong.txt")"
done
"$out/judge" README.md >/dev/null 2>&1
[ $? -eq 2 ] || fail "a file that is no golden vector must end with 2"
for program; do
    mkdir "$out/new" && "$program" golden "$out/new" >/dev/null || fail "$program golden"
    for file in "$out"/new/*; do
        cmp "$file" "data/golden/${file##*/}" || fail "$program writes other bits"
    done
    rm -r "$out/new"
done
tail -n 1 "$out/judge.txt"
