/* Writes behind an allocation. */
#include "fault.h"

FD_KERNEL(fd_k_global_write, fd_fault_args, 64)
{
    const int32_t t = (int32_t)threadIdx.x;
    args.x[t == 40 ? args.n - args.right : t] = 1.0f; /* FAULT */
}

FD_FAULT(global_write, .grid = {.x = 1}, .block = {.x = 64})
