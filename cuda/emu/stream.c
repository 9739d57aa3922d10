/* stream.c: launches, one after the other, and programmatic dependent launch. While a rung's run() is under way, a launch
 * waits for the next one: if that is an overlapping one, its first blocks run before the waiting launch does, up to
 * fd_overlap_wait(). What they read too early has its old contents then. No earlier start is possible on a GPU; later
 * ones are, and the other blocks show one. Of a chain of overlapping launches every other one starts early. */
#include <stdlib.h>
#include <string.h>

#include "block.h"

static emu_call waiting; /* args == NULL: none; else a copy */
static bool deferring;
static void *expected; /* the stream of run(), on which everything is to be launched; NULL: anywhere */

static fd_status run_waiting(void)
{
    if (waiting.args == NULL) {
        return FD_OK;
    }
    const emu_call call = waiting;
    waiting.args = NULL;
    const fd_status status = emu_launch_now(&call, NULL);
    free((void *)(uintptr_t)call.args);
    return status;
}

/* The observer follows one launch at a time; and where static shared arrays are not known, as under AddressSanitizer,
 * they cannot be kept while another launch runs. */
static bool can_overlap(const emu_call *call)
{
#ifdef FD_EMU_ASAN
    (void)call;
    return false;
#else
    return call->file->hooked == 0 && waiting.file->hooked == 0;
#endif
}

void emu_stream_begin(void *given)
{
    expected = given;
    deferring = true;
}

void emu_stream_end(bool discard)
{
    deferring = false;
    if (discard) {
        free((void *)(uintptr_t)waiting.args);
        waiting.args = NULL;
    }
    run_waiting();
}

fd_status fd_emu_launch(const char *name, void (*enter)(const void *args), int max_threads, const fd_emu_file *file,
                        const fd_launch *launch, const void *args, size_t args_bytes)
{
    emu_call call = {name, enter, max_threads, file, *launch, args, args_bytes};
    if (!deferring) {
        return emu_launch_now(&call, NULL);
    }
    if (expected != NULL && launch->stream != expected) {
        emu_report(FD_EMU_LAUNCH, NULL, 0, "%s is launched on another stream than run() was given", name);
        return FD_DEVICE_ERROR;
    }
    if (launch->overlapping && waiting.args != NULL && can_overlap(&call)) {
        const emu_call prior = waiting;
        waiting.args = NULL;
        const fd_status status = emu_launch_now(&call, &prior);
        free((void *)(uintptr_t)prior.args);
        return status;
    }
    if (run_waiting() != FD_OK) {
        return FD_DEVICE_ERROR;
    }
    void *copy = malloc(args_bytes);
    if (copy == NULL) {
        return FD_NO_MEMORY;
    }
    memcpy(copy, args, args_bytes);
    call.args = copy;
    waiting = call;
    emu_counters_of(name); /* counted in the order of the launches */
    return FD_OK;
}

void fd_emu_overlap_wait(const char *file, int line)
{
    emu_thread *self = emu_self();
    self->file = file;
    self->line = line;
    emu_running->overlap_waited = true;
    if (emu_running->prior != NULL) {
        emu_block_self(self, WAIT_OVERLAP);
    }
}

/* The dependent launch starts as early as can be without being asked. */
void fd_overlap_trigger(void)
{
}
