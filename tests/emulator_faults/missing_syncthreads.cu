/* A tile is read before all of it has been written. */
#include "fault.h"

FD_KERNEL(fd_k_missing_syncthreads, fd_fault_args, 64)
{
    __shared__ float tile[64];
    const int32_t t = (int32_t)threadIdx.x;
    tile[t] = 0.0f;
    __syncthreads();

    tile[t] = args.x[t]; /* FAULT */
    if (args.right) {
        __syncthreads();
    }
    args.x[t] = tile[63 - t]; /* FAULT */
}

FD_FAULT(missing_syncthreads, .grid = {.x = 1}, .block = {.x = 64})
