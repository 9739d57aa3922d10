/* More threads a block than the kernel was compiled for. */
#include "fault.h"

FD_KERNEL(fd_k_illegal_launch, fd_fault_args, 64)
{
    args.x[threadIdx.x] = 1.0f;
}

static fd_status illegal_launch_launch(const fd_context *context, int32_t right)
{
    const fd_fault_args args = {(float *)context->workspace, FD_FAULT_FLOATS, right};
    const fd_launch launch = {.grid = {.x = 1}, .block = {.x = right ? 64u : 65u}};
    return FD_LAUNCH(fd_k_illegal_launch, launch, args);
}

FD_FAULT_RUNGS(illegal_launch)
