/* A 16-byte load one float off. */
#include "fault.h"

FD_KERNEL(fd_k_misaligned_vector, fd_fault_args, 64)
{
    const int32_t t = (int32_t)threadIdx.x;
    const fd_vec16 v = fd_ld16(args.x + 4 * (t % 16) + (args.right ? 0 : 1)); /* FAULT */
    args.x[100 + t] = fd_float_from_bits(v.w[0]);
}

FD_FAULT(misaligned_vector, .grid = {.x = 1}, .block = {.x = 64})
