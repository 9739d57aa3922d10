/* One past the end of the shared arrays, through a pointer. */
#include "fault.h"

FD_KERNEL(fd_k_past_static, fd_fault_args, 64)
{
    __shared__ float tile[64];
    const int32_t t = (int32_t)threadIdx.x;
    float *const to = tile + (args.right ? 0 : 1);
    to[t] = args.x[t]; /* FAULT */
    __syncthreads();
    args.x[t] = tile[1 + t % 63];
}

FD_FAULT(past_static, .grid = {.x = 1}, .block = {.x = 64})
