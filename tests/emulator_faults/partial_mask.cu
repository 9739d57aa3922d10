/* Each half of a warp waits for itself only, and the upper one reads what the lower one wrote. */
#include "fault.h"

FD_KERNEL(fd_k_partial_mask, fd_fault_args, 32)
{
    __shared__ float tile[32];
    const int32_t t = (int32_t)threadIdx.x, from = args.right ? 16 : 0;
    tile[t] = 0.0f;
    __syncthreads();

    if (t < 16) {
        tile[t] = args.x[t]; /* FAULT */
        __syncwarp(0x0000ffffu);
    } else {
        tile[t] = args.x[t];
        __syncwarp(0xffff0000u);
        args.x[t] = tile[from + (t ^ 1) % 16]; /* FAULT */
    }
}

FD_FAULT(partial_mask, .grid = {.x = 1}, .block = {.x = 32})
