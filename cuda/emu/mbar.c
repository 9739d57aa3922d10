/* mbar.c: transaction barriers. A phase completes when its arrivals and the bytes it was told to expect are all there;
 * the next one begins at once, with the same number of arrivals to come. A wait names the parity of the phase: it
 * passes if that is the phase just completed, or blocks if it is the present one. PTX ISA, "mbarrier". */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "async.h"
#include "observe.h"

#define COUNT_MAX ((1 << 20) - 1)   /* arrivals, and bytes either way */
#define TAG ((uint64_t)0x6d626172u) /* upper half of what the 8 bytes hold */

static uint64_t content_of(int32_t number)
{
    return TAG << 32 | (uint32_t)number;
}

/* The barrier that was initialised at this address, or 0. */
static int32_t number_at(const emu_async *a, const uint64_t *at)
{
    for (int32_t i = 1; i <= a->num_bars; i++) {
        if (a->bars[i].at == at) {
            return i;
        }
    }
    return 0;
}

static void check_place(const uint64_t *at, const char *what, const char *file, int line)
{
    if ((uintptr_t)at % sizeof *at != 0) {
        emu_report(FD_EMU_ALIGNMENT, file, line, "%s of a barrier at an address that is no multiple of 8", what);
        emu_fail();
    }
    if (!emu_is_own_shared(emu_self()->warp->block, at, sizeof *at)) {
        emu_report(FD_EMU_ASYNC, file, line, "%s of a barrier that is not in shared memory of the block", what);
        emu_fail();
    }
}

int32_t emu_mbar_find(emu_async *a, const uint64_t *at, const char *what, const char *file, int line)
{
    check_place(at, what, file, line);
    const int32_t number = (int32_t)(uint32_t)*at;
    if (*at >> 32 == TAG && number > 0 && number <= a->num_bars && a->bars[number].at == at) {
        return number;
    }
    const int32_t was = number_at(a, at);
    if (was != 0) {
        emu_report(FD_EMU_ASYNC, file, line, "%s: the barrier initialised at line %" PRId32 " has been overwritten",
                   what, a->bars[was].line);
    } else {
        emu_report(FD_EMU_ASYNC, file, line, "%s of a barrier that nobody has initialised", what);
    }
    emu_fail();
}

void fd_emu_mbar_init(uint64_t *at, uint32_t arrivals, const char *file, int line)
{
    emu_async *a = emu_async_get();
    check_place(at, "fd_mbar_init", file, line);
    const int32_t was = number_at(a, at);
    if (was != 0) { /* undefined in PTX, waited for or not: only mbarrier.inval ends a barrier's life */
        emu_report(FD_EMU_ASYNC, file, line,
                   "initialises the barrier of line %" PRId32 " again, with %" PRId32 " threads waiting",
                   a->bars[was].line, a->bars[was].waiting);
        emu_fail();
    }
    if (arrivals == 0 || arrivals > COUNT_MAX) {
        emu_report(FD_EMU_ASYNC, file, line, "a barrier of %" PRIu32 " arrivals: 1 to 2^20 - 1", arrivals);
        emu_fail();
    }
    if (a->num_bars + 1 >= a->room_bars) {
        const int32_t room = a->room_bars == 0 ? 64 : 2 * a->room_bars;
        emu_mbar *larger = (emu_mbar *)realloc(a->bars, (size_t)room * sizeof *larger);
        if (larger == NULL) {
            emu_report(FD_EMU_LAUNCH, file, line, "no memory for another barrier");
            emu_fail();
        }
        a->bars = larger;
        a->room_bars = room;
    }
    const int32_t number = ++a->num_bars;
    a->bars[number] = (emu_mbar){.at = at,
                                 .by = emu_self(),
                                 .file = file,
                                 .line = line,
                                 .expected = (int32_t)arrivals,
                                 .pending = (int32_t)arrivals,
                                 .waited = -1,
                                 .carried = -1};
    emu_observe_access(at, sizeof *at, true, true, __builtin_return_address(0));
    *at = content_of(number);
}

