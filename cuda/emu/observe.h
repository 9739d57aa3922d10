/* observe.h: what watches hooked kernels. A .cu file compiled with -fsanitize=thread calls a hook at every load and store;
 * the hooks are ours (hooks.c), not a sanitizer's. The rest of the emulator tells the observer about rendezvous. Nothing
 * happens here while a kernel without hooks runs. */
#ifndef FD_EMU_OBSERVE_H
#define FD_EMU_OBSERVE_H

#include "block.h"

void emu_observe_launch(emu_launch *run);   /* before its first block */
void emu_observe_block(emu_block *block);   /* before its first thread */
void emu_observe_barrier(emu_block *block); /* all its threads are there */
void emu_observe_warp(emu_warp *warp, uint32_t mask,
                      bool orders_memory); /* these lanes are; __syncwarp orders memory */
void emu_observe_end(emu_launch *run);     /* a block, or a cluster, has ended */

/* An access that does not come through a hook: 16 bytes, an atomic, a copy. */
void emu_observe_access(const void *at, size_t bytes, bool write, bool atomic, const void *pc);

#endif /* FD_EMU_OBSERVE_H */
