#include "observe.h"

void emu_observe_launch(emu_launch *run)
{
    (void)run;
}

void emu_observe_block(emu_block *block)
{
    (void)block;
}

void emu_observe_barrier(emu_block *block)
{
    (void)block;
}

void emu_observe_warp(emu_warp *warp, uint32_t mask, bool orders_memory)
{
    (void)warp, (void)mask, (void)orders_memory;
}

void emu_observe_end(emu_launch *run)
{
    (void)run;
}

void emu_observe_access(const void *at, size_t bytes, bool write, bool atomic, const void *pc)
{
    (void)at, (void)bytes, (void)write, (void)atomic, (void)pc;
}
