/* More dynamic shared memory than any GPU has. */
#include "fault.h"

FD_KERNEL(fd_k_illegal_shared, fd_fault_args, 64)
{
    args.x[threadIdx.x] = 1.0f;
}

static fd_status illegal_shared_launch(const fd_context *context, int32_t right)
{
    const fd_fault_args args = {(float *)context->workspace, FD_FAULT_FLOATS, right};
    const fd_launch launch = {.grid = {.x = 1}, .block = {.x = 64}, .smem = right ? 0u : 256u << 10};
    return FD_LAUNCH(fd_k_illegal_shared, launch, args);
}

FD_FAULT_RUNGS(illegal_shared)
