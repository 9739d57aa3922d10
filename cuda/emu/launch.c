/* launch.c: runs a kernel: its blocks one after the other, the threads of a block as fibers that switch at each
 * rendezvous. Within a warp one lane runs until it waits, then the next runnable lane of the warp continues; a warp runs
 * until all its lanes wait, then the scheduler picks another. */
#define _DEFAULT_SOURCE /* sigsetjmp */

#include "block.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "observe.h"
#include "signals.h"

#define GRID_YZ_MAX 65535u
#define SPIN_ROUNDS 4 /* passes over all spinning threads, without anybody else moving, that make a deadlock */

fd_emu_identity *fd_emu_self;
emu_launch *emu_running;

static emu_thread *threads;     /* [capacity] */
static unsigned char *stacks;   /* [capacity] of EMU_STACK_BYTES */
static unsigned char *dynamics; /* dynamic shared memory of all blocks of a cluster */
static size_t capacity, dynamics_bytes;
static uint64_t random_state;

/* ---- Choosing who runs next ---- */

uint64_t emu_random(void)
{
    uint64_t x = random_state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static int pick_bit(uint32_t set)
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

/* The i-th of n in the order of the schedule; step is coprime to n. No emulated grid has 2^31 blocks: nothing overflows. */
static int64_t in_order(int64_t i, int64_t n, int64_t first, int64_t step)
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

static int64_t coprime_to(int64_t n)
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
        const int64_t at = in_order(i, n, first, 1);
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
    default:
        return &warp->runnable;
    }
}

static void switch_to(fd_fiber *from, emu_thread *to, int last)
{
    fd_emu_self = &to->self;
    fd_fiber_switch(from, &to->fiber, last);
}

/* Continues another lane of the warp, or the scheduler. In a shuffled schedule it is always the scheduler's turn. */
static void leave(emu_thread *self, int last)
{
    emu_warp *warp = self->warp;
    emu_running->switches++;
    if (warp->runnable != 0 && emu_options.schedule != FD_EMU_SHUFFLED) {
        switch_to(&self->fiber, &warp->threads[pick_bit(warp->runnable)], last);
    } else {
        fd_fiber_switch(&self->fiber, &emu_running->scheduler, last);
    }
}

void emu_block_self(emu_thread *self, int32_t wait)
{
    const uint32_t bit = 1u << self->lane;
    self->wait = wait;
    self->warp->runnable &= ~bit;
    *lanes_in(self->warp, wait) |= bit;
    leave(self, 0);
}

void emu_wake(emu_thread *thread)
{
    const uint32_t bit = 1u << thread->lane;
    *lanes_in(thread->warp, thread->wait) &= ~bit;
    thread->wait = WAIT_NOT;
    thread->warp->runnable |= bit;
}

static void thread_main(void)
{
    emu_thread *self = emu_self();
    fd_fiber_entered(&self->fiber);
    emu_running->enter(emu_running->args);
    const uint32_t bit = 1u << self->lane;
    self->wait = WAIT_GONE;
    self->warp->runnable &= ~bit;
    self->warp->present &= ~bit;
    self->warp->block->present--;
    leave(self, 1);
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
        if (other->line != line || strcmp(other->file, file) != 0) {
            emu_report(FD_EMU_BARRIER, file, line, "thread %" PRId32 " is at the barrier of line %" PRId32,
                       other->index, other->line);
            emu_fail();
        }
    }
    block->arrived = 0;
    emu_running->counters->barriers++;
    emu_observe_barrier(block);
    for (int32_t i = 0; i < block->num_threads; i++) {
        if (block->threads[i].wait == WAIT_BLOCK) {
            emu_wake(&block->threads[i]);
        }
    }
}

void fd_emu_spin(const char *file, int line)
{
    emu_thread *self = emu_self();
    self->file = file;
    self->line = line;
    emu_block_self(self, WAIT_SPIN);
}

/* ---- A block, or the blocks of a cluster ---- */

