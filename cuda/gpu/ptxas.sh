#!/bin/sh
# ptxas.sh NVCC "ARCH ..." FILE.cu FLAG...: one CSV line a kernel and architecture: what ptxas made of it. Fails, with the
# compiler's own words, on any warning.
set -u
nvcc=$1 archs=$2 file=$3
shift 3
log=$(mktemp) || exit 2
trap 'rm -f "$log"' EXIT
for arch in $archs; do
    if ! "$nvcc" "$@" --Werror all-warnings -gencode "arch=compute_$arch,code=sm_$arch" -cubin -Xptxas -v \
        -o /dev/null "$file" >"$log" 2>&1; then
        cat "$log" >&2
        echo "ptxas: $file does not compile for sm_$arch without a warning" >&2
        exit 1
    fi
    # _Z8fd_k_one8one_args or _ZL8fd_k_...: the digits say how long the kernel's name is.
    awk -v rung="$(basename "$file" .cu)" -v arch="$arch" '
        /warning/ { print > "/dev/stderr"; bad = 1 }
        /Compiling entry function/ {
            split($0, quoted, "\047")
            name = quoted[2]
            sub(/^_ZL?/, "", name)
            n = name + 0
            kernel = n > 0 ? substr(name, length(n) + 1, n) : quoted[2]
        }
        /bytes stack frame/ { stack = $1; stores = $5; loads = $9 }
        /Used [0-9]+ registers/ {
            smem = 0
            for (i = 2; i <= NF; i++) {
                if ($i ~ /^registers/) registers = $(i - 1)
                if ($i ~ /^smem/) smem = $(i - 2)
            }
            printf "%s,%s,sm_%s,%d,%d,%d,%d,%d\n", rung, kernel, arch, registers, smem, stack, stores, loads
        }
        END { exit bad }' "$log" || exit 1
done
