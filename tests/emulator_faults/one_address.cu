/* No fault: 4, 8 and 16 bytes from shared memory, by every lane its own or (args.right) all from one address. */
#include "fault.h"

FD_KERNEL(fd_k_one_address, fd_fault_args, 32)
{
    FD_SMEM_DYN(uint64_t, shared);
    const int32_t t = (int32_t)threadIdx.x, i = args.right ? 0 : t;
    const unsigned char *const x = (const unsigned char *)shared;
    shared[t] = 0;
    shared[32 + t] = 0;
    __syncwarp(FD_FULL_MASK);
    args.x[t] = (float)(*(const uint32_t *)(const void *)(x + 4 * i) + *(const uint64_t *)(const void *)(x + 8 * i) +
                        fd_ld16(x + 16 * i).w[0]);
}

FD_FAULT(one_address, .grid = {.x = 1}, .block = {.x = 32}, .smem = 64 * sizeof(uint64_t))
