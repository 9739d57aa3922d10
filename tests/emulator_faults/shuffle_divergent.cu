/* Half of a warp shuffles with the whole of it. */
#include "fault.h"

FD_KERNEL(fd_k_shuffle_divergent, fd_fault_args, 64)
{
    const int32_t t = (int32_t)threadIdx.x;
    float x = args.x[t];
    if (args.right || t % FD_WARP < 16) {
        x += __shfl_xor_sync(FD_FULL_MASK, x, 1); /* FAULT */
    }
    args.x[t] = x;
}

FD_FAULT(shuffle_divergent, .grid = {.x = 1}, .block = {.x = 64})