static void prepare(emu_launch *run, emu_block *block, int32_t at, fd_dim index)
{
    const fd_dim dim = run->threads;
    const size_t stride = fd_fiber_stack_stride(EMU_STACK_BYTES);
    *block = (emu_block){.index = index, .num_threads = (int32_t)(dim.x * dim.y * dim.z)};
    block->threads = threads + (size_t)at * (size_t)block->num_threads;
    block->num_warps = (block->num_threads + FD_WARP - 1) / FD_WARP;
    block->present = block->num_threads;
    block->dynamic = dynamics + (size_t)at * EMU_SHARED_MAX;
    emu_poison_shared(block, run->launch->smem);
    for (int32_t w = 0; w < block->num_warps; w++) {
        const int32_t left = block->num_threads - w * FD_WARP, lanes = left < FD_WARP ? left : FD_WARP;
        const uint32_t all = lanes == FD_WARP ? FD_FULL_MASK : (1u << lanes) - 1u;
        block->warps[w] = (emu_warp){block, block->threads + w * FD_WARP, lanes, all, all, 0, 0, 0};
    }
    for (int32_t i = 0; i < block->num_threads; i++) {
        emu_thread *t = &block->threads[i];
        struct emu_watch *watch = t->watch;
        const uint32_t x = (uint32_t)i;
        *t = (emu_thread){.self = {.thread_idx = {x % dim.x, x / dim.x % dim.y, x / dim.x / dim.y},
                                   .block_idx = index,
                                   .block_dim = dim,
                                   .grid_dim = run->grid},
                          .warp = &block->warps[i / FD_WARP],
                          .index = i,
                          .lane = i % FD_WARP,
                          .watch = watch};
        fd_fiber_prepare(&t->fiber, stacks + (size_t)(t - threads) * stride, EMU_STACK_BYTES, thread_main);
    }
    emu_observe_block(block);
}

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
        if (warp != NULL) {
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
        }
    }
}

/* One block or one cluster, to its end. */
static void run_blocks(emu_launch *run)
{
    int rounds = 0;
    int64_t seen = 0;
    while (!run->failed) {
        emu_warp *warp = pick_warp(run, false);
        if (warp != NULL) {
            switch_to(&run->scheduler, &warp->threads[pick_bit(warp->runnable)], 0);
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
            emu_wake(&warp->threads[pick_bit(warp->spinning)]);
        }
    }
}

/* A frame of its own, so that no variable of a caller changes between sigsetjmp() and its second return. */
static void run_guarded(emu_launch *run)
{
    if (emu_enter_kernel() == 0) { /* 1: a signal's fault has been reported, and the launch has failed */
        run_blocks(run);
    }
}

/* ---- Launch ---- */

static fd_dim at_least_one(fd_dim d)
{
    return (fd_dim){d.x > 0 ? d.x : 1, d.y > 0 ? d.y : 1, d.z > 0 ? d.z : 1};
}

static bool launch_is_legal(const emu_launch *run, int max_threads)
{
    const fd_dim g = run->grid, t = run->threads;
    const uint64_t count = (uint64_t)t.x * t.y * t.z, cluster = run->launch->cluster;
    if (count > EMU_MAX_THREADS || count > (uint64_t)max_threads) {
        emu_report(FD_EMU_LAUNCH, NULL, 0, "%" PRIu64 " threads a block, the kernel takes %d", count, max_threads);
    } else if (g.x > INT32_MAX || g.y > GRID_YZ_MAX || g.z > GRID_YZ_MAX) {
        emu_report(FD_EMU_LAUNCH, NULL, 0,
                   "a grid of %" PRIu32 " x %" PRIu32 " x %" PRIu32 ", the limit is 2147483647 x 65535 x 65535", g.x,
                   g.y, g.z);
    } else if (run->launch->smem > EMU_SHARED_MAX) {
        emu_report(FD_EMU_LAUNCH, NULL, 0, "%" PRIu32 " bytes of dynamic shared memory, the limit is %u",
                   run->launch->smem, EMU_SHARED_MAX);
    } else if (cluster > 16 || (cluster > 0 && g.x % cluster != 0)) {
        emu_report(FD_EMU_LAUNCH, NULL, 0, "clusters of %" PRIu64 " on a grid of %" PRIu32 " along x", cluster, g.x);
    } else {
        return true;
    }
    return false;
}

