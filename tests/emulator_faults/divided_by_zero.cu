/* An integer division by zero, which a GPU does not even notice. */
#include "fault.h"

FD_KERNEL(fd_k_divided_by_zero, fd_fault_args, 64)
{
    const int32_t t = (int32_t)threadIdx.x;
    args.x[t] = (float)(args.n / (t - (args.right ? 64 : 63))); /* FAULT */
}

FD_FAULT(divided_by_zero, .grid = {.x = 1}, .block = {.x = 64})
