/* Neighbouring lanes read elements eight apart: no fault, 32 sectors a request instead of 4. */
#include "fault.h"

FD_KERNEL(fd_k_uncoalesced, fd_fault_args, 32)
{
    const int32_t t = (int32_t)threadIdx.x;
    args.x[256 + t] = args.x[args.right ? t : 8 * t];
}

FD_FAULT(uncoalesced, .grid = {.x = 1}, .block = {.x = 32})