/* Every thread that waits, waits for the present phase: nobody else could be blocked. */
static void wake_all(emu_mbar *bar, int32_t number)
{
    emu_block *block = bar->by->warp->block;
    for (int32_t i = 0; i < block->num_threads && bar->waiting > 0; i++) {
        emu_thread *t = &block->threads[i];
        if (t->wait == WAIT_MBAR && t->argument == number) {
            bar->waiting--;
            bar->woken++;
            bar->last_woken = t;
            emu_wake(t);
        }
    }
}

static void complete_phase(emu_async *a, int32_t number)
{
    emu_mbar *bar = &a->bars[number];
    if (bar->pending > 0 || bar->bytes != 0) {
        return;
    }
    if (bar->woken > 0) { /* a wait looks at the parity now and then: two phases on, it is the old one again */
        emu_report_at(FD_EMU_ASYNC, bar->last_woken, NULL, bar->last_woken->file, bar->last_woken->line,
                      "phase %" PRId64 " completes before this wait has seen that phase %" PRId64 " has: it may never",
                      bar->phase, bar->phase - 1);
        emu_async_fail(a);
        return;
    }
    const emu_copy *left = emu_async_outstanding(a, number, bar->phase);
    if (left != NULL) {
        emu_report_at(FD_EMU_ASYNC, bar->expect_by != NULL ? bar->expect_by : bar->by, NULL, bar->expect_file,
                      bar->expect_line,
                      "too few bytes: phase %" PRId64 " completes while a copy of %" PRIu32 " bytes, line %" PRId32
                      ", is on its way",
                      bar->phase, left->size, left->line);
        emu_async_fail(a);
        return;
    }
    bar->carried = bar->carries ? bar->phase : bar->carried;
    bar->carries = false;
    bar->pending = bar->expected;
    bar->phase++;
    wake_all(bar, number);
}

static void count_bytes(emu_async *a, int32_t number, int64_t bytes)
{
    emu_mbar *bar = &a->bars[number];
    bar->bytes += bytes;
    bar->carries = true;
    if (bar->bytes > COUNT_MAX || bar->bytes < -COUNT_MAX) {
        emu_report_at(FD_EMU_ASYNC, bar->by, NULL, bar->file, bar->line,
                      "the barrier cannot count %" PRId64 " bytes: 2^20 - 1 at most", bar->bytes);
        emu_async_fail(a);
    }
}

void emu_mbar_complete(emu_async *a, int32_t number, uint32_t bytes)
{
    count_bytes(a, number, -(int64_t)bytes);
    if (!emu_running->failed) {
        complete_phase(a, number);
    }
}

static void arrive(emu_async *a, int32_t number, const char *what, const char *file, int line)
{
    emu_mbar *bar = &a->bars[number];
    if (bar->pending == 0) {
        emu_report(FD_EMU_ASYNC, file, line,
                   "%s beyond the %" PRId32 " arrivals of phase %" PRId64 ", which still waits for %" PRId64 " bytes",
                   what, bar->expected, bar->phase, bar->bytes);
        emu_fail();
    }
    bar->pending--;
    emu_observe_release(emu_self(), bar->at);
    complete_phase(a, number);
}

void fd_emu_mbar_arrive(uint64_t *at, const char *file, int line)
{
    emu_async *a = emu_async_get();
    arrive(a, emu_mbar_find(a, at, "fd_mbar_arrive", file, line), "arrives", file, line);
}

void fd_emu_mbar_expect(uint64_t *at, uint32_t bytes, const char *file, int line)
{
    emu_async *a = emu_async_get();
    const int32_t number = emu_mbar_find(a, at, "fd_mbar_expect", file, line);
    emu_mbar *bar = &a->bars[number];
    bar->expect_file = file;
    bar->expect_line = line;
    bar->expect_by = emu_self();
    count_bytes(a, number, bytes);
    arrive(a, number, "expects", file, line);
}

