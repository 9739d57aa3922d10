/* test_emulator.c: each planted fault of tests/emulator_faults is reported, with its kind, kernel and line, in every
 * schedule; the same kernel without the fault is not. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>

#include "emu/emulator.h"
#include "emulator_faults/fault.h"

/* fault, kind seen by the plain build, kind seen by the hooked build; 0: none is. */
#define FAULTS(X)                                                                                                      \
    X(missing_syncthreads, 0, FD_EMU_RACE)                                                                             \
    X(tile_reused, 0, FD_EMU_RACE)                                                                                     \
    X(missing_syncwarp, 0, FD_EMU_RACE)                                                                                \
    X(shuffle_as_barrier, 0, FD_EMU_RACE)                                                                              \
    X(partial_mask, 0, FD_EMU_RACE)                                                                                    \
    X(written_by_lane, 0, FD_EMU_RACE)                                                                                 \
    X(written_by_warp, 0, FD_EMU_RACE)                                                                                 \
    X(written_by_block, 0, FD_EMU_RACE)                                                                                \
    X(shared_race, 0, FD_EMU_RACE)                                                                                     \
    X(global_race, 0, FD_EMU_RACE)                                                                                     \
    X(global_exchange, 0, FD_EMU_RACE)                                                                                 \
    X(ticket_too_early, 0, FD_EMU_RACE)                                                                                \
    X(ticket_plain, 0, FD_EMU_RACE)                                                                                    \
    X(release_missing, 0, FD_EMU_RACE)                                                                                 \
    X(uninitialised_shared, 0, FD_EMU_UNINITIALISED)                                                                   \
    X(shuffle_divergent, FD_EMU_WARP, FD_EMU_WARP)                                                                     \
    X(barrier_divergent, FD_EMU_BARRIER, FD_EMU_BARRIER)                                                               \
    X(early_return, FD_EMU_BARRIER, FD_EMU_BARRIER)                                                                    \
    X(index_static, 0, FD_EMU_INDEX)                                                                                   \
    X(past_static, 0, FD_EMU_ACCESS)                                                                                   \
    X(past_dynamic, 0, FD_EMU_ACCESS)                                                                                  \
    X(global_byte, 0, FD_EMU_ACCESS)                                                                                   \
    X(global_write, 0, FD_EMU_ACCESS)                                                                                  \
    X(global_far, FD_EMU_ACCESS, FD_EMU_ACCESS)                                                                        \
    X(misaligned_vector, FD_EMU_ALIGNMENT, FD_EMU_ALIGNMENT)                                                           \
    X(misaligned_float, 0, FD_EMU_ALIGNMENT)                                                                           \
    X(bare_spin, FD_EMU_SPIN, FD_EMU_SPIN)                                                                             \
    X(spin_deadlock, FD_EMU_DEADLOCK, FD_EMU_DEADLOCK)                                                                 \
    X(divided_by_zero, FD_EMU_INDEX, FD_EMU_INDEX)                                                                     \
    X(host_memory, 0, FD_EMU_ACCESS)                                                                                   \
    X(host_access, FD_EMU_HOST, FD_EMU_HOST)                                                                           \
    X(illegal_launch, FD_EMU_LAUNCH, FD_EMU_LAUNCH)                                                                    \
    X(illegal_grid, FD_EMU_LAUNCH, FD_EMU_LAUNCH)                                                                      \
    X(illegal_shared, FD_EMU_LAUNCH, FD_EMU_LAUNCH)                                                                    \
    X(ticket_not_reset, 0, 0)                                                                                          \
    X(widths, 0, 0)                                                                                                    \
    X(one_address, 0, 0)                                                                                               \
    X(meetings, 0, 0)                                                                                                  \
    X(uncoalesced, 0, 0)                                                                                               \
    X(bank_conflict, 0, 0)

#define DECLARE(fault, plain, hooked) extern const fd_rung fd_fault_##fault[2], fd_hooked_fault_##fault[2];
FAULTS(DECLARE)

static const struct {
    const char *name;
    const fd_rung *rungs, *hooked; /* [2]: wrong, right */
    int32_t in_plain, in_hooked;
} faults[] = {
#define ROW(fault, plain, hooked) {#fault, fd_fault_##fault, fd_hooked_fault_##fault, plain, hooked},
    FAULTS(ROW)};
enum { NUM_FAULTS = sizeof faults / sizeof *faults };

