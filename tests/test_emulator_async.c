/* test_emulator_async.c: asynchronous copies, transaction barriers, clusters and overlapping launches in the emulator:
 * right kernels give the right answer and no report under every schedule, whenever copies happen; planted faults are
 * named, with their line. */
#include "emulator_faults/scene.h"

enum { MAX_FLOATS = 8 * 256 };

static float values[MAX_FLOATS];

static void fill_values(void)
{
    for (int i = 0; i < MAX_FLOATS; i++) {
        values[i] = (float)(i % 251) + 0.25f;
    }
}

/* Runs it with n floats in; out_floats come back in out. */
static fd_status run(fd_async_run *kernel, int32_t fault, int32_t n, int32_t in_floats, float *out, int32_t out_floats)
{
    static float empty[2 * MAX_FLOATS];
    fill_values();
    void *in = scene_upload(values, (size_t)in_floats * sizeof *values);
    void *in2 = scene_upload(empty, (size_t)in_floats * sizeof *values);
    void *result = scene_upload(empty, (size_t)out_floats * sizeof *out);
    const fd_async_args args = {.in = in, .in2 = in2, .out = (float *)result, .n = n, .fault = fault};
    const fd_status status = kernel(&args);
    scene_download(out, result, (size_t)out_floats * sizeof *out);
    fd_device_emu()->release(in);
    fd_device_emu()->release(in2);
    return status;
}

static void expect_planted(fd_async_run *kernel, const char *file, const planted *p, int32_t in_floats,
                           int32_t out_floats)
{
    static float out[2 * MAX_FLOATS];
    EACH_WAY(schedule, async)
    {
        char what[80];
        snprintf(what, sizeof what, "%s, fault %d, schedule %d, %s", file, (int)p->fault, (int)schedule,
                 async == FD_EMU_LATEST ? "latest" : "earliest");
        scene_configure(schedule, async, 0);
        const fd_status status = run(kernel, p->fault, p->n, in_floats, out, out_floats);
        if (p->kind[async] == 0) {
            scene_expect_clean(what);
            continue;
        }
        scene_expect(file, p->kind[async], p->marker[async], p->says, what);
        cr_assert(status == FD_DEVICE_ERROR, "%s: the launch does not fail", what);
    }
}

/* ---- cp.async ---- */

static void copy_is_right(fd_async_run *kernel)
{
    static float out[MAX_FLOATS];
    static const int32_t lengths[] = {1, 4, 255, 256, 258, 1021, 1280};
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        const int32_t n = lengths[k], padded = (n + FD_COPY_TILE - 1) / FD_COPY_TILE * FD_COPY_TILE;
        cr_assert(run(kernel, 0, n, n, out, padded) == FD_OK);
        scene_expect_clean("copy");
        for (int32_t i = 0; i < padded; i++) {
            cr_assert(out[i] == (i < n ? 2.0f * values[i] : 0.0f), "%d of %d: %g", (int)i, (int)n, (double)out[i]);
        }
    }
}

Test(emulator_async, a_double_buffered_copy_is_right)
{
    EACH_WAY(schedule, async)
    {
        EACH_BUILD(copy, kernel)
        {
            scene_configure(schedule, async, 0);
            copy_is_right(kernel);
        }
    }
}

Test(emulator_async, planted_faults_of_copies_are_named)
{
    static const planted faults[] = {
        {FD_COPY_NO_WAIT, 512, BOTH(FD_EMU_ASYNC), BOTH("first_copy"), "fd_cp_wait(0) is missing"},
        {FD_COPY_NO_COMMIT, 256, BOTH(FD_EMU_ASYNC), BOTH("first_copy"), "fd_cp_commit()"},
        {FD_COPY_WAIT_TOO_FEW, 768, BOTH(FD_EMU_ASYNC), BOTH("next_copy"), "fd_cp_wait(0) is missing"},
        {FD_COPY_REUSED, 512, BOTH(FD_EMU_ASYNC), BOTH("next_copy"), "still on its way"},
        {FD_COPY_MISALIGNED, 256, BOTH(FD_EMU_ALIGNMENT), BOTH("misaligned"), NULL},
        {FD_COPY_PAST_SOURCE, 256, BOTH(FD_EMU_ACCESS), BOTH("past_source"), "past the end of a device allocation"},
        {FD_COPY_TO_GLOBAL, 256, BOTH(FD_EMU_ACCESS), BOTH("to_global"), NULL},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        EACH_BUILD(copy, kernel)
        {
            expect_planted(kernel, "async_copy.cu", &faults[i], faults[i].n, faults[i].n);
        }
    }
}

