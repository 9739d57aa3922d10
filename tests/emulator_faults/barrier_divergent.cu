/* Two barriers, of which each thread takes one. */
#include "fault.h"

FD_KERNEL(fd_k_barrier_divergent, fd_fault_args, 64)
{
    const int32_t t = (int32_t)threadIdx.x;
    if (args.right || t < 32) {
        __syncthreads(); /* FAULT */
    } else {
        __syncthreads(); /* FAULT */
    }
    args.x[t] = 1.0f;
}

FD_FAULT(barrier_divergent, .grid = {.x = 1}, .block = {.x = 64})
