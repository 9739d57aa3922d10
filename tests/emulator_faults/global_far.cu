/* Reads far away from any allocation. */
#include "fault.h"

FD_KERNEL(fd_k_global_far, fd_fault_args, 64)
{
    const int32_t t = (int32_t)threadIdx.x;
    const int64_t far = args.right ? 0 : (int64_t)1 << 40;
    args.x[t] = args.x[64 + t + far]; /* FAULT */
}

FD_FAULT(global_far, .grid = {.x = 1}, .block = {.x = 64})