/* In the third tile: its buffer has held the first one. */
Test(emulator_async, a_read_before_the_wait_sees_the_poison_and_is_seen_by_the_observer)
{
    enum { TILES = 3 * FD_COPY_TILE, AT = 2 * FD_COPY_TILE };
    static float out[TILES];
    EACH_SCHEDULE(schedule)
    {
        scene_configure(schedule, FD_EMU_LATEST, 0);
        cr_assert(run(fd_async_plain_copy, FD_COPY_READ_EARLY, TILES, TILES, out, TILES) == FD_OK);
        cr_assert(out[AT] != out[AT], "%g", (double)out[AT]);
        scene_configure(schedule, FD_EMU_EARLIEST, 0); /* a GPU that is fast enough hides the mistake */
        cr_assert(run(fd_async_plain_copy, FD_COPY_READ_EARLY, TILES, TILES, out, TILES) == FD_OK);
        cr_assert(out[AT] == 2.0f * values[AT], "%g", (double)out[AT]);
    }
    EACH_WAY(schedule, async)
    {
        scene_configure(schedule, async, 0);
        run(fd_async_hooked_copy, FD_COPY_READ_EARLY, TILES, TILES, out, TILES);
        scene_expect("async_copy.cu", FD_EMU_ASYNC, "read_early", NULL, "read early");
    }
}

/* ---- Transaction barriers ---- */

static void pipe_is_right(fd_async_run *kernel)
{
    static float out[2 * MAX_FLOATS];
    for (int32_t tiles = 1; tiles <= 8; tiles++) {
        const int32_t n = tiles * FD_PIPE_TILE;
        cr_assert(run(kernel, 0, n, n, out, 2 * n) == FD_OK);
        scene_expect_clean("pipe");
        for (int32_t i = 0; i < 2 * n; i++) {
            cr_assert(out[i] == 2.0f * values[i % n], "%d of %d: %g", (int)i, (int)n, (double)out[i]);
        }
    }
}

Test(emulator_async, a_pipeline_of_bulk_copies_is_right)
{
    EACH_WAY(schedule, async)
    {
        EACH_BUILD(pipe, kernel)
        {
            scene_configure(schedule, async, 0);
            pipe_is_right(kernel);
        }
    }
}

