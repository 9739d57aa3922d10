/* One past the end of an array whose size the compiler knows. */
#include "fault.h"

FD_KERNEL(fd_k_index_static, fd_fault_args, 64)
{
    __shared__ float tile[64];
    const int32_t t = (int32_t)threadIdx.x;
    tile[args.right ? t : t + 1] = args.x[t]; /* FAULT */
    __syncthreads();
    args.x[t] = tile[63 - t];
}

FD_FAULT(index_static, .grid = {.x = 1}, .block = {.x = 64})
