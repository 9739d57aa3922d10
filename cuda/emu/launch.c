/* launch.c: runs a kernel: its blocks one after the other, the threads of a block as fibers that switch at each
 * rendezvous. Within a warp one lane runs until it waits, then the next runnable lane of the warp continues; a warp runs
 * until all its lanes wait, then the scheduler picks another. */
#define _DEFAULT_SOURCE /* sigsetjmp, MAP_ANONYMOUS */

#include "block.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "observe.h"
#include "signals.h"

#define GRID_YZ_MAX 65535u
#define SPIN_ROUNDS 4 /* passes over all spinning threads, without anybody else moving, that make a deadlock */

fd_emu_identity *fd_emu_self;
emu_launch *emu_running;

/* What a launch runs on; kept for the next one. */
typedef struct pool {
    emu_thread *threads;     /* [capacity] */
    unsigned char *stacks;   /* [capacity] of EMU_STACK_BYTES */
    unsigned char *dynamics; /* dynamic shared memory of all blocks of a cluster */
    size_t capacity, dynamics_bytes;
} pool;

static pool pools[EMU_MAX_NESTING];
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
    case WAIT_MBAR:
    case WAIT_CLUSTER:
    case WAIT_OVERLAP:
        return &warp->elsewhere;
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

static void thread_main(void)
{
    emu_thread *self = emu_self();
    emu_block *block = self->warp->block;
    fd_fiber_entered(&self->fiber);
    if (emu_running->num_blocks > 1) {
        emu_cluster_enter(block);
    }
    emu_running->enter(emu_running->args);
    thread_leaves(self, block);
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
    const pool *p = &pools[run->nesting];
    const size_t stride = fd_fiber_stack_stride(EMU_STACK_BYTES);
    *block = (emu_block){.index = index, .num_threads = (int32_t)(dim.x * dim.y * dim.z)};
    block->threads = p->threads + (size_t)at * (size_t)block->num_threads;
    block->num_warps = (block->num_threads + FD_WARP - 1) / FD_WARP;
    block->present = block->num_threads;
    block->dynamic = p->dynamics + (size_t)at * EMU_SHARED_STRIDE;
    if (run->num_blocks > 1) {
        emu_cluster_prepare(block);
    } else {
        emu_poison_shared(block, run->launch->smem);
    }
    for (int32_t w = 0; w < block->num_warps; w++) {
        const int32_t left = block->num_threads - w * FD_WARP, lanes = left < FD_WARP ? left : FD_WARP;
        const uint32_t all = lanes == FD_WARP ? FD_FULL_MASK : (1u << lanes) - 1u;
        block->warps[w] = (emu_warp){block, block->threads + w * FD_WARP, lanes, all, all, 0, 0, 0, 0};
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
        fd_fiber_prepare(&t->fiber, p->stacks + (size_t)(t - p->threads) * stride, EMU_STACK_BYTES, thread_main);
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

/* One block or one cluster, to its end, or to where it waits for the launch before this one. */
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
static bool reserve(pool *p, size_t num_threads, size_t num_blocks)
{
    if (num_threads > p->capacity) {
        emu_thread *more = (emu_thread *)realloc(p->threads, num_threads * sizeof *p->threads);
        unsigned char *new_stacks = (unsigned char *)fd_fiber_stacks(num_threads, EMU_STACK_BYTES);
        p->threads = more != NULL ? more : p->threads;
        if (more == NULL || new_stacks == NULL) {
            return false;
        }
        memset(p->threads, 0, num_threads * sizeof *p->threads);
        p->stacks = new_stacks; /* the smaller ones stay mapped: a program does this a few times at most */
        p->capacity = num_threads;
    }
    const size_t bytes = num_blocks * EMU_SHARED_STRIDE;
    if (bytes > p->dynamics_bytes) {
        void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (map == MAP_FAILED) {
            return false;
        }
        if (p->dynamics != NULL) {
            munmap(p->dynamics, p->dynamics_bytes);
        }
        p->dynamics = (unsigned char *)map;
        p->dynamics_bytes = bytes;
    }
    return true;
}

/* Runs the launch that the blocks at hand wait for. It may use static arrays that they use, too. */
static void run_prior(emu_launch *run)
{
    unsigned char *statics, *kept;
    const size_t bytes = emu_static_shared(&statics);
    kept = (unsigned char *)malloc(bytes + 1);
    if (kept == NULL) {
        emu_report(FD_EMU_LAUNCH, NULL, 0, "no memory to keep its shared memory");
        run->failed = true;
        return;
    }
    memcpy(kept, statics, bytes);
    const emu_call *prior = run->prior;
    run->prior = NULL;
    run->failed |= emu_launch_now(prior, NULL) != FD_OK;
    emu_running = run;
    emu_open_memory(true);
    memcpy(statics, kept, bytes);
    free(kept);
    for (int32_t b = 0; b < run->num_blocks; b++) {
        for (int32_t i = 0; i < run->blocks[b].num_threads; i++) {
            if (run->blocks[b].threads[i].wait == WAIT_OVERLAP) {
                emu_wake(&run->blocks[b].threads[i]);
            }
        }
    }
}

fd_status emu_launch_now(const emu_call *call, const emu_call *prior)
{
    emu_block cluster[16];
    const fd_launch *launch = &call->launch;
    emu_launch run = {.kernel = call->kernel,
                      .enter = call->enter,
                      .args = call->args,
                      .args_bytes = call->args_bytes,
                      .file = call->file,
                      .launch = launch,
                      .grid = at_least_one(launch->grid),
                      .threads = at_least_one(launch->block),
                      .blocks = cluster,
                      .num_blocks = launch->cluster > 0 ? (int32_t)launch->cluster : 1,
                      .counters = emu_counters_of(call->kernel),
                      .nesting = emu_running != NULL,
                      .prior = prior};
    emu_running = &run;
    run.failed = !launch_is_legal(&run, call->max_threads);
    const int64_t per_block = (int64_t)run.threads.x * run.threads.y * run.threads.z;
    if (!run.failed && !reserve(&pools[run.nesting], (size_t)(per_block * run.num_blocks), (size_t)run.num_blocks)) {
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
        if (run.num_blocks > 1) {
            emu_poison_statics();
        }
        for (int32_t c = 0; c < run.num_blocks; c++) {
            const int64_t x = at % across * run.num_blocks + c;
            prepare(&run, &cluster[c], c,
                    (fd_dim){(uint32_t)x, (uint32_t)(at / across % run.grid.y), (uint32_t)(at / across / run.grid.y)});
        }
        run.counters->blocks += run.num_blocks;
        run.counters->threads += run.num_blocks * per_block;
        if (run.async != NULL) {
            emu_async_begin_blocks(&run);
        }
        run_guarded(&run);
        if (run.prior != NULL && !run.failed) {
            run_prior(&run);
            run_guarded(&run);
        }
        if (run.num_blocks > 1) {
            emu_cluster_end(&run);
        }
        emu_observe_end(&run);
    }
    if (run.async != NULL) {
        emu_async_end_launch(&run);
    }
    if (launch->overlapping != 0 && !run.overlap_waited && !run.failed) {
        emu_report(FD_EMU_ASYNC, NULL, 0,
                   "an overlapping launch that never calls fd_overlap_wait(): nothing orders it "
                   "after the launch before it");
        run.failed = true;
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
