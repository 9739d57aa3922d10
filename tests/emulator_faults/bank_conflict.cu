/* A column of a tile of 32 columns: no fault, 32 passes instead of 1. With a 33rd column there is none. */
#include "fault.h"

FD_KERNEL(fd_k_bank_conflict, fd_fault_args, 32)
{
    __shared__ float tile[32 * 33];
    const int32_t t = (int32_t)threadIdx.x, row = args.right ? 33 : 32;
    tile[row * t] = args.x[t];
    __syncthreads();
    args.x[t] = tile[row * (31 - t)];
}

FD_FAULT(bank_conflict, .grid = {.x = 1}, .block = {.x = 32})
