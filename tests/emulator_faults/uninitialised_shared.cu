/* Half of a tile has never been written. */
#include "fault.h"

FD_KERNEL(fd_k_uninitialised_shared, fd_fault_args, 64)
{
    __shared__ float tile[64];
    const int32_t t = (int32_t)threadIdx.x;
    if (args.right || t < 32) {
        tile[t] = args.x[t];
    }
    __syncthreads();
    args.x[t] = tile[t]; /* FAULT */
}

FD_FAULT(uninitialised_shared, .grid = {.x = 1}, .block = {.x = 64})
