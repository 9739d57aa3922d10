/* A tile is filled again while others still read it. */
#include "fault.h"

FD_KERNEL(fd_k_tile_reused, fd_fault_args, 64)
{
    __shared__ float tile[64];
    const int32_t t = (int32_t)threadIdx.x;
    tile[t] = 0.0f;
    __syncthreads();

    for (int32_t round = 0; round < 2; round++) {
        tile[t] = args.x[64 * round + t]; /* FAULT */
        __syncthreads();
        args.x[128 + t] += tile[63 - t]; /* FAULT */
        if (args.right) {
            __syncthreads();
        }
    }
}

FD_FAULT(tile_reused, .grid = {.x = 1}, .block = {.x = 64})
