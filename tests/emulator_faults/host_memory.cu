/* A kernel reads a variable of the host. */
#include "fault.h"

static float host_value = 1.0f;

FD_KERNEL(fd_k_host_memory, fd_fault_args, 64)
{
    const int32_t t = (int32_t)threadIdx.x;
    args.x[t] = args.right ? 1.0f : host_value; /* FAULT */
}

static fd_status host_memory_launch(const fd_context *context, int32_t right)
{
    const fd_fault_args args = {(float *)context->workspace, FD_FAULT_FLOATS, right};
    const fd_launch launch = {.grid = {.x = 1}, .block = {.x = 64}};
    host_value += 1.0f;
    return FD_LAUNCH(fd_k_host_memory, launch, args);
}

FD_FAULT_RUNGS(host_memory)
