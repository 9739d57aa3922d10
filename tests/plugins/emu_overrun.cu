/* Writes a batch behind o. */
#include "emu_plugin.h"

FD_KERNEL(overrun_kernel, fd_problem, FD_WARP)
{
    ((float *)args.o.data)[threadIdx.x + args.batch * args.o.stride[0] + 128] = 1.0f; /* FAULT */
}

PLUGIN(overrun_kernel)