/* One launch, or two on the same memory, from zeros. Leaves the memory in x if it is given. */
static fd_status launch(const fd_rung *rung, int32_t schedule, int times, float *x, char *why, size_t n)
{
    const fd_device *device = fd_device_emu();
    const fd_problem problem = {.size = sizeof problem};
    const fd_emu_options options = {
        .schedule = schedule, .seed = 1, .num_units = 16, .spin_seconds = rung->name[0] == 'b' ? 0.2 : 10.0};
    static const float zeros[FD_FAULT_FLOATS];
    fd_context context = {.size = sizeof context};
    fd_status status;
    fd_emu_configure(&options);
    fd_emu_clear();
    cr_assert_eq(device->alloc(&context.workspace, sizeof zeros, why, n), FD_OK);
    cr_assert_eq(device->write(context.workspace, zeros, sizeof zeros, why, n), FD_OK);
    why[0] = '\0';
    do {
        status = device->run(rung, &problem, &context, why, n);
    } while (status == FD_OK && --times > 0);
    if (x != NULL) {
        cr_assert_eq(device->read(x, context.workspace, sizeof zeros, why, n), FD_OK);
    }
    device->release(context.workspace);
    return status;
}

/* Does line "name.cu:12" of the fault's source end in the comment FAULT? */
static bool is_marked(const char *name, const char *place)
{
    char path[256], text[256];
    const char *folder = getenv("FD_FAULTS"), *colon = strrchr(place, ':');
    snprintf(path, sizeof path, "%s/%s.cu", folder != NULL ? folder : "tests/emulator_faults", name);
    FILE *f = fopen(path, "r");
    cr_assert_not_null(f, "%s: run the suite from the project's folder", path);
    bool marked = false;
    for (int line = 1; colon != NULL && fgets(text, sizeof text, f) != NULL; line++) {
        marked |= line == atoi(colon + 1) && strstr(text, "/* FAULT */") != NULL;
    }
    fclose(f);
    return marked && strncmp(place, name, strlen(name)) == 0;
}

static void expect_fault(int i, const fd_rung *rung, int32_t kind, int32_t schedule)
{
    char why[400], place[160], kernel[80];
    const fd_emu_report *reports;
    const fd_status status = launch(rung, schedule, 1, NULL, why, sizeof why);
    const int count = fd_emu_reports(&reports);
    bool found = false;
    cr_assert_eq(status, FD_DEVICE_ERROR, "%s, schedule %d: %s", faults[i].name, schedule, fd_status_name(status));
    snprintf(kernel, sizeof kernel, "fd_k_%s", faults[i].name);
    for (int r = 0; r < count; r++) {
        fd_emu_describe(&reports[r], why, sizeof why);
        cr_assert_eq(reports[r].fault, kind, "%s, schedule %d: %s", faults[i].name, schedule, why);
        found = true;
        if (kind == FD_EMU_LAUNCH) {
            continue;
        }
        fd_emu_locate(&reports[r], place, sizeof place);
        cr_assert(is_marked(faults[i].name, place), "%s, schedule %d: %s", faults[i].name, schedule, why);
        if (kind != FD_EMU_HOST) {
            cr_assert_str_eq(reports[r].kernel, kernel);
        }
    }
    cr_assert(found, "%s, schedule %d: not reported", faults[i].name, schedule);
}

static void expect_clean(int i, const fd_rung *rung, int32_t schedule)
{
    char why[400];
    const fd_emu_report *reports;
    const fd_status status = launch(rung, schedule, 1, NULL, why, sizeof why);
    cr_assert_eq(status, FD_OK, "%s, schedule %d: %s", faults[i].name, schedule, why);
    cr_assert_eq(fd_emu_reports(&reports), 0);
}

/* UBSan and ASan, where the plain build has them, stop at these themselves. */
static bool stopped_by_sanitizer(int i)
{
#ifdef FD_EMU_ASAN
    return faults[i].in_plain == FD_EMU_INDEX || faults[i].in_plain == FD_EMU_ACCESS;
#else
    (void)i;
    return false;
#endif
}

Test(emulator, planted_faults_are_reported_by_the_plain_build)
{
    for (int i = 0; i < NUM_FAULTS; i++) {
        for (int32_t s = 0; s < FD_EMU_NUM_SCHEDULES && faults[i].in_plain != 0 && !stopped_by_sanitizer(i); s++) {
            expect_fault(i, &faults[i].rungs[0], faults[i].in_plain, s);
        }
    }
}

