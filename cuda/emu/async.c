/* async.c: cp.async and bulk copies. By default they happen as late as CUDA allows: the destination holds NaN from the
 * issue to the wait that completes the copy, and the source is read then. In the other mode they happen at once. Who
 * waits rightly sees no difference. PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy". */
#include "async.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "observe.h"

static emu_async contexts[EMU_MAX_NESTING];

/* ---- Bookkeeping ---- */

_Noreturn static void out_of_memory(void)
{
    emu_report(FD_EMU_LAUNCH, NULL, 0, "no memory to follow its asynchronous copies");
    emu_fail();
}

emu_async *emu_async_get(void)
{
    emu_launch *run = emu_running;
    if (run->async != NULL) {
        return run->async;
    }
    emu_async *a = &contexts[run->nesting];
    unsigned char *statics;
    const size_t granules =
        ((size_t)run->num_blocks * EMU_SHARED_STRIDE + emu_static_shared(&statics)) / EMU_GRANULE + 2;
    if (granules > a->granules) {
        free(a->owner);
        a->owner = (int32_t *)calloc(granules, sizeof *a->owner);
        a->granules = a->owner != NULL ? granules : 0;
    }
    if (a->owner == NULL) {
        out_of_memory();
    }
    run->async = a;
    emu_async_begin_blocks(run);
    return a;
}

void emu_async_begin_blocks(emu_launch *run)
{
    emu_async *a = run->async;
    a->num_copies = a->free = a->first_bulk = a->last_bulk = a->num_bars = 0;
    a->scheduler = false;
}

void emu_async_fail(emu_async *a)
{
    emu_running->failed = true;
    if (!a->scheduler) {
        emu_fail();
    }
}

/* The number of a copy that nobody has. */
static int32_t new_copy(emu_async *a)
{
    const int32_t number = a->free;
    if (number != 0) {
        a->free = a->copies[number].next;
        return number;
    }
    if (a->num_copies + 1 >= a->room_copies) {
        const int32_t room = a->room_copies == 0 ? 256 : 2 * a->room_copies;
        emu_copy *larger = (emu_copy *)realloc(a->copies, (size_t)room * sizeof *larger);
        if (larger == NULL) {
            out_of_memory();
        }
        a->copies = larger;
        a->room_copies = room;
    }
    return ++a->num_copies;
}

/* The copy that is on its way to the granule, or NULL where nobody keeps count: static arrays under AddressSanitizer. */
static int32_t *owner_of(emu_async *a, const unsigned char *at)
{
    unsigned char *statics;
    const size_t static_bytes = emu_static_shared(&statics);
    const uintptr_t x = (uintptr_t)at, dynamic = (uintptr_t)emu_running->blocks[0].dynamic, first = (uintptr_t)statics;
    const size_t dynamic_bytes = (size_t)emu_running->num_blocks * EMU_SHARED_STRIDE;
    if (x >= dynamic && x < dynamic + dynamic_bytes) {
        return &a->owner[(x - dynamic) / EMU_GRANULE];
    }
    if (x >= first && x < first + static_bytes) {
        return &a->owner[dynamic_bytes / EMU_GRANULE + x / EMU_GRANULE - first / EMU_GRANULE];
    }
    return NULL;
}

static void own(emu_async *a, const emu_copy *copy, int32_t owner)
{
    for (uint32_t i = 0; i < copy->size; i += EMU_GRANULE) {
        int32_t *granule = owner_of(a, copy->to + i);
        if (granule != NULL) {
            *granule = owner;
        }
    }
    emu_observe_in_flight(copy->to, copy->size, owner != 0);
}

/* After a fault copies may still be on their way: the next launch starts without them. */
void emu_async_end_launch(emu_launch *run)
{
    emu_async *a = run->async;
    for (int32_t i = 1; i <= a->num_copies; i++) {
        const int32_t *owner = owner_of(a, a->copies[i].to);
        if (owner != NULL && *owner == i) {
            own(a, &a->copies[i], 0);
        }
    }
}

/* ---- A copy, from issue to completion ---- */

