/* A block publishes data with an ordinary store. */
#include "fault.h"

FD_KERNEL(fd_k_release_missing, fd_fault_args, 1)
{
    uint32_t *const flag = (uint32_t *)args.x + 200;
    if (blockIdx.x == 0) {
        args.x[0] = 1.0f; /* FAULT */
        if (args.right) {
            fd_store_release(flag, 1);
        } else {
            *flag = 1; /* FAULT */
        }
    } else if (fd_load_acquire(flag) == 1) { /* FAULT */
        args.x[1] = args.x[0];               /* FAULT */
    } else {
        args.x[1] = -1.0f;
    }
}

FD_FAULT(release_missing, .grid = {.x = 2}, .block = {.x = 1})
