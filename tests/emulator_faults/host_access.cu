/* Host code reads device memory. */
#include "fault.h"

FD_KERNEL(fd_k_host_access, fd_fault_args, 64)
{
    args.x[threadIdx.x] = 1.0f;
}

static fd_status host_access_launch(const fd_context *context, int32_t right)
{
    const fd_fault_args args = {(float *)context->workspace, FD_FAULT_FLOATS, right};
    const fd_launch launch = {.grid = {.x = 1}, .block = {.x = 64}};
    if (!right && args.x[0] > 0.0f) { /* FAULT */
        return FD_OK;
    }
    return FD_LAUNCH(fd_k_host_access, launch, args);
}

FD_FAULT_RUNGS(host_access)
