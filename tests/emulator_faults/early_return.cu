/* Threads without work leave before a barrier. */
#include "fault.h"

FD_KERNEL(fd_k_early_return, fd_fault_args, 64)
{
    const int32_t t = (int32_t)threadIdx.x;
    if (!args.right && t >= 50) {
        return;
    }
    __syncthreads(); /* FAULT */
    args.x[t] = 1.0f;
}

FD_FAULT(early_return, .grid = {.x = 1}, .block = {.x = 64})
