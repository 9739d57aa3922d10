/* A float at an odd address. */
#include "fault.h"

FD_KERNEL(fd_k_misaligned_float, fd_fault_args, 64)
{
    const int32_t t = (int32_t)threadIdx.x;
    const unsigned char *const at = (const unsigned char *)(args.x + t) + (args.right ? 0 : 1);
    args.x[100 + t] = *(const float *)(const void *)at; /* FAULT */
}

FD_FAULT(misaligned_float, .grid = {.x = 1}, .block = {.x = 64})
