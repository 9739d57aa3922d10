/* More blocks along y than any GPU takes. */
#include "fault.h"

FD_KERNEL(fd_k_illegal_grid, fd_fault_args, 64)
{
    args.x[threadIdx.x] = 1.0f;
}

static fd_status illegal_grid_launch(const fd_context *context, int32_t right)
{
    const fd_fault_args args = {(float *)context->workspace, FD_FAULT_FLOATS, right};
    const fd_launch launch = {.grid = {.x = 1, .y = right ? 1u : 65536u}, .block = {.x = 64}};
    return FD_LAUNCH(fd_k_illegal_grid, launch, args);
}

FD_FAULT_RUNGS(illegal_grid)
