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

void emu_observe_cluster(void)
{
}

void emu_observe_access_by(emu_thread *thread, const void *at, size_t bytes, bool write, bool atomic, const void *pc)
{
    (void)thread, (void)at, (void)bytes, (void)write, (void)atomic, (void)pc;
}

void emu_observe_release(const emu_thread *by, const void *object)
{
    (void)by, (void)object;
}

void emu_observe_acquire(const emu_thread *by, const void *object)
{
    (void)by, (void)object;
}

void emu_observe_in_flight(const void *at, size_t bytes, bool in_flight)
{
    (void)at, (void)bytes, (void)in_flight;
}
