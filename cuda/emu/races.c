#include "races.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool conflicts(const emu_access *a, const emu_who *who)
{
    return who->time > a->start && !(a->atomic && (who->place & PLACE_ATOMIC) != 0) && !emu_ordered(a->thread, who);
}

static void report_race(const emu_access *a, const emu_who *who, bool wrote)
{
    char where[120];
    fd_dim block;
    uint32_t thread;
    emu_describe_address(a->at, where, sizeof where);
    emu_order_whose(who->thread, &block, &thread);
    const fd_dim mine = a->thread->self.block_idx;
    if (block.x == mine.x && block.y == mine.y && block.z == mine.z) {
        emu_report_pair(FD_EMU_RACE, a->thread, a->pc, emu_pc_of(who->place),
                        "%s %s, which thread %" PRIu32 " %s with no barrier between", a->write ? "writes" : "reads",
                        where, thread, wrote ? "wrote" : "read");
    } else {
        emu_report_pair(FD_EMU_RACE, a->thread, a->pc, emu_pc_of(who->place),
                        "%s %s, which block (%" PRIu32 ",%" PRIu32 ",%" PRIu32 ") %s and did not release",
                        a->write ? "writes" : "reads", where, block.x, block.y, block.z, wrote ? "wrote" : "read");
    }
}

static void remember_reader(emu_cell *c, const emu_who *me, uint32_t per_block)
{
    const emu_who last = c->reader[READER_LAST];
    const uint32_t warp = (me->thread % per_block) / FD_WARP;
    if (last.thread != me->thread) {
        c->reader[READER_THREAD] = last;
        if (last.thread / per_block != me->thread / per_block) {
            c->reader[READER_BLOCK] = c->reader[READER_WARP] = last;
        } else if (last.thread % per_block / FD_WARP != warp) {
            c->reader[READER_WARP] = last;
        }
    }
    c->reader[READER_LAST] = *me;
}

size_t emu_race_check(const emu_access *a, emu_cell *cells, size_t count, size_t cell_bytes)
{
    const emu_thread *t = a->thread;
    const emu_who me = {t->watch->number, emu_order_now(), emu_place_of(a->pc) | (a->atomic ? PLACE_ATOMIC : 0u)};
    bool raced = false, uninitialised = false, in_flight = false;
    size_t fresh = 0;
    for (size_t i = 0; i < count; i++) {
        emu_cell *c = &cells[i];
        in_flight |= c->in_flight != 0;
        if (!raced && conflicts(a, &c->writer)) {
            report_race(a, &c->writer, true);
            raced = true;
        }
        for (int r = 0; a->write && !raced && r < NUM_READERS; r++) {
            if (conflicts(a, &c->reader[r])) {
                report_race(a, &c->reader[r], false);
                raced = true;
            }
        }
        if (a->write) {
            fresh += c->writer.time <= a->start ? cell_bytes : 0;
            c->writer = me;
        } else {
            uninitialised |= a->shared && c->writer.time <= a->start;
            fresh += c->reader[READER_LAST].time <= a->start ? cell_bytes : 0;
            remember_reader(c, &me, (uint32_t)t->warp->block->num_threads);
        }
    }
    char where[120];
    if (uninitialised && !in_flight) {
        emu_describe_address(a->at, where, sizeof where);
        emu_report_at(FD_EMU_UNINITIALISED, t, a->pc, NULL, 0, "reads %s, which nobody in the block has written",
                      where);
    }
    if (in_flight) {
        emu_describe_address(a->at, where, sizeof where);
        emu_report_at(FD_EMU_ASYNC, t, a->pc, NULL, 0, "%s %s while a copy to it is under way",
                      a->write ? "writes" : "reads", where);
    }
    return fresh;
}
