/* observe.h: what watches hooked kernels. A .cu file compiled with -fsanitize=thread calls a hook at every load and store;
 * the hooks are ours (hooks.c), not a sanitizer's. The rest of the emulator tells the observer about rendezvous. Nothing
 * happens here while a kernel without hooks runs.
 *
 *   observe.c    whose memory is it: shared, global, the thread's own; bounds; first touch
 *   races.c      races and uninitialised reads, on the cells of shadow.c, by the order of order.c
 *   requests.c   counts */
#ifndef FD_EMU_OBSERVE_H
#define FD_EMU_OBSERVE_H

#include "block.h"

void emu_observe_launch(emu_launch *run);   /* before its first block */
void emu_observe_block(emu_block *block);   /* before its first thread */
void emu_observe_barrier(emu_block *block); /* all its threads are there */
void emu_observe_cluster(void);             /* all threads of the cluster are at a cluster barrier */
void emu_observe_warp(emu_warp *warp, uint32_t mask,
                      bool orders_memory); /* these lanes are; __syncwarp orders memory */
void emu_observe_end(emu_launch *run);     /* a block, or a cluster, has ended */

/* An access that does not come through a hook: 16 bytes, an atomic, a copy. */
void emu_observe_access(const void *at, size_t bytes, bool write, bool atomic, const void *pc);

/* The same by a thread that may not be the running one: an asynchronous copy when it takes effect. */
void emu_observe_access_by(emu_thread *thread, const void *at, size_t bytes, bool write, bool atomic, const void *pc);

/* What the thread did so far happens before what follows the acquisition of the same object (any address) by others. */
void emu_observe_release(const emu_thread *by, const void *object);
void emu_observe_acquire(const emu_thread *by, const void *object);

/* A copy to this shared memory is under way, or no longer: until then nobody may touch it. */
void emu_observe_in_flight(const void *at, size_t bytes, bool in_flight);

/* A load or store of the running thread's own code. aligned: by its type it must be a multiple of its size. */
void emu_observe_hook(const void *at, size_t bytes, bool write, bool aligned, const void *pc);

#endif /* FD_EMU_OBSERVE_H */
