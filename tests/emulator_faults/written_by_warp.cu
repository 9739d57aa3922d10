/* All threads of a block read a value, and one changes it after waiting for its own warp only. */
#include "fault.h"

FD_KERNEL(fd_k_written_by_warp, fd_fault_args, 64)
{
    __shared__ float value;
    const int32_t t = (int32_t)threadIdx.x;
    if (t == 0) {
        value = 1.0f;
    }
    __syncthreads();
    args.x[t] = value; /* FAULT */
    if (args.right) {
        __syncthreads();
    } else {
        __syncwarp(FD_FULL_MASK);
    }
    if (t == 63) {
        value = 2.0f; /* FAULT */
    }
}

FD_FAULT(written_by_warp, .grid = {.x = 1}, .block = {.x = 64})
