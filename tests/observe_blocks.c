/* observe_blocks.c: when and on which multiprocessor each block of a step ran. */
#include "observe.h"

const char fd_observe_blocks_head[] =
    FD_OBSERVE_KEY "num_splits,launch,kernel,threads,smem_bytes,registers,blocks_per_sm,sm,blocks,start_ns,end_ns,sms,"
                   "busy_ns,clock_step_ns,commit,machine_id";

#ifdef FD_GPU

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/measure.h"
#include "gpu/observe.h"
#include "observe_stretch.h"

#ifdef FD_OBSERVE

#define BLOCKS_MAX (1 << 16) /* of a step */
#define STEPS 5              /* observed; the one of median duration is told */
#define DETAIL_MAX 4096      /* blocks of a launch, one row each; of more, a row for each stretch of a multiprocessor */
#define ROW 256              /* bytes of a row, at most */
#define ALL (-1)             /* of the launches */

typedef struct step {
    int launches;
    fd_observed_launch launch[FD_OBSERVED_MAX];
    int64_t blocks, begin, end; /* of all launches; the card's clock */
    int64_t clock_step;         /* nanoseconds */
    fd_stamp *stamps;           /* [BLOCKS_MAX] */
} step;

/* ---- Intervals --------------------------------------------------------------------------------- */

/* Blocks of a launch, or of ALL, in order of multiprocessor and start. Returns how many. */
static int64_t blocks_of(const step *x, int launch, fd_stretch *out)
{
    const int64_t first = launch == ALL ? 0 : x->launch[launch].first;
    const int64_t count = launch == ALL ? x->blocks : x->launch[launch].blocks;
    for (int64_t i = 0; i < count; i++) {
        const fd_stamp *s = &x->stamps[first + i];
        out[i] = (fd_stretch){(int32_t)s->sm, 1, (int64_t)s->start - x->begin, (int64_t)s->end - x->begin};
    }
    fd_stretch_sort(out, count);
    return count;
}

/* ---- Rows -------------------------------------------------------------------------------------- */

typedef struct text {
    char *rows;
    size_t used, room;
} text;

static void add_row(text *t, const char *row)
{
    const size_t length = strlen(row);
    if (t->room - t->used > length + 1) {
        t->used += (size_t)snprintf(t->rows + t->used, t->room - t->used, "%s%s", t->used > 0 ? "\n" : "", row);
    }
}

/* Stretches, one row each. */
static void add_details(text *t, const char *key, int launch, const fd_stretch *x, int64_t count)
{
    char row[ROW];
    for (int64_t i = 0; i < count; i++) {
        snprintf(row, sizeof row, "%s%d,,,,,,%" PRId32 ",%" PRId32 ",%" PRId64 ",%" PRId64 ",,,,,", key, launch,
                 x[i].sm, x[i].blocks, x[i].start, x[i].end);
        add_row(t, row);
    }
}

/* A launch, or ALL, as a whole; x: its stretches, joined. */
static void add_summary(const fd_observation *s, text *t, const char *key, const step *of, int launch,
                        const fd_stretch *x, int64_t count, int64_t blocks)
{
    static const fd_observed_launch all = {.kernel = ""};
    const fd_observed_launch *l = launch == ALL ? &all : &of->launch[launch];
    const fd_stretch_sum sum = fd_stretch_total(x, count);
    char row[2 * ROW], number[16] = "";
    if (launch != ALL) {
        snprintf(number, sizeof number, "%d", launch);
    }
    snprintf(row, sizeof row,
             "%s%s,%s,%" PRId32 ",%" PRId32 ",%" PRId32 ",%" PRId32 ",,%" PRId64 ",%" PRId64 ",%" PRId64 ",%d,%" PRId64
             ",%" PRId64 ",%s,%s",
             key, number, l->kernel, l->threads, l->smem, l->registers, l->blocks_per_sm, blocks, sum.start, sum.end,
             sum.sms, sum.busy, of->clock_step, s->machine.commit, s->machine.machine_id);
    add_row(t, row);
    printf("   %-24.24s %6" PRId64 " blocks of %4" PRId32 ", %2" PRId32 " fit an SM; %3d SMs, %5.1f %% of all busy, "
           "%.2f to %.2f us\n",
           launch == ALL ? "step" : l->kernel, blocks, l->threads, l->blocks_per_sm, sum.sms,
           100.0 * (double)sum.busy / ((double)(sum.end - sum.start) * s->gpu->machine.num_units),
           (double)sum.start * 1e-3, (double)sum.end * 1e-3);
}

/* All rows of a step, in one write: a file has all of them or none. */
static fd_status report(fd_observation *s, const char *key, bool detailed, step *x, char *why, size_t n)
{
    text t = {.room = (size_t)(2 * BLOCKS_MAX) * ROW};
    fd_stretch *all = (fd_stretch *)malloc(BLOCKS_MAX * sizeof *all);
    t.rows = (char *)malloc(t.room);
    fd_status status = all != NULL && t.rows != NULL ? FD_OK : FD_NO_MEMORY;
    snprintf(why, n, "no memory");
    if (status == FD_OK) {
        x->clock_step = fd_stretch_step(all, blocks_of(x, ALL, all));
    }
    for (int l = 0; l < x->launches && status == FD_OK; l++) {
        int64_t count = blocks_of(x, l, all);
        if (detailed && count <= DETAIL_MAX) {
            add_details(&t, key, l, all, count);
        }
        const bool many = count > DETAIL_MAX;
        count = fd_stretch_join(all, count);
        if (detailed && many) {
            add_details(&t, key, l, all, count);
        }
        add_summary(s, &t, key, x, l, all, count, x->launch[l].blocks);
    }
    if (status == FD_OK) {
        const int64_t count = fd_stretch_join(all, blocks_of(x, ALL, all));
        add_summary(s, &t, key, x, ALL, all, count, x->blocks);
        status = fd_observe_add(s, t.rows, why, n);
    }
    free(all);
    free(t.rows);
    return status;
}

