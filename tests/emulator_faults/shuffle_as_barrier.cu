/* A shuffle makes the lanes meet, but orders no memory. */
#include "fault.h"

FD_KERNEL(fd_k_shuffle_as_barrier, fd_fault_args, 64)
{
    __shared__ float tile[64];
    const int32_t t = (int32_t)threadIdx.x;
    tile[t] = 0.0f;
    __syncthreads();

    tile[t] = args.x[t]; /* FAULT */
    args.x[64 + t] = __shfl_xor_sync(FD_FULL_MASK, args.x[t], 1);
    if (args.right) {
        __syncwarp(FD_FULL_MASK);
    }
    args.x[t] = tile[t ^ 1]; /* FAULT */
}

FD_FAULT(shuffle_as_barrier, .grid = {.x = 1}, .block = {.x = 64})
