/* device.c: the emulator as a device of the suite, its options, and the wrappers that touch memory. */
#define _DEFAULT_SOURCE /* sigsetjmp */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "observe.h"
#include "signals.h"

static const fd_emu_options defaults = {.num_units = 16, .spin_seconds = 10.0};

fd_emu_options emu_options = {.num_units = 16, .spin_seconds = 10.0};

static fd_device device;

const fd_emu_options *fd_emu_current(void)
{
    return &emu_options;
}

void fd_emu_configure(const fd_emu_options *options)
{
    emu_options = options != NULL ? *options : defaults;
    device.machine.num_units = emu_options.num_units;
}

/* ---- The device ---- */

static fd_status copy_in(void *to_device, const void *from_host, size_t bytes, char *why, size_t n)
{
    (void)why, (void)n;
    emu_open_range(to_device, bytes, true);
    memcpy(to_device, from_host, bytes);
    emu_open_range(to_device, bytes, false);
    return FD_OK;
}

static fd_status copy_out(void *to_host, const void *from_device, size_t bytes, char *why, size_t n)
{
    (void)why, (void)n;
    emu_open_range(from_device, bytes, true);
    memcpy(to_host, from_device, bytes);
    emu_open_range(from_device, bytes, false);
    return FD_OK;
}

static fd_status run(const fd_rung *rung, const fd_problem *problem, const fd_context *context, char *why, size_t n)
{
    volatile fd_status status = FD_DEVICE_ERROR; /* kept across the jump */
    const fd_emu_report *reports;
    const int before = fd_emu_reports(&reports);
    if (emu_enter_host() == 0) {
        emu_signals_begin(1);
        emu_stream_begin(context != NULL ? context->stream : NULL);
        status = rung->run(problem, context);
    }
    emu_stream_end(status != FD_OK);
    emu_signals_end(1);
    emu_open_memory(false);
    const int after = fd_emu_reports(&reports);
    if (after > before) {
        fd_emu_describe(&reports[before], why, n);
        return FD_DEVICE_ERROR;
    }
    if (status != FD_OK) {
        snprintf(why, n, "run() returned %s", fd_status_name(status));
    }
    return status;
}

static fd_device device = {
    .where = "emu",
    .name = "emulator",
    .machine = {.size = sizeof(fd_machine),
                .space = FD_DEVICE,
                .num_units = 16,
                .blocks_per_unit = 1,
                .compute_capability = 90,
                .shared_bytes = EMU_SHARED_MAX,
                .l2_bytes = 50 << 20},
    .alloc = emu_alloc,
    .release = emu_release,
    .write = copy_in,
    .read = copy_out,
    .run = run,
};

const fd_device *fd_device_emu(void)
{
    return &device;
}

/* ---- Wrappers of fd_cuda.h ---- */

static void check_alignment(const void *at, size_t bytes, const char *file, int line)
{
    if ((uintptr_t)at % bytes != 0) {
        emu_report(FD_EMU_ALIGNMENT, file, line, "a %zu-byte access at an address that is %zu past a multiple of it",
                   bytes, (size_t)((uintptr_t)at % bytes));
        emu_fail();
    }
}

fd_vec16 fd_emu_load16(const void *at, const char *file, int line)
{
    fd_vec16 value;
    check_alignment(at, sizeof value, file, line);
    emu_observe_access(at, sizeof value, false, false, __builtin_return_address(0));
    memcpy(&value, at, sizeof value);
    return value;
}

void fd_emu_store16(void *at, fd_vec16 value, const char *file, int line)
{
    check_alignment(at, sizeof value, file, line);
    emu_observe_access(at, sizeof value, true, false, __builtin_return_address(0));
    memcpy(at, &value, sizeof value);
}

uint32_t fd_emu_atomic_add(uint32_t *at, uint32_t value, const char *file, int line)
{
    check_alignment(at, sizeof value, file, line);
    emu_observe_access(at, sizeof value, true, true, __builtin_return_address(0));
    emu_observe_acquire(emu_self(), at);
    emu_observe_release(emu_self(), at);
    emu_running->counters->atomics++;
    const uint32_t old = *at;
    *at = old + value;
    return old;
}

uint32_t fd_emu_load_acquire(const uint32_t *at, const char *file, int line)
{
    check_alignment(at, sizeof *at, file, line);
    if (emu_expired) {
        emu_spun(__builtin_return_address(0));
    }
    emu_observe_access(at, sizeof *at, false, true, __builtin_return_address(0));
    emu_observe_acquire(emu_self(), at);
    return *at;
}

void fd_emu_store_release(uint32_t *at, uint32_t value, const char *file, int line)
{
    check_alignment(at, sizeof *at, file, line);
    emu_observe_access(at, sizeof *at, true, true, __builtin_return_address(0));
    emu_observe_release(emu_self(), at);
    *at = value;
}

void fd_emu_fence(void)
{
    emu_running->counters->fences++;
}

float fd_exp2_approx(float x)
{
    float y = exp2f(x);
    const int32_t span = emu_options.exp2_ulps;
    if (span > 0 && isfinite(y) && y > 0.0f) {
        const int32_t off = (int32_t)(emu_random() % (uint64_t)(2 * span + 1)) - span;
        y = fd_float_from_bits(fd_bits_from_float(y) + (uint32_t)off);
    }
    return y;
}

uint32_t fd_smid(void)
{
    return fd_emu_self->block_idx.x % (uint32_t)emu_options.num_units;
}

uint64_t fd_clock(void)
{
    return (uint64_t)emu_running->switches;
}
