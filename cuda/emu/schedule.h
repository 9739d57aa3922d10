/* schedule.h: who runs next: blocks, warps and lanes in the order of fd_emu_options.schedule. */
#ifndef FD_EMU_SCHEDULE_H
#define FD_EMU_SCHEDULE_H

#include "block.h"

void emu_seed(uint64_t seed); /* of emu_random() */

/* The i-th of n in the order of the schedule; a shuffled one goes from `first` in steps of `step`, coprime to n. */
int64_t emu_in_order(int64_t i, int64_t n, int64_t first, int64_t step);
int64_t emu_coprime_to(int64_t n); /* at random */

/* What a thread's fiber begins with: the kernel, and the thread's end. */
void emu_thread_main(void);

/* One block or one cluster, to its end, to a fault, or to where it waits for the launch before this one. */
void emu_run_blocks(emu_launch *run);

#endif /* FD_EMU_SCHEDULE_H */