/* ---- A step ------------------------------------------------------------------------------------ */

/* One step on set 0, right behind one on another set, both queued while the card is held up. */
static fd_status observe_step(fd_point *x, fd_stamp *there, step *out, char *why, size_t n)
{
    fd_status status = x->gpu->write(there, out->stamps, BLOCKS_MAX * sizeof *there, why, n); /* zeros */
    status = status == FD_OK ? fd_gpu_hold(NULL) : status;
    status = status == FD_OK ? fd_point_call(x, x->sets - 1, NULL) : status;
    if (status == FD_OK) {
        fd_gpu_observe(there, BLOCKS_MAX);
        status = x->gpu->run(x->rung, &x->problem, &x->context, why, n); /* and waits */
        fd_gpu_observe(NULL, 0);
    }
    out->launches = fd_gpu_observed(out->launch);
    if (status == FD_OK && out->launches < 0) {
        snprintf(why, n, "more than %d blocks or %d launches", BLOCKS_MAX, FD_OBSERVED_MAX);
        status = FD_UNSUPPORTED;
    }
    if (status != FD_OK) {
        return status;
    }
    const fd_observed_launch *last = &out->launch[out->launches - 1];
    out->blocks = last->first + last->blocks;
    status = x->gpu->read(out->stamps, there, (size_t)out->blocks * sizeof *there, why, n);
    out->begin = INT64_MAX;
    out->end = 0;
    for (int64_t i = 0; i < out->blocks && status == FD_OK; i++) {
        const int64_t start = (int64_t)out->stamps[i].start, end = (int64_t)out->stamps[i].end;
        if (start == 0 || end < start || out->stamps[i].sm >= (uint32_t)x->gpu->machine.num_units) {
            snprintf(why, n, "block %" PRId64 " left no stamp, or none that makes sense", i);
            status = FD_INVALID;
        }
        out->begin = start < out->begin ? start : out->begin;
        out->end = end > out->end ? end : out->end;
    }
    return status;
}

/* The step of median duration out of several. */
static fd_status observe_steps(fd_point *x, step steps[STEPS], int *middle, char *why, size_t n)
{
    void *there = NULL;
    fd_status status = x->gpu->alloc(&there, BLOCKS_MAX * sizeof(fd_stamp), why, n);
    for (int i = 0; i < STEPS && status == FD_OK; i++) {
        memset(steps[i].stamps, 0, BLOCKS_MAX * sizeof(fd_stamp));
        status = observe_step(x, (fd_stamp *)there, &steps[i], why, n);
    }
    x->gpu->release(there);
    for (int i = 0; i < STEPS && status == FD_OK; i++) {
        int shorter = 0;
        for (int j = 0; j < STEPS; j++) {
            const int64_t a = steps[i].end - steps[i].begin, b = steps[j].end - steps[j].begin;
            shorter += b < a || (b == a && j < i);
        }
        *middle = shorter == STEPS / 2 ? i : *middle;
    }
    return status;
}

static fd_status median_step(fd_observation *s, fd_point *x, const char *key, int64_t request, void *data, char *why,
                             size_t n)
{
    step *steps = (step *)data; /* [STEPS] */
    char begin[ROW / 2];
    int middle = 0;
    const fd_status status = observe_steps(x, steps, &middle, why, n);
    if (status != FD_OK) {
        return status;
    }
    snprintf(begin, sizeof begin, "%s%" PRId32 ",", key, x->num_splits);
    printf("%02" PRId32 " %s, %" PRId64 " keys, %" PRId32 " splits\n", x->rung->number, x->rung->name,
           x->problem.kv_capacity, x->num_splits);
    return report(s, begin, request == 0, &steps[middle], why, n);
}

fd_status fd_observe_blocks(fd_observation *s, char *why, size_t n)
{
    step steps[STEPS];
    memset(steps, 0, sizeof steps);
    fd_stamp *stamps = (fd_stamp *)malloc((size_t)STEPS * BLOCKS_MAX * sizeof *stamps);
    snprintf(why, n, "no memory for stamps");
    fd_status status = stamps != NULL ? FD_OK : FD_NO_MEMORY;
    for (int i = 0; i < STEPS && status == FD_OK; i++) {
        steps[i].stamps = stamps + (size_t)i * BLOCKS_MAX;
    }
    status = status == FD_OK ? fd_observe_rungs(s, median_step, steps, why, n) : status;
    free(stamps);
    return status;
}

#else

fd_status fd_observe_blocks(fd_observation *s, char *why, size_t n)
{
    (void)s;
    snprintf(why, n, "this program's kernels note nothing: make gpu OBSERVE=1 builds build/observe/flashdecode");
    return FD_NO_DEVICE;
}

#endif
#endif