Test(emulator_async, planted_faults_of_barriers_are_named)
{
    static const planted faults[] = {
        {FD_PIPE_BYTES_OVER, 1536, BOTH(FD_EMU_DEADLOCK), BOTH("wait"),
         "waits for 0 of 1 arrivals and for 16 more bytes"},
        {FD_PIPE_BYTES_UNDER, 1536, BOTH(FD_EMU_DEADLOCK), BOTH("wait"), "got 16 bytes more"},
        {FD_PIPE_BYTES_HALF, 1536, {FD_EMU_ASYNC, FD_EMU_DEADLOCK}, {"expect", "wait"}, NULL},
        {FD_PIPE_WAIT_UNINITIALISED, 256, BOTH(FD_EMU_ASYNC), BOTH("wait_uninitialised"), "nobody has initialised"},
        {FD_PIPE_INITIALISED_TWICE, 256, BOTH(FD_EMU_ASYNC), BOTH("initialised_twice"), NULL},
        {FD_PIPE_NO_FENCE, 256, BOTH(FD_EMU_ASYNC), BOTH("bulk"), "fd_fence_async() is missing"},
        {FD_PIPE_ARRIVES_TWICE, 256, BOTH(FD_EMU_ASYNC), BOTH("arrives_twice"), "beyond the 1 arrivals"},
        {FD_PIPE_OVERWRITTEN, 256, BOTH(FD_EMU_ASYNC), {NULL, NULL}, "has been overwritten"},
        {FD_PIPE_MISALIGNED, 256, BOTH(FD_EMU_ALIGNMENT), BOTH("bulk_misaligned"), NULL},
        {FD_PIPE_ODD_BYTES, 256, BOTH(FD_EMU_ASYNC), BOTH("odd_bytes"), "multiple of 16"},
        {FD_PIPE_PAST_SOURCE, 256, BOTH(FD_EMU_ACCESS), BOTH("bulk"), "past the end"},
        {FD_PIPE_LAST_UNWAITED, 1536, BOTH(FD_EMU_ASYNC), BOTH("expect"), "nobody"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        EACH_BUILD(pipe, kernel)
        {
            expect_planted(kernel, "mbar_pipe.cu", &faults[i], faults[i].n, 2 * faults[i].n);
        }
    }
}

/* What comes of it depends on who is faster: a buffer is filled too early, or somebody waits for ever. */
static void parity_is_named(int32_t fault)
{
    static const char *const calls[] = {"wait", "wait_empty", "expect", "bulk"};
    static float out[2 * 1536];
    const fd_emu_report *reports;
    char text[400] = "", place[64];
    int named = 0;
    cr_assert(run(fd_async_plain_pipe, fault, 1536, 1536, out, 2 * 1536) == FD_DEVICE_ERROR);
    for (int i = fd_emu_reports(&reports) - 1; i >= 0; i--) {
        fd_emu_describe(&reports[i], text, sizeof text);
        cr_assert(reports[i].fault == FD_EMU_ASYNC || reports[i].fault == FD_EMU_DEADLOCK, "%s", text);
        for (int k = 0; k < 4; k++) {
            const int line = scene_line_of("tests/emulator_faults/mbar_pipe.cu", calls[k]);
            snprintf(place, sizeof place, "mbar_pipe.cu:%d:", line);
            named += strstr(text, place) != NULL;
        }
    }
    cr_assert(named > 0, "%s", text);
}

Test(emulator_async, a_wait_for_the_wrong_parity_is_named)
{
    EACH_WAY(schedule, async)
    {
        for (int32_t fault = FD_PIPE_PARITY_STUCK; fault <= FD_PIPE_PARITY_INVERTED; fault++) {
            scene_configure(schedule, async, 0);
            parity_is_named(fault);
        }
    }
}

/* A race, not a misuse: without hooks it shows in the results, where the leader is the first to go on. */
Test(emulator_async, a_buffer_filled_while_others_read_it_has_wrong_results)
{
    static float out[2 * 1536];
    int wrong = 0;
    scene_configure(FD_EMU_SEQUENTIAL, FD_EMU_LATEST, 0);
    cr_assert(run(fd_async_plain_pipe, FD_PIPE_OVERRUN, 1536, 1536, out, 2 * 1536) == FD_OK);
    for (int i = 0; i < 2 * 1536; i++) {
        wrong += !(out[i] == 2.0f * values[i % 1536]);
    }
    cr_assert(wrong > 0);
}

Test(emulator_async, a_buffer_filled_while_others_read_it_is_reported_with_hooks)
{
    static float out[2 * 1536];
    EACH_WAY(schedule, async)
    {
        const fd_emu_report *reports;
        scene_configure(schedule, async, 0);
        run(fd_async_hooked_pipe, FD_PIPE_OVERRUN, 1536, 1536, out, 2 * 1536);
        cr_assert(fd_emu_reports(&reports) > 0, "schedule %d, async %d", (int)schedule, (int)async);
    }
}

/* ---- Clusters ---- */

static void cluster_is_right(fd_async_run *kernel, int32_t size)
{
    static float out[32];
    float sum = 0.0f;
    cr_assert(run(kernel, 0, size, size, out, 2 * size) == FD_OK);
    scene_expect_clean("cluster");
    for (int32_t r = 0; r < size; r++) {
        sum += values[r];
    }
    for (int32_t b = 0; b < 2 * size; b++) {
        cr_assert(out[b] == sum, "block %d of clusters of %d", (int)b, (int)size);
    }
}

Test(emulator_async, a_cluster_sums_over_its_blocks)
{
    EACH_SCHEDULE(schedule)
    {
        for (int32_t size = 1; size <= 16; size++) {
            EACH_BUILD(cluster, kernel)
            {
                scene_configure(schedule, 0, 0);
                cluster_is_right(kernel, size);
            }
        }
    }
}

Test(emulator_async, planted_faults_of_clusters_are_named)
{
    static const planted faults[] = {
        {FD_CLUSTER_LEAVES, 4, BOTH(FD_EMU_CLUSTER), BOTH("leaves"), "has left the kernel"},
        {FD_CLUSTER_NOT_STARTED, 4, BOTH(FD_EMU_CLUSTER), BOTH("not_started"), "has not started"},
#if !defined(__SANITIZE_ADDRESS__) /* which keeps static arrays where it guards them */
        {FD_CLUSTER_STATIC, 4, BOTH(FD_EMU_CLUSTER), {NULL, NULL}, "static shared memory"},
#endif
        {FD_CLUSTER_STATIC_MAPPED, 4, BOTH(FD_EMU_CLUSTER), BOTH("static_mapped"), "static shared memory"},
        {FD_CLUSTER_RANK, 4, BOTH(FD_EMU_CLUSTER), BOTH("rank"), "block 4 of a cluster of 4"},
        {FD_CLUSTER_WARP_LEAVES, 4, BOTH(0), {NULL, NULL}, NULL},
        {FD_CLUSTER_ONE_WAITS, 4, BOTH(FD_EMU_BARRIER), {NULL, NULL}, "cluster barrier"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        EACH_BUILD(cluster, kernel)
        {
            expect_planted(kernel, "cluster_sum.cu", &faults[i], faults[i].n, 2 * faults[i].n);
        }
    }
}

Test(emulator_async, a_cluster_that_no_gpu_takes_is_refused)
{
    static const planted fault = {0, 17, BOTH(FD_EMU_LAUNCH), {NULL, NULL}, "clusters of 17"};
    EACH_BUILD(cluster, kernel)
    {
        expect_planted(kernel, "cluster_sum.cu", &fault, 17, 34);
    }
}

/* ---- Overlapping launches: within a rung's run() ---- */

static fd_async_run *overlap_kernel = fd_async_plain_overlap;
static fd_async_args overlap_args;

static fd_status run_overlap(const fd_problem *problem, const fd_context *context)
{
    (void)problem, (void)context;
    return overlap_kernel(&overlap_args);
}

static fd_status overlap(int32_t fault, float *out, int32_t n, char *why, size_t size)
{
    static const fd_rung rung = {.run = run_overlap};
    static float old[MAX_FLOATS];
    fill_values();
    for (int32_t i = 0; i < n; i++) {
        old[i] = -7.0f; /* what the second launch reads before the first one has written */
    }
    void *in = scene_upload(values, (size_t)n * sizeof *values), *in2 = scene_upload(old, (size_t)n * sizeof *old);
    void *result = scene_upload(old, (size_t)n * sizeof *out);
    overlap_args = (fd_async_args){.in = in, .in2 = in2, .out = (float *)result, .n = n, .fault = fault};
    const fd_status status = fd_device_emu()->run(&rung, NULL, NULL, why, size);
    scene_download(out, result, (size_t)n * sizeof *out);
    fd_device_emu()->release(in);
    fd_device_emu()->release(in2);
    return status;
}

Test(emulator_async, an_overlapping_launch_waits_for_the_one_before)
{
    static float out[512];
    char why[400] = "";
    EACH_WAY(schedule, async)
    {
        EACH_BUILD(overlap, kernel)
        {
            scene_configure(schedule, async, 0);
            overlap_kernel = kernel;
            cr_assert(overlap(0, out, 512, why, sizeof why) == FD_OK, "%s", why);
            for (int i = 0; i < 512; i++) {
                cr_assert(out[i] == 2.0f * (values[i] + 1.0f) + values[i], "%d: %g", i, (double)out[i]);
            }
        }
    }
}

Test(emulator_async, what_an_overlapping_launch_reads_before_its_wait_is_old)
{
#if !defined(__SANITIZE_ADDRESS__) /* under which launches do not overlap */
    static float out[512];
    char why[400] = "";
    EACH_SCHEDULE(schedule)
    {
        int old = 0;
        scene_configure(schedule, 0, 0);
        cr_assert(overlap(FD_OVERLAP_READ_EARLY, out, 512, why, sizeof why) == FD_OK, "%s", why);
        for (int i = 0; i < 512; i++) {
            old += out[i] == -14.0f;
        }
        cr_assert(old == 64, "%d", old); /* the block that started early */
    }
#endif
}

Test(emulator_async, an_overlapping_launch_that_never_waits_is_reported)
{
    static float out[512];
    char why[400] = "";
    scene_configure(0, 0, 0);
    cr_assert(overlap(FD_OVERLAP_NO_WAIT, out, 512, why, sizeof why) == FD_DEVICE_ERROR);
    cr_assert(strstr(why, "never calls fd_overlap_wait()") != NULL, "%s", why);
}
