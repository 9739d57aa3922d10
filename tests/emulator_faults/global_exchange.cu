/* Threads of a block exchange through global memory without a barrier. */
#include "fault.h"

FD_KERNEL(fd_k_global_exchange, fd_fault_args, 64)
{
    const int32_t t = (int32_t)threadIdx.x;
    args.x[t] = 1.0f; /* FAULT */
    if (args.right) {
        __syncthreads();
    }
    args.x[100 + t] = args.x[63 - t]; /* FAULT */
}

FD_FAULT(global_exchange, .grid = {.x = 1}, .block = {.x = 64})
