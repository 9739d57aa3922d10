# ptxas.awk FILE.ptxas...: what nvcc -Xptxas -v said while it compiled a rung for each architecture: one CSV line a kernel and
# architecture. Fails, with the compiler's own words, on any warning.
BEGIN { OFS = "," }
FNR == 1 {
    rung = FILENAME
    sub(/.*\//, "", rung)
    sub(/\.ptxas$/, "", rung)
}
/warning/ { print > "/dev/stderr"; bad = 1 }
# _Z8fd_k_one8one_args or _ZL8fd_k_...: the digits say how long the kernel's name is.
/Compiling entry function/ {
    split($0, quoted, "\047")
    name = quoted[2]
    arch = quoted[4]
    sub(/^_ZL?/, "", name)
    n = name + 0
    kernel = n > 0 ? substr(name, length(n) + 1, n) : quoted[2]
}
/bytes stack frame/ { stack = $1; stores = $5; loads = $9 }
/Used [0-9]+ registers/ {
    smem = 0
    for (i = 2; i <= NF; i++) {
        if ($i ~ /^registers/) registers = $(i - 1) + 0
        if ($i ~ /^smem/) smem = $(i - 2) + 0
    }
    print rung, kernel, arch, registers, smem, stack, stores, loads
}
END { exit bad }