static void check(emu_async *a, const emu_copy *copy)
{
    char where[160];
    const emu_allocation *source = emu_allocation_at(copy->from);
    const uintptr_t from = (uintptr_t)copy->from, begin = source != NULL ? (uintptr_t)source->data : 0;
    if ((uintptr_t)copy->to % EMU_GRANULE != 0 || from % EMU_GRANULE != 0) {
        emu_report(FD_EMU_ALIGNMENT, copy->file, copy->line,
                   "an asynchronous copy %s an address that is %u past a multiple of 16",
                   from % EMU_GRANULE != 0 ? "from" : "to",
                   (unsigned)((from % EMU_GRANULE != 0 ? from : (uintptr_t)copy->to) % EMU_GRANULE));
        emu_fail();
    }
    if (!emu_is_own_shared(copy->by->warp->block, copy->to, copy->size)) {
        emu_report(FD_EMU_ACCESS, copy->file, copy->line,
                   "an asynchronous copy of %" PRIu32 " bytes to what is not all shared memory of the block",
                   copy->size);
        emu_fail();
    }
    if (copy->bytes > 0 && (source == NULL || from < begin || from + copy->bytes > begin + source->bytes)) {
        emu_describe_address(copy->from, where, sizeof where);
        emu_report(FD_EMU_ACCESS, copy->file, copy->line, "an asynchronous copy of %" PRIu32 " bytes from %s",
                   copy->bytes, where);
        emu_fail();
    }
    for (uint32_t i = 0; i < copy->size; i += EMU_GRANULE) {
        const int32_t *owner = owner_of(a, copy->to + i);
        if (owner != NULL && *owner != 0) {
            const emu_copy *other = &a->copies[*owner];
            emu_report(FD_EMU_ASYNC, copy->file, copy->line,
                       "a copy to where the copy of line %" PRId32 " by thread %" PRId32 " is still on its way",
                       other->line, other->by->index);
            emu_fail();
        }
    }
}

static void move(const emu_copy *copy)
{
    if (copy->bytes > 0) {
        emu_observe_access_by(copy->by, copy->from, copy->bytes, false, false, copy->pc);
        memcpy(copy->to, copy->from, copy->bytes);
    }
    memset(copy->to + copy->bytes, 0, copy->size - copy->bytes);
    emu_observe_access_by(copy->by, copy->to, copy->size, true, false, copy->pc);
}

static int32_t issue(emu_async *a, const emu_copy *copy)
{
    check(a, copy);
    const int32_t number = new_copy(a);
    a->copies[number] = *copy;
    if (emu_options.async == FD_EMU_EARLIEST) {
        move(copy);
    } else {
        memset(copy->to, 0xff, copy->size);
    }
    own(a, copy, number);
    return number;
}

static void complete(emu_async *a, int32_t number)
{
    emu_copy *copy = &a->copies[number];
    own(a, copy, 0);
    if (emu_options.async != FD_EMU_EARLIEST) {
        move(copy);
    }
    copy->next = a->free;
    a->free = number;
}

/* ---- cp.async: groups of copies that their own thread waits for ---- */

void fd_emu_cp_async(void *shared, const void *global, uint32_t bytes, const char *file, int line)
{
    emu_thread *self = emu_self();
    emu_async *a = emu_async_get();
    if (bytes > EMU_GRANULE) {
        emu_report(FD_EMU_ASYNC, file, line, "fd_cp_async16 of %" PRIu32 " bytes: at most 16", bytes);
        emu_fail();
    }
    const emu_copy copy = {.to = (unsigned char *)shared,
                           .from = (const unsigned char *)global,
                           .size = EMU_GRANULE,
                           .bytes = bytes,
                           .by = self,
                           .file = file,
                           .line = line,
                           .pc = __builtin_return_address(0),
                           .group = self->groups};
    const int32_t number = issue(a, &copy);
    if (self->first_copy == 0) {
        self->first_copy = number;
    } else {
        a->copies[self->last_copy].next = number;
    }
    self->last_copy = number;
}

void fd_emu_cp_commit(void)
{
    emu_self()->groups++;
}

void fd_emu_cp_wait(uint32_t pending)
{
    emu_thread *self = emu_self();
    const uint32_t complete_below = self->groups > pending ? self->groups - pending : 0;
    while (self->first_copy != 0 && emu_running->async->copies[self->first_copy].group < complete_below) {
        const int32_t number = self->first_copy;
        self->first_copy = emu_running->async->copies[number].next;
        complete(emu_running->async, number);
    }
}

