/* All lanes of a warp read a value, and the last one changes it without waiting for the others. */
#include "fault.h"

FD_KERNEL(fd_k_written_by_lane, fd_fault_args, 32)
{
    __shared__ float value;
    const int32_t t = (int32_t)threadIdx.x;
    if (t == 0) {
        value = 1.0f;
    }
    __syncwarp(FD_FULL_MASK);
    args.x[t] = value; /* FAULT */
    if (args.right) {
        __syncwarp(FD_FULL_MASK);
    }
    if (t == 31) {
        value = 2.0f; /* FAULT */
    }
}

FD_FAULT(written_by_lane, .grid = {.x = 1}, .block = {.x = 32})
