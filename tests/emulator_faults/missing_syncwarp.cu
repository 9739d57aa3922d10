/* The lanes of a warp are taken to run in step. */
#include "fault.h"

FD_KERNEL(fd_k_missing_syncwarp, fd_fault_args, 64)
{
    __shared__ float tile[64];
    const int32_t t = (int32_t)threadIdx.x;
    tile[t] = 0.0f;
    __syncthreads();

    tile[t] = args.x[t]; /* FAULT */
    if (args.right) {
        __syncwarp(FD_FULL_MASK);
    }
    args.x[t] = tile[t ^ 1]; /* FAULT */
}

FD_FAULT(missing_syncwarp, .grid = {.x = 1}, .block = {.x = 64})
