/* schedule.c: who runs next. Within a warp one lane runs until it waits, then the next runnable lane of the warp continues; a
 * warp runs until all its lanes wait, then another one is picked. */
#include "schedule.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "observe.h"

#define SPIN_ROUNDS 4 /* passes over all spinning threads, without anybody else moving, that make a deadlock */

fd_emu_identity *fd_emu_self;
emu_launch *emu_running;

static uint64_t random_state;

/* ---- Choosing who runs next ---- */

void emu_seed(uint64_t seed)
{
    random_state = seed ^ 0x464c415348u;
}

uint64_t emu_random(void)
{
    uint64_t x = random_state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* No emulated grid has 2^31 blocks: nothing overflows. */
int64_t emu_in_order(int64_t i, int64_t n, int64_t first, int64_t step)
{
    switch (emu_options.schedule) {
    case FD_EMU_REVERSED:
        return n - 1 - i;
    case FD_EMU_SHUFFLED:
        return (i * step + first) % n;
    default:
        return i;
    }
}

int64_t emu_coprime_to(int64_t n)
{
    for (;;) {
        const int64_t step = (int64_t)(emu_random() % (uint64_t)n) + 1;
        int64_t a = step, b = n;
        while (b != 0) {
            const int64_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1) {
            return step;
        }
    }
}

/* A warp with a runnable lane, or with a spinning one if spinning is set; NULL: there is none. */
static emu_warp *pick_warp(emu_launch *run, bool spinning)
{
    const int64_t per_block = run->blocks[0].num_warps, n = per_block * run->num_blocks;
    const int64_t first = emu_options.schedule == FD_EMU_SHUFFLED ? (int64_t)(emu_random() % (uint64_t)n) : 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = emu_in_order(i, n, first, 1);
        emu_warp *warp = &run->blocks[at / per_block].warps[at % per_block];
        if ((spinning ? warp->spinning : warp->runnable) != 0) {
            return warp;
        }
    }
    return NULL;
}

/* ---- Threads ---- */

static uint32_t *lanes_in(emu_warp *warp, int32_t wait)
{
    switch (wait) {
    case WAIT_WARP:
        return &warp->at_warp;
    case WAIT_BLOCK:
        return &warp->at_block;
    case WAIT_SPIN:
        return &warp->spinning;
    case WAIT_MBAR:
    case WAIT_CLUSTER:
    case WAIT_OVERLAP:
        return &warp->elsewhere;
    default:
        return &warp->runnable;
    }
}

void emu_block_self(emu_thread *self, int32_t wait)
{
    const uint32_t bit = 1u << self->lane;
    self->wait = wait;
    self->warp->runnable &= ~bit;
    *lanes_in(self->warp, wait) |= bit;
    emu_leave(self, 0);
}

void emu_wake(emu_thread *thread)
{
    const uint32_t bit = 1u << thread->lane;
    *lanes_in(thread->warp, thread->wait) &= ~bit;
    thread->wait = WAIT_NOT;
    thread->warp->runnable |= bit;
}

static void thread_leaves(emu_thread *self, emu_block *block)
{
    emu_launch *run = emu_running;
    const uint32_t bit = 1u << self->lane;
    if (self->first_copy != 0) {
        emu_async_end_thread(self);
    }
    if (--block->present == 0 && run->async != NULL) {
        emu_async_end_block(block);
    }
    self->wait = WAIT_GONE;
    self->warp->runnable &= ~bit;
    self->warp->present &= ~bit;
    if (run->at_cluster_barrier > 0) {
        emu_cluster_thread_left(run);
    }
    if (block->present == 0 && run->num_blocks > 1) {
        emu_cluster_leave(block);
    }
}

void emu_thread_main(void)
{
    emu_thread *self = emu_self();
    emu_block *block = self->warp->block;
    fd_fiber_entered(&self->fiber);
    if (emu_running->num_blocks > 1) {
        emu_cluster_enter(block);
    }
    emu_running->enter(emu_running->args);
    thread_leaves(self, block);
    emu_leave(self, 1);
}

void fd_emu_syncthreads(const char *file, int line)
{
    emu_thread *self = emu_self();
    emu_block *block = self->warp->block;
    self->file = file;
    self->line = line;
    if (++block->arrived < block->num_threads) {
        emu_block_self(self, WAIT_BLOCK);
        return;
    }
    for (int32_t i = 0; i < block->num_threads; i++) {
        emu_thread *other = &block->threads[i];
        if (other->line != line || (other->file != file && strcmp(other->file, file) != 0)) {
            emu_report(FD_EMU_BARRIER, file, line, "thread %" PRId32 " is at the barrier of line %" PRId32,
                       other->index, other->line);
            emu_fail();
        }
    }
    block->arrived = 0;
    emu_running->counters->barriers++;
    emu_observe_barrier(block);
    for (int32_t w = 0; w < block->num_warps; w++) {
        emu_wake_lanes(&block->warps[w], block->warps[w].at_block, &block->warps[w].at_block);
    }
}

