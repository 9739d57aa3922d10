/* Reads the byte behind an allocation. */
#include "fault.h"

FD_KERNEL(fd_k_global_byte, fd_fault_args, 32)
{
    const unsigned char *const bytes = (const unsigned char *)args.x;
    const int32_t t = (int32_t)threadIdx.x, last = 4 * args.n - (args.right ? 1 : 0);
    args.x[t] = (float)bytes[t == 5 ? last : 1000]; /* FAULT */
}

FD_FAULT(global_byte, .grid = {.x = 1}, .block = {.x = 32})
