/* schedule.h: who runs next: blocks, warps and lanes in the order of fd_emu_options.schedule. */
#ifndef FD_EMU_SCHEDULE_H
#define FD_EMU_SCHEDULE_H

#include "block.h"

void emu_seed(uint64_t seed); /* of emu_random() */

/* The i-th of n in the order of the schedule; a shuffled one goes from `first` in steps of `step`, coprime to n. */
int64_t emu_in_order(int64_t i, int64_t n, int64_t first, int64_t step);
int64_t emu_coprime_to(int64_t n); /* at random */

/* One of a set of lanes, which is not empty. */
static inline int emu_pick_lane(uint32_t set)
{
    switch (emu_options.schedule) {
    case FD_EMU_REVERSED:
        return 31 - __builtin_clz(set);
    case FD_EMU_SHUFFLED: {
        const unsigned turn = (unsigned)(emu_random() & 31u);
        const uint32_t turned = turn == 0 ? set : set >> turn | set << (32u - turn);
        return (int)(((unsigned)__builtin_ctz(turned) + turn) & 31u);
    }
    default:
        return __builtin_ctz(set);
    }
}

static inline void emu_switch_to(fd_fiber *from, emu_thread *to, int last)
{
    fd_emu_self = &to->self;
    fd_fiber_switch(from, &to->fiber, last);
}

/* Continues another lane of the warp, or the scheduler. In a shuffled schedule it is always the scheduler's turn. */
static inline void emu_leave(emu_thread *self, int last)
{
    emu_warp *warp = self->warp;
    emu_running->switches++;
    if (warp->runnable != 0 && emu_options.schedule != FD_EMU_SHUFFLED) {
        emu_switch_to(&self->fiber, &warp->threads[emu_pick_lane(warp->runnable)], last);
    } else {
        fd_fiber_switch(&self->fiber, &emu_running->scheduler, last);
    }
}

/* What a thread's fiber begins with: the kernel, and the thread's end. */
void emu_thread_main(void);

/* One block or one cluster, to its end, to a fault, or to where it waits for the launch before this one. */
void emu_run_blocks(emu_launch *run);

#endif /* FD_EMU_SCHEDULE_H */