void fd_emu_mbar_wait(uint64_t *at, uint32_t parity, const char *file, int line)
{
    emu_thread *self = emu_self();
    emu_async *a = emu_async_get();
    const int32_t number = emu_mbar_find(a, at, "fd_mbar_wait", file, line);
    self->file = file;
    self->line = line;
    if (parity > 1) {
        emu_report(FD_EMU_ASYNC, file, line, "fd_mbar_wait for the parity %" PRIu32 ": it is 0 or 1", parity);
        emu_fail();
    }
    int64_t seen = a->bars[number].phase - 1; /* the phase that this wait has seen the end of */
    if ((uint32_t)(a->bars[number].phase & 1) == parity) {
        seen++;
        a->bars[number].waiting++;
        self->argument = number;
        emu_block_self(self, WAIT_MBAR);
        a->bars[number].woken--;
    }
    emu_mbar *bar = &a->bars[number];
    bar->waited = seen > bar->waited ? seen : bar->waited;
    emu_observe_acquire(self, at);
}

void fd_emu_fence_async(void)
{
    emu_async *a = emu_running->async;
    for (int32_t i = 1; a != NULL && i <= a->num_bars; i++) {
        a->bars[i].fenced |= a->bars[i].by == emu_self();
    }
}

static void report_stuck(const emu_mbar *bar, const emu_thread *t)
{
    char bytes[80] = "";
    if (bar->bytes > 0) {
        snprintf(bytes, sizeof bytes, " and for %" PRId64 " more bytes", bar->bytes);
    } else if (bar->bytes < 0) {
        snprintf(bytes, sizeof bytes, " and got %" PRId64 " bytes more than it expects", -bar->bytes);
    }
    emu_report_at(FD_EMU_DEADLOCK, t, NULL, t->file, t->line,
                  "phase %" PRId64 ", parity %d, of the barrier of line %" PRId32 " waits for %" PRId32 " of %" PRId32
                  " arrivals%s",
                  bar->phase, (int)(bar->phase & 1), bar->line, bar->pending, bar->expected, bytes);
}

/* For each barrier with somebody waiting, those first that nobody can help: all have arrived, bytes are missing. */
void emu_mbar_report_stuck(const emu_block *block)
{
    const emu_async *a = emu_running->async;
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = 1; i <= a->num_bars; i++) {
            const emu_thread *first = NULL;
            for (int32_t k = block->num_threads - 1; k >= 0; k--) {
                const emu_thread *t = &block->threads[k];
                first = t->wait == WAIT_MBAR && t->argument == i ? t : first;
            }
            if (first != NULL && (a->bars[i].pending == 0) == (pass == 0)) {
                report_stuck(&a->bars[i], first);
            }
        }
    }
}

/* Of a barrier that has been told to expect bytes, at the line that did so last. */
static void report_end(const emu_mbar *bar, const char *text, int64_t number)
{
    const bool expects = bar->expect_by != NULL;
    emu_report_at(FD_EMU_ASYNC, expects ? bar->expect_by : bar->by, NULL, expects ? bar->expect_file : bar->file,
                  expects ? bar->expect_line : bar->line, text, number);
}

void emu_mbar_end_block(emu_async *a, const emu_block *block)
{
    for (int32_t i = 1; i <= a->num_bars; i++) {
        const emu_mbar *bar = &a->bars[i];
        if (bar->by->warp->block != block || (bar->bytes == 0 && bar->carried <= bar->waited)) {
            continue;
        }
        if (bar->bytes > 0) {
            report_end(bar, "the block ends while its barrier waits for %" PRId64 " bytes, and nobody for the barrier",
                       bar->bytes);
        } else if (bar->bytes < 0) {
            report_end(bar, "too few bytes: at the end of the block %" PRId64 " have come that were not expected",
                       -bar->bytes);
        } else {
            report_end(bar, "bytes arrive in phase %" PRId64 ", which nobody waits for", bar->carried);
        }
        emu_fail();
    }
}
