/* Two threads wait, politely, for what nobody does. */
#include "fault.h"

FD_KERNEL(fd_k_spin_deadlock, fd_fault_args, 64)
{
    uint32_t *const flag = (uint32_t *)args.x;
    if (threadIdx.x == 0) {
        fd_store_release(&flag[0], (uint32_t)args.right);
    }
    while (threadIdx.x < 2 && fd_load_acquire(&flag[0]) == 0) {
        fd_spin(); /* FAULT */
    }
}

FD_FAULT(spin_deadlock, .grid = {.x = 1}, .block = {.x = 64})
