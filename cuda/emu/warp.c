/* warp.c: what the lanes of a warp do together. A lane that arrives waits until all lanes of its mask have; the last one
 * works out everybody's result, so that a fast lane cannot overwrite what a slow one still has to read. */
#include "block.h"

#include <inttypes.h>
#include <string.h>

#include "observe.h"

static const char *name_of(int32_t operation)
{
    static const char *const names[] = {"__syncwarp",       "__shfl_sync",    "__shfl_xor_sync", "__shfl_up_sync",
                                        "__shfl_down_sync", "__ballot_sync",  "__any_sync",      "__all_sync",
                                        "ldmatrix",         "ldmatrix.trans", "mma f16",         "mma bf16"};
    return names[operation];
}

/* The lane whose value a shuffle hands to the given lane; out of range: its own. */
static int source_of(const emu_thread *t)
{
    int lane = t->lane;
    switch (t->operation) {
    case FD_EMU_SHFL:
        return t->argument & (FD_WARP - 1);
    case FD_EMU_SHFL_XOR:
        lane ^= t->argument;
        break;
    case FD_EMU_SHFL_UP:
        lane -= t->argument;
        break;
    default:
        lane += t->argument;
        break;
    }
    return lane >= 0 && lane < FD_WARP ? lane : t->lane;
}

static void complete(emu_thread *self)
{
    emu_warp *warp = self->warp;
    uint32_t ballot = 0;
    for (int lane = 0; lane < warp->lanes; lane++) {
        emu_thread *t = &warp->threads[lane];
        if ((self->mask & 1u << lane) == 0) {
            continue;
        }
        if (t->mask != self->mask || t->operation != self->operation || t->line != self->line ||
            (t->file != self->file && strcmp(t->file, self->file) != 0)) {
            emu_report(FD_EMU_WARP, self->file, self->line,
                       "%s with mask %08" PRIx32 ", but lane %d is at %s with mask %08" PRIx32 ", line %" PRId32,
                       name_of(self->operation), self->mask, lane, name_of(t->operation), t->mask, t->line);
            emu_fail();
        }
        ballot |= t->value != 0 ? 1u << lane : 0u;
    }
    if (self->operation >= FD_EMU_LDMATRIX) {
        emu_matrix(warp, self->operation);
        return;
    }
    for (int lane = 0; lane < warp->lanes; lane++) {
        emu_thread *t = &warp->threads[lane];
        if ((self->mask & 1u << lane) == 0) {
            continue;
        }
        const int source = source_of(t);
        switch (t->operation) {
        case 0:
            break;
        case FD_EMU_BALLOT:
            t->result = ballot;
            break;
        case FD_EMU_ANY:
            t->result = ballot != 0;
            break;
        case FD_EMU_ALL:
            t->result = ballot == self->mask;
            break;
        default:
            if ((self->mask & 1u << source) == 0) {
                emu_report_at(FD_EMU_WARP, t, NULL, t->file, t->line,
                              "%s reads lane %d, which is not in the mask %08" PRIx32, name_of(t->operation), source,
                              t->mask);
                emu_running->failed = true;
            }
            t->result = warp->threads[source].value;
            break;
        }
    }
    if (emu_running->failed) {
        emu_fail();
    }
}

uint64_t fd_emu_exchange(int operation, uint32_t mask, uint64_t value, int argument, const char *file, int line)
{
    emu_thread *self = emu_self();
    emu_warp *warp = self->warp;
    self->operation = operation;
    self->mask = mask;
    self->value = value;
    self->argument = argument;
    self->file = file;
    self->line = line;
    if ((mask & 1u << self->lane) == 0) {
        emu_report(FD_EMU_WARP, file, line, "%s with mask %08" PRIx32 ", in which the caller, lane %" PRId32 ", is not",
                   name_of(operation), mask, self->lane);
        emu_fail();
    }
    if (((warp->at_warp | 1u << self->lane) & mask) != mask) {
        emu_block_self(self, WAIT_WARP);
        return self->result;
    }
    complete(self);
    if (operation == 0) {
        emu_running->counters->warp_syncs++;
    } else if (operation < FD_EMU_LDMATRIX) {
        emu_running->counters->shuffles++;
    }
    emu_observe_warp(warp, mask, operation == 0);
    for (uint32_t others = mask & ~(1u << self->lane); others != 0; others &= others - 1) {
        emu_wake(&warp->threads[__builtin_ctz(others)]);
    }
    return self->result;
}

void fd_emu_syncwarp(uint32_t mask, const char *file, int line)
{
    fd_emu_exchange(0, mask, 0, 0, file, line);
}
