/* warp.c: what the lanes of a warp do together. A lane that arrives waits until all lanes of its mask have; the last one
 * works out everybody's result, so that a fast lane cannot overwrite what a slow one still has to read. */
#include "block.h"

#include <inttypes.h>
#include <string.h>

#include "observe.h"
#include "schedule.h"

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

/* A lane of the mask has come to something else: the first one is named. */
static void check(const emu_thread *self, const emu_warp *warp)
{
    for (uint32_t rest = self->mask; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        const emu_thread *t = &warp->threads[lane];
        if (t->mask != self->mask || t->operation != self->operation || t->line != self->line ||
            (t->file != self->file && strcmp(t->file, self->file) != 0)) {
            emu_report(FD_EMU_WARP, self->file, self->line,
                       "%s with mask %08" PRIx32 ", but lane %d is at %s with mask %08" PRIx32 ", line %" PRId32,
                       name_of(self->operation), self->mask, lane, name_of(t->operation), t->mask, t->line);
            emu_fail();
        }
    }
}

/* Everybody gets the same. */
static void vote(const emu_thread *self, const emu_warp *warp)
{
    uint32_t ballot = 0;
    for (uint32_t rest = self->mask; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        ballot |= warp->threads[lane].value != 0 ? 1u << lane : 0u;
    }
    const uint64_t result = self->operation == FD_EMU_BALLOT ? ballot
                            : self->operation == FD_EMU_ANY  ? ballot != 0
                                                             : ballot == self->mask;
    for (uint32_t rest = self->mask; rest != 0; rest &= rest - 1) {
        warp->threads[__builtin_ctz(rest)].result = result;
    }
}

static void shuffle(const emu_thread *self, const emu_warp *warp)
{
    for (uint32_t rest = self->mask; rest != 0; rest &= rest - 1) {
        emu_thread *t = &warp->threads[__builtin_ctz(rest)];
        const int source = source_of(t);
        if ((self->mask & 1u << source) == 0) {
            emu_report_at(FD_EMU_WARP, t, NULL, t->file, t->line,
                          "%s reads lane %d, which is not in the mask %08" PRIx32, name_of(t->operation), source,
                          t->mask);
            emu_running->failed = true;
            continue;
        }
        t->result = warp->threads[source].value;
    }
    if (emu_running->failed) {
        emu_fail();
    }
}

/* All lanes of the mask are there: only those can be. */
static void complete(const emu_thread *self, const emu_warp *warp)
{
    check(self, warp);
    switch (self->operation) {
    case 0:
        break;
    case FD_EMU_BALLOT:
    case FD_EMU_ANY:
    case FD_EMU_ALL:
        vote(self, warp);
        break;
    case FD_EMU_LDMATRIX:
    case FD_EMU_LDMATRIX_TRANS:
    case FD_EMU_MMA_F16:
    case FD_EMU_MMA_BF16:
        emu_matrix(warp, self->operation);
        break;
    default:
        shuffle(self, warp);
        break;
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
        self->wait = WAIT_WARP; /* emu_block_self(), whose call would be a tenth of a switch */
        warp->runnable &= ~(1u << self->lane);
        warp->at_warp |= 1u << self->lane;
        emu_leave(self, 0);
        return self->result;
    }
    complete(self, warp);
    if (operation == 0) {
        emu_running->counters->warp_syncs++;
    } else if (operation < FD_EMU_LDMATRIX) {
        emu_running->counters->shuffles++;
    }
    emu_observe_warp(warp, mask, operation == 0);
    emu_wake_lanes(warp, mask & ~(1u << self->lane), &warp->at_warp);
    return self->result;
}

void fd_emu_syncwarp(uint32_t mask, const char *file, int line)
{
    fd_emu_exchange(0, mask, 0, 0, file, line);
}
