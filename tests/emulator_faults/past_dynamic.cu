/* One past the end of dynamic shared memory. */
#include "fault.h"

FD_KERNEL(fd_k_past_dynamic, fd_fault_args, 64)
{
    FD_SMEM_DYN(float, tile);
    const int32_t t = (int32_t)threadIdx.x;
    tile[args.right ? t : t + 1] = args.x[t]; /* FAULT */
    __syncthreads();
    args.x[t] = tile[1 + t % 63];
}

FD_FAULT(past_dynamic, .grid = {.x = 1}, .block = {.x = 64}, .smem = 64 * sizeof(float))