Test(emulator, planted_faults_are_reported_by_the_hooked_build)
{
    for (int i = 0; i < NUM_FAULTS; i++) {
        for (int32_t s = 0; s < FD_EMU_NUM_SCHEDULES && faults[i].in_hooked != 0; s++) {
            expect_fault(i, &faults[i].hooked[0], faults[i].in_hooked, s);
        }
    }
}

Test(emulator, kernels_without_a_fault_are_not_reported)
{
    for (int i = 0; i < NUM_FAULTS; i++) {
        for (int32_t s = 0; s < FD_EMU_NUM_SCHEDULES; s++) {
            expect_clean(i, &faults[i].rungs[1], s);
            expect_clean(i, &faults[i].hooked[1], s);
        }
    }
}

/* ---- What a report says ---- */

Test(emulator, a_report_names_the_thread)
{
    static const struct {
        const char *name;
        uint32_t thread;
    } culprits[] = {
        {"index_static", 63}, {"past_static", 63}, {"past_dynamic", 63}, {"global_byte", 5}, {"global_write", 40}};
    char why[400];
    const fd_emu_report *reports;
    for (size_t k = 0; k < sizeof culprits / sizeof *culprits; k++) {
        for (int i = 0; i < NUM_FAULTS; i++) {
            for (int32_t s = 0; s < FD_EMU_NUM_SCHEDULES && strcmp(faults[i].name, culprits[k].name) == 0; s++) {
                launch(&faults[i].hooked[0], s, 1, NULL, why, sizeof why);
                cr_assert_eq(fd_emu_reports(&reports), 1, "%s", faults[i].name);
                cr_assert_eq(reports[0].thread.x, culprits[k].thread, "%s: %s", faults[i].name, why);
                cr_assert_eq(reports[0].block.x, 0);
            }
        }
    }
}

Test(emulator, a_race_names_both_lines)
{
    char why[400];
    launch(&fd_hooked_fault_missing_syncwarp[0], FD_EMU_SEQUENTIAL, 1, NULL, why, sizeof why);
    const char *first = strstr(why, "missing_syncwarp.cu:"), *second = strstr(why, "there: missing_syncwarp.cu:");
    cr_assert_not_null(first, "%s", why);
    cr_assert_not_null(second, "%s", why);
    cr_assert_neq(atoi(strchr(first, ':') + 1), atoi(strchr(strstr(second, ".cu"), ':') + 1), "%s", why);
    cr_assert_not_null(strstr(why, "with no barrier between"), "%s", why);
}

Test(emulator, the_last_byte_of_an_access_is_what_counts)
{
    char why[400];
    launch(&fd_hooked_fault_global_byte[0], FD_EMU_SEQUENTIAL, 1, NULL, why, sizeof why);
    cr_assert_not_null(strstr(why, "byte 1 past the end of a device allocation of 1200 bytes"), "%s", why);
}

/* A block that finds the counter where the last launch left it never thinks that it is the last one: no fault of memory or
 * order, but a result that is not there. The judge sees that, whose workspace and outputs hold poison. */
Test(emulator, a_ticket_that_is_not_reset_loses_the_second_result)
{
    float x[FD_FAULT_FLOATS];
    char why[400];
    for (int right = 0; right <= 1; right++) {
        for (int times = 1; times <= 2; times++) {
            const fd_status status =
                launch(&fd_hooked_fault_ticket_not_reset[right], FD_EMU_SHUFFLED, times, x, why, sizeof why);
            cr_assert_eq(status, FD_OK, "%s", why);
            /* The kernel adds its sum, 3, to what is there. */
            cr_assert_eq(x[204], right ? 3.0f * (float)times : 3.0f, "right %d, launch %d: %g", right, times,
                         (double)x[204]);
        }
    }
}

/* ---- Counts ---- */

static const fd_emu_counters *counts_of(const fd_rung *rung, int32_t schedule)
{
    char why[400];
    const fd_emu_counters *counters;
    cr_assert_eq(launch(rung, schedule, 1, NULL, why, sizeof why), FD_OK, "%s", why);
    cr_assert_eq(fd_emu_counts(&counters), 1);
    return counters;
}