/* Threads, stacks and dynamic shared memory for one cluster; they are kept for the next launch. */
static bool reserve(size_t num_threads, size_t num_blocks)
{
    if (num_threads > capacity) {
        emu_thread *more = (emu_thread *)realloc(threads, num_threads * sizeof *threads);
        unsigned char *new_stacks = (unsigned char *)fd_fiber_stacks(num_threads, EMU_STACK_BYTES);
        threads = more != NULL ? more : threads;
        if (more == NULL || new_stacks == NULL) {
            return false;
        }
        memset(threads, 0, num_threads * sizeof *threads);
        stacks = new_stacks; /* the smaller ones stay mapped: a program does this a few times at most */
        capacity = num_threads;
    }
    if (num_blocks * EMU_SHARED_MAX > dynamics_bytes) {
        free(dynamics);
        dynamics_bytes = num_blocks * EMU_SHARED_MAX;
        dynamics = (unsigned char *)aligned_alloc(128, dynamics_bytes);
        dynamics_bytes = dynamics == NULL ? 0 : dynamics_bytes;
    }
    return dynamics != NULL;
}

fd_status fd_emu_launch(const char *name, void (*enter)(const void *args), int max_threads, const fd_emu_file *file,
                        const fd_launch *launch, const void *args, size_t args_bytes)
{
    emu_block cluster[16];
    emu_launch run = {.kernel = name,
                      .enter = enter,
                      .args = args,
                      .args_bytes = args_bytes,
                      .file = file,
                      .launch = launch,
                      .grid = at_least_one(launch->grid),
                      .threads = at_least_one(launch->block),
                      .blocks = cluster,
                      .num_blocks = launch->cluster > 0 ? (int32_t)launch->cluster : 1,
                      .counters = emu_counters_of(name)};
    emu_running = &run;
    run.failed = !launch_is_legal(&run, max_threads);
    const int64_t per_block = (int64_t)run.threads.x * run.threads.y * run.threads.z;
    if (!run.failed && !reserve((size_t)(per_block * run.num_blocks), (size_t)run.num_blocks)) {
        emu_report(FD_EMU_LAUNCH, NULL, 0, "no memory for the stacks of %" PRId64 " threads", per_block);
        run.failed = true;
    }
    const int64_t across = run.grid.x / (uint32_t)run.num_blocks, clusters = across * run.grid.y * run.grid.z;
    random_state = emu_options.seed ^ 0x464c415348u;
    const bool shuffled = emu_options.schedule == FD_EMU_SHUFFLED && !run.failed;
    const int64_t step = shuffled ? coprime_to(clusters) : 1;
    const int64_t first = shuffled ? (int64_t)(emu_random() % (uint64_t)clusters) : 0;
    emu_signals_begin(0);
    emu_open_memory(true);
    emu_observe_launch(&run);
    for (int64_t i = 0; i < clusters && !run.failed; i++) {
        const int64_t at = in_order(i, clusters, first, step);
        for (int32_t c = 0; c < run.num_blocks; c++) {
            const int64_t x = at % across * run.num_blocks + c;
            prepare(&run, &cluster[c], c,
                    (fd_dim){(uint32_t)x, (uint32_t)(at / across % run.grid.y), (uint32_t)(at / across / run.grid.y)});
        }
        run.counters->blocks += run.num_blocks;
        run.counters->threads += run.num_blocks * per_block;
        run_guarded(&run);
        emu_observe_end(&run);
    }
    emu_open_memory(false);
    emu_signals_end(0);
    run.counters->launches++;
    emu_running = NULL;
    fd_emu_self = NULL;
    return run.failed ? FD_DEVICE_ERROR : FD_OK;
}

void *fd_emu_dynamic_shared(void)
{
    return emu_self()->warp->block->dynamic;
}

_Noreturn void emu_fail(void)
{
    emu_running->failed = true;
    fd_fiber_switch(&emu_self()->fiber, &emu_running->scheduler, 1);
    abort(); /* nobody continues a failed thread */
}
