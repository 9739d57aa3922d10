/* Everybody adds to one sum. */
#include "fault.h"

FD_KERNEL(fd_k_shared_race, fd_fault_args, 64)
{
    __shared__ float sum;
    const int32_t t = (int32_t)threadIdx.x;
    if (t == 0) {
        sum = 0.0f;
    }
    __syncthreads();
    if (!args.right || t == 0) {
        sum += args.x[t]; /* FAULT */
    }
    __syncthreads();
    args.x[t] = sum;
}

FD_FAULT(shared_race, .grid = {.x = 1}, .block = {.x = 64})
