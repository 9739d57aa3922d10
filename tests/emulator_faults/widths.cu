/* No fault: loads of every width an instruction has, of neighbouring elements or (args.right) by every other lane. */
#include "fault.h"

FD_KERNEL(fd_k_widths, fd_fault_args, 32)
{
    FD_SMEM_DYN(uint64_t, shared);
    const int32_t t = (int32_t)threadIdx.x;
    const unsigned char *const x = (const unsigned char *)args.x, *const y = (const unsigned char *)shared;
    shared[t] = 0;
    shared[32 + t] = 0;
    __syncwarp(FD_FULL_MASK);
    if (args.right && t % 2 != 0) {
        return;
    }
    const uint64_t global = x[t] + *(const uint16_t *)(const void *)(x + 2 * t) +
                            *(const uint32_t *)(const void *)(x + 4 * t) +
                            *(const uint64_t *)(const void *)(x + 8 * t) + fd_ld16(x + 16 * t).w[0];
    const uint64_t local = y[t] + *(const uint16_t *)(const void *)(y + 2 * t) +
                           *(const uint32_t *)(const void *)(y + 4 * t) + *(const uint64_t *)(const void *)(y + 8 * t) +
                           fd_ld16(y + 16 * (t % 8)).w[0];
    args.x[200 + t] = (float)(global + local);
}

FD_FAULT(widths, .grid = {.x = 1}, .block = {.x = 32}, .smem = 64 * sizeof(uint64_t))
