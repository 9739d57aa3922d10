/* Each half of a warp waits for itself only, and reads what the other half wrote. */
#include "fault.h"

FD_KERNEL(fd_k_partial_mask, fd_fault_args, 64)
{
    __shared__ float tile[64];
    const int32_t t = (int32_t)threadIdx.x;
    tile[t] = 0.0f;
    __syncthreads();

    tile[t] = args.x[t]; /* FAULT */
    if ((t & 16) != 0) {
        __syncwarp(0xffff0000u);
    } else {
        __syncwarp(0x0000ffffu);
    }
    args.x[t] = tile[args.right ? t ^ 1 : t ^ 16]; /* FAULT */
}

FD_FAULT(partial_mask, .grid = {.x = 1}, .block = {.x = 64})
