/* cluster.c: the blocks of a cluster, which run together and read each other's dynamic shared memory. That memory can be
 * touched from the start of its block's first thread to the end of its last: whoever does so earlier or later is caught
 * in the act. PTX ISA, "barrier.cluster" and "mapa"; CUDA programming guide, "Distributed Shared Memory". */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "block.h"
#include "observe.h"

static int32_t rank_of(const emu_block *block)
{
    return (int32_t)(block - emu_running->blocks);
}

/* ---- When its memory can be touched ---- */

static void protect(const emu_block *block, int access)
{
    mprotect(block->dynamic, EMU_SHARED_STRIDE, access);
}

void emu_cluster_prepare(emu_block *block)
{
    protect(block, PROT_NONE);
}

void emu_cluster_enter(emu_block *block)
{
    if (!block->started) {
        block->started = true;
        protect(block, PROT_READ | PROT_WRITE);
        memset(block->dynamic, 0xff, emu_running->launch->smem);
    }
}

void emu_cluster_leave(const emu_block *block)
{
    protect(block, PROT_NONE);
}

void emu_cluster_end(emu_launch *run)
{
    for (int32_t b = 0; b < run->num_blocks; b++) {
        protect(&run->blocks[b], PROT_READ | PROT_WRITE);
    }
    if (!run->failed && !emu_statics_untouched()) {
        emu_report(FD_EMU_CLUSTER, NULL, 0,
                   "a kernel launched as clusters uses static shared memory, which its blocks would share here: "
                   "use FD_SMEM_DYN");
        run->failed = true;
    }
}

bool emu_cluster_describe(const void *at, char *text, size_t n)
{
    const uintptr_t x = (uintptr_t)at;
    for (int32_t b = 0; emu_running != NULL && emu_running->num_blocks > 1 && b < emu_running->num_blocks; b++) {
        const emu_block *block = &emu_running->blocks[b];
        const uintptr_t dynamic = (uintptr_t)block->dynamic;
        if (x >= dynamic && x < dynamic + EMU_SHARED_STRIDE) {
            snprintf(text, n, "touches the shared memory of block %" PRId32 " of its cluster, which %s", b,
                     block->started ? "has left the kernel: fd_cluster_sync() first, in both"
                                    : "has not started: fd_cluster_sync() first");
            return true;
        }
    }
    return false;
}

/* ---- The barrier ---- */

static int32_t present(const emu_launch *run)
{
    int32_t n = 0;
    for (int32_t b = 0; b < run->num_blocks; b++) {
        n += run->blocks[b].present;
    }
    return n;
}

/* All threads of a warp are at the same barrier instruction: it is an aligned one. */
static void check_aligned(const emu_warp *warp)
{
    const emu_thread *first = NULL;
    for (int32_t lane = 0; lane < warp->lanes; lane++) {
        const emu_thread *t = &warp->threads[lane];
        if (t->wait == WAIT_GONE) {
            continue;
        }
        first = first != NULL ? first : t;
        if (t->line != first->line || strcmp(t->file, first->file) != 0) {
            emu_report_at(FD_EMU_BARRIER, t, NULL, t->file, t->line,
                          "a lane of its warp is at the cluster barrier of line %" PRId32, first->line);
            emu_fail();
        }
    }
}

/* Threads that have left count as there. */
static void complete(emu_launch *run)
{
    for (int32_t b = 0; b < run->num_blocks; b++) {
        for (int32_t w = 0; w < run->blocks[b].num_warps; w++) {
            check_aligned(&run->blocks[b].warps[w]);
        }
    }
    run->at_cluster_barrier = 0;
    emu_observe_cluster();
    for (int32_t b = 0; b < run->num_blocks; b++) {
        for (int32_t i = 0; i < run->blocks[b].num_threads; i++) {
            if (run->blocks[b].threads[i].wait == WAIT_CLUSTER) {
                emu_wake(&run->blocks[b].threads[i]);
            }
        }
    }
}

void fd_emu_cluster_sync(const char *file, int line)
{
    emu_thread *self = emu_self();
    self->file = file;
    self->line = line;
    if (++emu_running->at_cluster_barrier < present(emu_running)) {
        emu_block_self(self, WAIT_CLUSTER);
        return;
    }
    complete(emu_running);
}

void emu_cluster_thread_left(emu_launch *run)
{
    if (run->at_cluster_barrier == present(run)) {
        complete(run);
    }
}

/* ---- Who is who ---- */

uint32_t fd_cluster_rank(void)
{
    return (uint32_t)rank_of(emu_self()->warp->block);
}

uint32_t fd_cluster_size(void)
{
    return (uint32_t)emu_running->num_blocks;
}

void *fd_emu_cluster_map(void *shared, uint32_t rank, const char *file, int line)
{
    const emu_block *block = emu_self()->warp->block;
    if (rank >= (uint32_t)emu_running->num_blocks) {
        emu_report(FD_EMU_CLUSTER, file, line, "block %" PRIu32 " of a cluster of %" PRId32, rank,
                   emu_running->num_blocks);
        emu_fail();
    }
    if (!emu_is_own_shared(block, shared, 1)) {
        emu_report(FD_EMU_CLUSTER, file, line, "fd_cluster_map of what is no shared memory of the calling block");
        emu_fail();
    }
    const ptrdiff_t offset = (unsigned char *)shared - block->dynamic;
    if (offset >= 0 && offset < (ptrdiff_t)EMU_SHARED_STRIDE) {
        return emu_running->blocks[rank].dynamic + offset;
    }
    if (emu_running->num_blocks > 1) {
        emu_report(
            FD_EMU_CLUSTER, file, line,
            "fd_cluster_map of static shared memory, which blocks of a cluster would share here: use FD_SMEM_DYN");
        emu_fail();
    }
    return shared;
}