void emu_async_end_thread(const emu_thread *self)
{
    const emu_copy *copy = &emu_running->async->copies[self->first_copy];
    emu_report(FD_EMU_ASYNC, copy->file, copy->line,
               copy->group == self->groups
                   ? "a copy that fd_cp_commit() has put in no group, so that nobody waits for it"
                   : "a copy that nobody waits for: fd_cp_wait(0) is missing");
    emu_fail();
}

/* ---- Bulk copies: their bytes are counted by a transaction barrier ---- */

#define BULK_MAX ((1u << 20) - 1u) /* what a barrier can count */

/* Whoever waits for the barrier comes after the copy. */
static void arrived(emu_async *a, int32_t number)
{
    const emu_copy copy = a->copies[number];
    complete(a, number);
    emu_observe_release(copy.by, a->bars[copy.bar].at);
    emu_mbar_complete(a, copy.bar, copy.size);
}

void fd_emu_bulk_load(void *shared, const void *global, uint32_t bytes, uint64_t *bar, const char *file, int line)
{
    emu_async *a = emu_async_get();
    const int32_t number = emu_mbar_find(a, bar, "fd_bulk_load", file, line);
    if (bytes % EMU_GRANULE != 0 || bytes > BULK_MAX) {
        emu_report(FD_EMU_ASYNC, file, line, "fd_bulk_load of %" PRIu32 " bytes: a multiple of 16 below 2^20", bytes);
        emu_fail();
    }
    if (!a->bars[number].fenced) {
        emu_report(
            FD_EMU_ASYNC, file, line,
            "the copy engine may not see the barrier yet: fd_fence_async() is missing after its init at line %" PRId32,
            a->bars[number].line);
        emu_fail();
    }
    const emu_copy copy = {.to = (unsigned char *)shared,
                           .from = (const unsigned char *)global,
                           .size = bytes,
                           .bytes = bytes,
                           .by = emu_self(),
                           .file = file,
                           .line = line,
                           .pc = __builtin_return_address(0),
                           .bar = number,
                           .phase = a->bars[number].phase};
    const int32_t at = issue(a, &copy);
    if (emu_options.async == FD_EMU_EARLIEST) {
        arrived(a, at);
        return;
    }
    if (a->first_bulk == 0) {
        a->first_bulk = at;
    } else {
        a->copies[a->last_bulk].next = at;
    }
    a->last_bulk = at;
}

bool emu_async_progress(emu_launch *run)
{
    emu_async *a = run->async;
    if (a == NULL || a->first_bulk == 0) {
        return false;
    }
    int32_t before = 0, number = a->first_bulk;
    if (emu_options.schedule == FD_EMU_SHUFFLED) { /* nothing orders one bulk copy after another */
        while (a->copies[number].next != 0 && (emu_random() & 3u) != 0) {
            before = number;
            number = a->copies[number].next;
        }
    }
    const emu_copy copy = a->copies[number];
    if (before == 0) {
        a->first_bulk = copy.next;
    } else {
        a->copies[before].next = copy.next;
    }
    a->last_bulk = a->last_bulk == number ? before : a->last_bulk;
    a->scheduler = true;
    arrived(a, number);
    a->scheduler = false;
    return true;
}

const emu_copy *emu_async_outstanding(const emu_async *a, int32_t bar, int64_t phase)
{
    for (int32_t i = a->first_bulk; i != 0; i = a->copies[i].next) {
        if (a->copies[i].bar == bar && a->copies[i].phase == phase) {
            return &a->copies[i];
        }
    }
    return NULL;
}

void emu_async_end_block(const emu_block *block)
{
    emu_async *a = emu_running->async;
    emu_mbar_end_block(a, block);
    for (int32_t i = a->first_bulk; i != 0; i = a->copies[i].next) {
        const emu_copy *copy = &a->copies[i];
        if (copy->by->warp->block == block) {
            emu_report_at(FD_EMU_ASYNC, copy->by, NULL, copy->file, copy->line,
                          "the block ends while this copy of %" PRIu32
                          " bytes, which no barrier expects, is on its way",
                          copy->size);
            emu_fail();
        }
    }
}
