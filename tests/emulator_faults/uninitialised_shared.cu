/* Half of a tile is not written by this block; that the one before wrote it, when it did, is no excuse. */
#include "fault.h"

FD_KERNEL(fd_k_uninitialised_shared, fd_fault_args, 64)
{
    __shared__ float tile[64];
    const int32_t t = (int32_t)threadIdx.x, block = (int32_t)blockIdx.x;
    if (args.right || t < 32 || block == 0) {
        tile[t] = args.x[64 * block + t];
    }
    __syncthreads();
    args.x[64 * block + t] = tile[t]; /* FAULT */
}

FD_FAULT(uninitialised_shared, .grid = {.x = 2}, .block = {.x = 64})
