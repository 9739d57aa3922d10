/* A sum through shared memory without a barrier: the emulator names the line. */
#include "emu_plugin.h"

FD_KERNEL(race_kernel, fd_problem, FD_WARP)
{
    __shared__ float part[FD_WARP];
    part[threadIdx.x] = 0.0f;
    __syncwarp(FD_FULL_MASK);
    part[threadIdx.x] = fd_load(&args.q, threadIdx.x % (uint32_t)args.head_dim);
    ((float *)args.o.data)[threadIdx.x] = part[(threadIdx.x + 1) % FD_WARP]; /* FAULT */
}

PLUGIN(race_kernel)
