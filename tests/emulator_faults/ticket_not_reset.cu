/* The ticket counter is left as it is: the next launch finds no last block. */
#include "fault.h"

FD_KERNEL(fd_k_ticket_not_reset, fd_fault_args, 64)
{
    /* The last block to take a ticket adds up what all have written. */
    __shared__ uint32_t ticket;
    uint32_t *const count = (uint32_t *)args.x + 200;
    const int32_t t = (int32_t)threadIdx.x, block = (int32_t)blockIdx.x;
    args.x[t + 64 * block] = 1.0f; /* FAULT */
    __threadfence();
    __syncthreads();
    if (t == 0) {
        ticket = fd_atomic_add_acqrel(count, 1);
    }
    __syncthreads();
    if (ticket == gridDim.x - 1) {
        float sum = 0.0f;
        for (uint32_t b = 0; b < gridDim.x; b++) {
            sum += args.x[t + 64 * (int32_t)b]; /* FAULT */
        }
        args.x[204 + t] += sum;
        if (t == 0 && args.right) {
            *count = 0;
        }
    }
}

FD_FAULT(ticket_not_reset, .grid = {.x = 3}, .block = {.x = 64})