void fd_emu_spin(const char *file, int line)
{
    emu_thread *self = emu_self();
    self->file = file;
    self->line = line;
    emu_block_self(self, WAIT_SPIN);
}

/* ---- Until nobody can run ---- */

/* Everybody waits: says at what, for the first thread of each kind of wait. */
static void report_stuck(emu_launch *run)
{
    for (int32_t b = 0; b < run->num_blocks; b++) {
        emu_block *block = &run->blocks[b];
        const emu_thread *kind[WAIT_GONE + 1] = {NULL};
        int count[WAIT_GONE + 1] = {0};
        for (int32_t i = 0; i < block->num_threads; i++) {
            const emu_thread *t = &block->threads[i];
            kind[t->wait] = count[t->wait]++ == 0 ? t : kind[t->wait];
        }
        const emu_thread *warp = kind[WAIT_WARP], *bar = kind[WAIT_BLOCK], *spin = kind[WAIT_SPIN];
        if (kind[WAIT_MBAR] != NULL) {
            emu_mbar_report_stuck(block);
        } else if (warp != NULL) {
            const uint32_t gone = warp->mask & ~warp->warp->at_warp;
            emu_report_at(FD_EMU_WARP, warp, NULL, warp->file, warp->line,
                          "waits for the lanes %08" PRIx32 " of its mask %08" PRIx32 ", which %s", gone, warp->mask,
                          (gone & warp->warp->present) != gone ? "have left the kernel" : "are elsewhere");
        } else if (bar != NULL) {
            emu_report_at(FD_EMU_BARRIER, bar, NULL, bar->file, bar->line,
                          "%d of %" PRId32 " threads wait at the barrier, %d have left the kernel", count[WAIT_BLOCK],
                          block->num_threads, count[WAIT_GONE]);
        } else if (spin != NULL) {
            emu_report_at(FD_EMU_DEADLOCK, spin, NULL, spin->file, spin->line,
                          "%d threads spin for something that nobody who runs will do", count[WAIT_SPIN]);
        } else if (kind[WAIT_CLUSTER] != NULL) {
            emu_report_at(FD_EMU_BARRIER, kind[WAIT_CLUSTER], NULL, kind[WAIT_CLUSTER]->file, kind[WAIT_CLUSTER]->line,
                          "%d threads wait at the cluster barrier for others, which are elsewhere",
                          count[WAIT_CLUSTER]);
        }
    }
}

/* Threads of the first blocks that wait for the launch before this one. */
static bool any_at_overlap(const emu_launch *run)
{
    for (int32_t b = 0; run->prior != NULL && b < run->num_blocks; b++) {
        for (int32_t i = 0; i < run->blocks[b].num_threads; i++) {
            if (run->blocks[b].threads[i].wait == WAIT_OVERLAP) {
                return true;
            }
        }
    }
    return false;
}

void emu_run_blocks(emu_launch *run)
{
    int rounds = 0;
    int64_t seen = 0;
    while (!run->failed) {
        emu_warp *warp = pick_warp(run, false);
        if (warp != NULL) {
            emu_switch_to(&run->scheduler, &warp->threads[emu_pick_lane(warp->runnable)], 0);
            continue;
        }
        if (any_at_overlap(run)) {
            return;
        }
        if (emu_async_progress(run)) {
            continue;
        }
        int32_t present = 0, spinning = 0;
        for (int32_t b = 0; b < run->num_blocks; b++) {
            present += run->blocks[b].present;
            for (int32_t w = 0; w < run->blocks[b].num_warps; w++) {
                spinning += __builtin_popcount(run->blocks[b].warps[w].spinning);
            }
        }
        if (present == 0) {
            return;
        }
        /* Each spinner gets a turn; when nobody did anything but spin for some turns each, nobody ever will. */
        rounds = run->switches - seen > spinning ? 0 : rounds + 1;
        seen = run->switches;
        if (spinning == 0 || rounds > SPIN_ROUNDS) {
            report_stuck(run);
            run->failed = true;
            return;
        }
        while ((warp = pick_warp(run, true)) != NULL) {
            emu_wake(&warp->threads[emu_pick_lane(warp->spinning)]);
        }
    }
}

_Noreturn void emu_fail(void)
{
    emu_running->failed = true;
    fd_fiber_switch(&emu_self()->fiber, &emu_running->scheduler, 1);
    abort(); /* nobody continues a failed thread */
}
