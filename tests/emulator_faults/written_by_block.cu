/* All blocks read a value, and the last one changes it after waiting for its own threads only. */
#include "fault.h"

FD_KERNEL(fd_k_written_by_block, fd_fault_args, 64)
{
    const int32_t t = (int32_t)threadIdx.x, block = (int32_t)blockIdx.x;
    args.x[64 + 64 * block + t] = args.x[0]; /* FAULT */
    __syncthreads();
    if (!args.right && t == 0 && block == 1) {
        args.x[0] = 2.0f; /* FAULT */
    }
}

FD_FAULT(written_by_block, .grid = {.x = 2}, .block = {.x = 64})
