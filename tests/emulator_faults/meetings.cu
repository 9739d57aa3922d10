/* No fault: lane after lane loads an element. What comes at one place between two meetings is taken for one request, as if the
 * lanes ran in step; with a meeting after each (args.right) there are four. */
#include "fault.h"

FD_KERNEL(fd_k_meetings, fd_fault_args, 32)
{
    const int32_t t = (int32_t)threadIdx.x;
    float sum = 0.0f;
    for (int32_t lane = 0; lane < args.n / 75; lane++) {
        if (t == lane) {
            sum += args.x[8 * lane];
        }
        if (args.right) {
            __syncwarp(FD_FULL_MASK);
        }
    }
    args.x[100 + t] = sum;
}

FD_FAULT(meetings, .grid = {.x = 1}, .block = {.x = 32})
