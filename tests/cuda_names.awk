# cuda_names.awk: awk -f tests/cuda_names.awk cuda/[0-9][0-9]_*.cu cuda/*.h
# A CUDA rung, and a header that rungs share, uses the names that cuda/fd_cuda.h lists and no others of CUDA's: then the file
# is C for the emulator and C++ for nvcc, and nothing in it is hidden from the emulator. Prints file:line: what is not among
# them and what to use; exit code 1 if there is anything. Plain POSIX awk.

BEGIN {
    n = split("__shared__ __syncthreads __syncwarp __shfl_sync __shfl_xor_sync __shfl_up_sync __shfl_down_sync " \
        "__ballot_sync __any_sync __all_sync __threadfence __CUDACC__", names, " ")
    for (i = 1; i <= n; i++)
        allowed[names[i]] = 1
    n = split("fd.h fd_cuda.h plan.h rung.h combine.h vec.h tensor.h tensor_block.h tensor_host.h ring.h one_launch.h device.h math_claims.h gpu/math_error.h stdio.h stddef.h " \
        "stdint.h", names, " ")
    for (i = 1; i <= n; i++)
        header[names[i]] = 1
    refuse("asm", "PTX belongs into cuda/gpu/kernel.cuh, behind a wrapper of fd_cuda.h")
    refuse("volatile", "use fd_load_acquire() and fd_store_release()")
    refuse("restrict", "nvcc does not know it: use FD_RESTRICT")
    refuse("warpSize", "use FD_WARP")
    refuse("printf", "a kernel has no terminal; host code writes into why")
    n = split("template class namespace using typename constexpr auto operator new delete virtual static_cast " \
        "const_cast reinterpret_cast nullptr", names, " ")
    for (i = 1; i <= n; i++)
        refuse(names[i], "is C++: rungs keep to the C subset of CUDA")
}

function refuse(name, cure) { refused[name] = cure }

function complain(what, cure) {
    print FILENAME ":" FNR ": " what ": " cure
    bad = 1
}

FNR == 1 { in_comment = 0 }
FILENAME ~ /(^|\/)fd_cuda\.h$/ { next } # the list itself
{
    text = code($0)
    if (text ~ /^[ \t]*#[ \t]*include/) {
        name = $0
        gsub(/^[^<"]*[<"]|[>"].*$/, "", name)
        if (!(name in header))
            complain("#include " name, "rungs include fd_cuda.h and what rungs share")
        next
    }
    if (text ~ /<<<|>>>/)
        complain("<<<", "launch with FD_LAUNCH()")
    while (match(text, /[A-Za-z_][A-Za-z_0-9]*/)) {
        name = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        if (name in refused)
            complain(name, refused[name])
        else if (name ~ /^__/ && !(name in allowed))
            complain(name, "is not among the names at the head of fd_cuda.h")
        else if (name ~ /^cuda[A-Z]/ || name ~ /^cu[A-Z]/)
            complain(name, "the host's CUDA calls belong into cuda/gpu")
        else if (name ~ /^atomic[A-Z]/)
            complain(name, "use fd_atomic_add_acqrel()")
        else if (name ~ /^(fd_emu_|emu_|fd_gpu_)/)
            complain(name, "belongs to one side only; a rung must run on both")
        else if (name ~ /^(exp|exp2|log|log2|sqrt|pow|tanh|fmax|fabs)$/ && text ~ /^[ \t]*\(/)
            complain(name "()", "is double precision: use its float form")
    }
}
END { exit bad }

# The line without comments and without what stands between quotes.
function code(line,   out, at) {
    out = ""
    gsub(/\\["']/, "", line)
    while (line != "") {
        if (in_comment) {
            at = index(line, "*/")
            if (at == 0)
                return out
            line = substr(line, at + 2)
            in_comment = 0
        } else if (match(line, /\/\*|\/\/|"|'/)) {
            out = out substr(line, 1, RSTART - 1) " "
            at = substr(line, RSTART, RLENGTH)
            line = substr(line, RSTART + RLENGTH)
            if (at == "//")
                return out
            if (at == "/*")
                in_comment = 1
            else
                line = substr(line, index(line, at) + 1)
        } else {
            return out line
        }
    }
    return out
}
