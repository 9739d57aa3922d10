/* bench_run.c: the timing; see bench.h. */
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "bench.h"
#include "execute.h"
#include "read_floor.h"

#define REPEATS_MIN 5

/* A point while it is timed. */
typedef struct timing {
    fd_problem problem;
    fd_plan *plan;
    void *workspace;
    double *kernel, *floor; /* [FD_BENCH_REPEATS_MAX] ns */
    int32_t wanted, taken;  /* runs */
} timing;

double fd_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void fd_sort(double *x, int32_t n)
{
    qsort(x, (size_t)n, sizeof *x, ascending);
}

double fd_quantile(const double *sorted, int32_t n, double q)
{
    const double at = q * (n - 1);
    const int32_t low = (int32_t)at, high = low + 1 < n ? low + 1 : low;
    return sorted[low] + (at - low) * (sorted[high] - sorted[low]);
}

bool fd_bench_threaded(const fd_problem *problem, const fd_rung *rung)
{
    const fd_machine one = fd_host_machine(1), two = fd_host_machine(2);
    fd_plan *plans[2];
    char why[256];
    if (fd_supports(rung, problem, why, sizeof why) != FD_OK) {
        return false;
    }
    const fd_status status[] = {fd_plan_on(&one, rung, problem, &plans[0], why, sizeof why),
                                fd_plan_on(&two, rung, problem, &plans[1], why, sizeof why)};
    const bool planned = status[0] == FD_OK && status[1] == FD_OK && plans[0] != NULL && plans[1] != NULL;
    const bool differ =
        planned && (plans[0]->size != plans[1]->size || memcmp(plans[0], plans[1], plans[0]->size) != 0);
    free(plans[0]);
    free(plans[1]);
    return differ;
}

/* Plan, workspace and room for the times. */
static void prepare(const fd_bench_data *data, fd_bench_point *x, timing *t)
{
    const fd_machine machine = fd_host_machine(x->threads);
    *t = (timing){.problem = data->problem};
    t->problem.num_splits_request = x->num_splits_request;
    x->failed = false;
    x->status = fd_supports(x->rung, &t->problem, x->why, sizeof x->why);
    if (x->status == FD_OK) {
        x->status = fd_plan_on(&machine, x->rung, &t->problem, &t->plan, x->why, sizeof x->why);
    }
    if (x->status != FD_OK) {
        return;
    }
    x->num_splits = t->plan != NULL ? t->plan->num_splits : 0;
    x->workspace_bytes = fd_workspace_bytes(x->rung, &t->problem, t->plan);
    t->workspace = fd_bench_allocate(x->workspace_bytes);
    t->kernel = malloc(FD_BENCH_REPEATS_MAX * sizeof *t->kernel);
    t->floor = malloc(FD_BENCH_REPEATS_MAX * sizeof *t->floor);
    if (t->workspace == NULL || t->kernel == NULL || t->floor == NULL) {
        x->status = FD_NO_MEMORY;
        snprintf(x->why, sizeof x->why, "no memory for %zu bytes of workspace", x->workspace_bytes);
    }
}

static void release(timing *t)
{
    free(t->plan);
    free(t->workspace);
    free(t->kernel);
    free(t->floor);
}

/* One run, then one read with as many threads; times of both into place `at`. */
static void once(const fd_bench_data *data, fd_bench_point *x, timing *t, int32_t at)
{
    const fd_context context = {
        .size = sizeof context, .plan = t->plan, .plan_device = t->plan, .workspace = t->workspace};
    volatile uint64_t sink;
#ifdef _OPENMP
    omp_set_num_threads(x->threads);
#endif
    const double t0 = fd_now_ns();
    x->status = x->rung->run(&t->problem, &context);
    const double t1 = fd_now_ns();
    sink = fd_read_sum(data->problem.k.data, data->kv_bytes, x->threads);
    sink = fd_read_sum(data->problem.v.data, data->kv_bytes, x->threads);
    (void)sink;
    t->kernel[at] = t1 - t0;
    t->floor[at] = fd_now_ns() - t1;
    if (x->status != FD_OK) {
        x->failed = true;
        snprintf(x->why, sizeof x->why, "run: %s", fd_status_name(x->status));
    }
}

static void summarise(fd_bench_point *x, timing *t)
{
    fd_sort(t->kernel, t->taken);
    fd_sort(t->floor, t->taken);
    x->repeats = t->taken;
    x->ns_median = fd_quantile(t->kernel, t->taken, 0.5);
    x->ns_p25 = fd_quantile(t->kernel, t->taken, 0.25);
    x->ns_p75 = fd_quantile(t->kernel, t->taken, 0.75);
    x->floor_ns = fd_quantile(t->floor, t->taken, 0.5);
}

static int32_t clamp(double runs)
{
    return runs > FD_BENCH_REPEATS_MAX ? FD_BENCH_REPEATS_MAX : runs < REPEATS_MIN ? REPEATS_MIN : (int32_t)runs;
}

void fd_bench_run(const fd_bench_data *data, fd_bench_point *points, int count, int32_t repeats, double seconds)
{
    timing *timings = calloc((size_t)count + 1, sizeof *timings);
    int32_t rounds = 0;
    for (int i = 0; i < count; i++) {
        if (timings == NULL) {
            points[i].status = FD_NO_MEMORY;
            snprintf(points[i].why, sizeof points[i].why, "no memory for %d points", count);
            continue;
        }
        prepare(data, &points[i], &timings[i]);
        if (points[i].status == FD_OK) { /* warm-up; it also tells how many runs fit */
            once(data, &points[i], &timings[i], 0);
        }
        if (points[i].status == FD_OK) {
            timings[i].wanted = repeats > 0 ? (repeats < FD_BENCH_REPEATS_MAX ? repeats : FD_BENCH_REPEATS_MAX)
                                            : clamp(1e9 * seconds / (timings[i].kernel[0] + timings[i].floor[0] + 1.0));
            rounds = timings[i].wanted > rounds ? timings[i].wanted : rounds;
        }
    }
    /* A point with few runs spreads them over all rounds. Whoever comes first differs from round to round. */
    for (int32_t round = 0; round < rounds; round++) {
        for (int k = 0; k < count; k++) {
            const int i = (k + round) % count;
            const int64_t due = (int64_t)timings[i].wanted * (round + 1) / rounds;
            if (points[i].status == FD_OK && timings[i].taken < due) {
                once(data, &points[i], &timings[i], timings[i].taken++);
            }
        }
    }
    for (int i = 0; i < count && timings != NULL; i++) {
        if (points[i].status == FD_OK) {
            summarise(&points[i], &timings[i]);
        }
        release(&timings[i]);
    }
    free(timings);
}
