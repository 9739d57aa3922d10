/* Two threads wait for each other without letting anybody run. */
#include "fault.h"

FD_KERNEL(fd_k_bare_spin, fd_fault_args, 64)
{
    uint32_t *const flag = (uint32_t *)args.x;
    if (threadIdx.x == 0) {
        fd_store_release(&flag[0], 1);
        while (fd_load_acquire(&flag[1]) == 0) { /* FAULT */
            if (args.right) {
                fd_spin();
            }
        }
    } else if (threadIdx.x == 32) {
        while (fd_load_acquire(&flag[0]) == 0) { /* FAULT */
            if (args.right) {
                fd_spin();
            }
        }
        fd_store_release(&flag[1], 1);
    }
}

FD_FAULT(bare_spin, .grid = {.x = 1}, .block = {.x = 64})
