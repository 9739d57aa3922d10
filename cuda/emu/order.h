/* order.h: which accesses of a hooked kernel are ordered. Time is a counter that every synchronisation advances. A thread
 * knows, of every other thread, until when that one's accesses have happened before its own next one:
 *   - block barriers: all accesses of the block until then; kept as one time a block,
 *   - __syncwarp and barrier objects in shared memory: kept as a row of times a thread,
 *   - release and acquire of an address, for threads of other blocks: a vector of times over the grid.
 * Shuffles and votes order nothing. Blocks that ran before order nothing either: on a GPU they would run at once. */
#ifndef FD_EMU_ORDER_H
#define FD_EMU_ORDER_H

#include "shadow.h"

/* What the observer keeps of a thread that runs. */
typedef struct emu_watch {
    uint32_t number; /* in the grid: block by block */
    bool wide;       /* row has times of other warps' threads since the last barrier */
    int32_t foreign; /* vector of times of other blocks' threads; -1: nothing known */
    uint32_t *row;   /* [threads of the block] */
} emu_watch;

bool emu_order_launch(const emu_launch *run); /* false: no memory */
void emu_order_block(emu_block *block);       /* sets the watch of each thread */
void emu_order_end(void);                     /* a block or cluster has ended */

uint32_t emu_order_now(void);
uint32_t emu_order_start(const emu_block *block); /* accesses until then are none of this launch's; of this block's */

bool emu_ordered(const emu_thread *me, const emu_who *before);

void emu_order_barrier(const emu_block *block);
void emu_order_cluster(void);
void emu_order_warp(const emu_warp *warp, uint32_t mask);
bool emu_order_release(const emu_thread *by, const void *object); /* false: no memory */
bool emu_order_acquire(const emu_thread *by, const void *object);

/* The block and thread that a number in the grid belongs to. */
void emu_order_whose(uint32_t number, fd_dim *block, uint32_t *thread);

#endif /* FD_EMU_ORDER_H */