Test(emulator, uncoalesced_loads_are_counted)
{
    for (int32_t s = 0; s < FD_EMU_NUM_SCHEDULES; s++) {
        for (int right = 0; right <= 1; right++) {
            const fd_emu_counters *c = counts_of(&fd_hooked_fault_uncoalesced[right], s);
            cr_assert_eq(c->global_loads, 1);
            cr_assert_eq(c->global_load_sectors, right ? 4 : 32);
            cr_assert_eq(c->global_load_bytes, 128);
            cr_assert_eq(c->global_load_distinct, 128);
            cr_assert_eq(c->global_stores, 1);
            cr_assert_eq(c->global_store_sectors, 4);
            cr_assert_eq(c->shared_loads + c->shared_stores + c->barriers + c->uncounted, 0);
        }
    }
}

Test(emulator, bank_conflicts_are_counted)
{
    for (int32_t s = 0; s < FD_EMU_NUM_SCHEDULES; s++) {
        for (int right = 0; right <= 1; right++) {
            const fd_emu_counters *c = counts_of(&fd_hooked_fault_bank_conflict[right], s);
            cr_assert_eq(c->shared_stores, 1);
            cr_assert_eq(c->shared_store_wavefronts, right ? 1 : 32);
            cr_assert_eq(c->shared_store_ideal, 1);
            cr_assert_eq(c->shared_loads, 1);
            cr_assert_eq(c->shared_load_wavefronts, right ? 1 : 32);
            cr_assert_eq(c->barriers, 1);
        }
    }
}

Test(emulator, lanes_that_met_in_between_make_another_request)
{
    for (int32_t s = 0; s < FD_EMU_NUM_SCHEDULES; s++) {
        cr_assert_eq(counts_of(&fd_hooked_fault_meetings[0], s)->global_loads, 1);
        const fd_emu_counters *c = counts_of(&fd_hooked_fault_meetings[1], s);
        cr_assert_eq(c->global_loads, 4);
        cr_assert_eq(c->global_load_sectors, 4);
        cr_assert_eq(c->warp_syncs, 4);
    }
}

/* 1, 2 and 4 passes for 4, 8 and 16 bytes a lane; from one address half as many, as an H200 counts for 16 bytes. */
Test(emulator, a_wide_load_of_one_address_takes_half_the_wavefronts)
{
    for (int32_t s = 0; s < FD_EMU_NUM_SCHEDULES; s++) {
        for (int right = 0; right <= 1; right++) {
            const fd_emu_counters *c = counts_of(&fd_hooked_fault_one_address[right], s);
            cr_assert_eq(c->shared_loads, 3);
            cr_assert_eq(c->shared_load_wavefronts, right ? 1 + 1 + 2 : 1 + 2 + 4);
            cr_assert_eq(c->shared_load_ideal, c->shared_load_wavefronts);
        }
    }
}

/* Every instruction width against counts worked out by hand. */
Test(emulator, requests_of_every_width_are_counted)
{
    static const struct {
        int64_t loads, sectors, bytes, distinct, shared, wavefronts, ideal;
    } expected[2] = {
        /* 32 lanes: a byte, 2, 4, 8 and 16 bytes each from global memory; the same from shared memory, where
         * a quarter-warp reads the same 128 bytes as the next: 16-byte loads are served by quarter-warps all the same */
        {5, 1 + 2 + 4 + 8 + 16, 31 * 32, 512, 5, 1 + 1 + 1 + 2 + 4, 1 + 1 + 1 + 2 + 4},
        /* the even lanes of the same */
        {5, 1 + 2 + 4 + 8 + 16, 31 * 16, 341, 5, 1 + 1 + 1 + 2 + 4, 1 + 1 + 1 + 1 + 2},
    };
    for (int32_t s = 0; s < FD_EMU_NUM_SCHEDULES; s++) {
        for (int half = 0; half <= 1; half++) {
            const fd_emu_counters *c = counts_of(&fd_hooked_fault_widths[half], s);
            cr_assert_eq(c->global_loads, expected[half].loads);
            cr_assert_eq(c->global_load_sectors, expected[half].sectors);
            cr_assert_eq(c->global_load_bytes, expected[half].bytes);
            cr_assert_eq(c->global_load_distinct, expected[half].distinct);
            cr_assert_eq(c->shared_loads, expected[half].shared);
            cr_assert_eq(c->shared_load_wavefronts, expected[half].wavefronts);
            cr_assert_eq(c->shared_load_ideal, expected[half].ideal);
        }
    }
}
