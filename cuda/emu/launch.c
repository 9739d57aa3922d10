/* launch.c: runs a kernel: its blocks one after the other, the threads of a block as fibers that switch at each
 * rendezvous (schedule.c). */
#define _DEFAULT_SOURCE /* sigsetjmp, MAP_ANONYMOUS */

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "observe.h"
#include "schedule.h"
#include "signals.h"

#define GRID_YZ_MAX 65535u

/* What a launch runs on; kept for the next one. */
typedef struct pool {
    emu_thread *threads;     /* [capacity] */
    unsigned char *stacks;   /* [capacity] of EMU_STACK_BYTES */
    unsigned char *dynamics; /* dynamic shared memory of all blocks of a cluster */
    size_t capacity, dynamics_bytes;
} pool;

static pool pools[EMU_MAX_NESTING];

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
        /* Stacks begin at different places in a page: lanes at the same point of a kernel would share a few sets of the
         * cache, and drive each other out. */
        fd_fiber_prepare(&t->fiber, p->stacks + (size_t)(t - p->threads) * stride,
                         EMU_STACK_BYTES - (size_t)t->lane * EMU_STACK_STAGGER, emu_thread_main);
    }
    emu_observe_block(block);
}

/* A frame of its own, so that no variable of a caller changes between sigsetjmp() and its second return. */
static void run_guarded(emu_launch *run)
{
    if (emu_enter_kernel() == 0) { /* 1: a signal's fault has been reported, and the launch has failed */
        emu_run_blocks(run);
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
    emu_seed(emu_options.seed);
    const bool shuffled = emu_options.schedule == FD_EMU_SHUFFLED && !run.failed;
    const int64_t step = shuffled ? emu_coprime_to(clusters) : 1;
    const int64_t first = shuffled ? (int64_t)(emu_random() % (uint64_t)clusters) : 0;
    emu_signals_begin(0);
    emu_open_memory(true);
    emu_observe_launch(&run);
    for (int64_t i = 0; i < clusters && !run.failed; i++) {
        const int64_t at = emu_in_order(i, clusters, first, step);
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
