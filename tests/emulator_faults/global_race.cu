/* Two blocks write the same elements. */
#include "fault.h"

FD_KERNEL(fd_k_global_race, fd_fault_args, 64)
{
    const int32_t t = (int32_t)threadIdx.x, block = (int32_t)blockIdx.x;
    args.x[args.right ? 64 * block + t : t] = 1.0f; /* FAULT */
}

FD_FAULT(global_race, .grid = {.x = 2}, .block = {.x = 64})
