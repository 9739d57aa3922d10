/* trial_time.c: how long a plug-in takes, beside the reading of the same k and v by one thread: a yardstick, below
 * which a plug-in with threads can come. Run and reading alternate in the plug-in's process; blocks of them
 * alternate with rung 05, which tells a slow plug-in from a slow moment. On a GPU (worker_device.c) CUDA events
 * time it, and the reading is that of the whole GPU; in between other memory is written, so that neither finds k
 * and v in the L2 cache. A time is no verdict: only a baseline makes one of it. */
#include "trial.h"

#ifdef __linux__
#include <math.h>
#include <stdlib.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "bench.h"
#include "commands.h"
#include "execute.h"
#include "ladder.h"
#include "worker.h"

#define BLOCKS 4
#define REPEATS_LEAST 5
#define SECONDS_A_BLOCK 0.4
#define SECONDS_ON_GPU 0.1 /* the same there, where nobody else runs */

static const int32_t lengths[] = {4096, 32768}; /* 8 and 64 MB in fp32: in a cache, and beyond most */

static fd_case shape_of(int32_t dtype, int32_t kv_len)
{
    fd_case c = {.family = "gaussian",
                 .dtype_q = dtype,
                 .dtype_kv = dtype,
                 .dtype_o = dtype,
                 .batch = 1,
                 .heads_q = 8,
                 .heads_kv = 2,
                 .head_dim = 128,
                 .head_dim_v = 128,
                 .kv_lens = {kv_len},
                 .kv_len = kv_len,
                 .q_len = 1,
                 .seed = 1};
    char letters[4];
    snprintf(c.name, sizeof c.name, "time/%s/h8:2/d128/n%d", fd_dtype_letters(&c, letters), kv_len);
    return c;
}

/* Runs it once and then `repeats` times; appends the times. */
static fd_status time_block(fd_instance *x, const fd_plan *plan, int32_t repeats, float *o, float *lse, double *run,
                            double *over, double *floor, int32_t *count, char *why, size_t n)
{
    fd_worker_time(repeats);
    fd_status status = fd_execute(fd_worker_rung(), plan, x, true, FD_POISON_NAN, o, lse, why, n);
    fd_worker_time(0);
    for (int32_t r = 0; r < repeats && status == FD_OK; r++) {
        run[*count] = fd_worker_run_ns()[r];
        floor[*count] = fd_worker_floor_ns()[r];
        over[*count] = run[*count] / floor[*count];
        if (!(run[*count] > 0.0 && floor[*count] > 0.0 && isfinite(over[*count]))) { /* they lie in its own memory */
            snprintf(why, n, "a run of %g ns, a reading of %g ns: written over", run[*count], floor[*count]);
            status = FD_INVALID;
        }
        (*count)++;
    }
    return status;
}

static void summarise(double *run, double *over, double *floor, int32_t count, fd_trial_time *t)
{
    fd_sort(run, count);
    fd_sort(over, count);
    fd_sort(floor, count);
    t->repeats = count;
    t->ns_p25 = fd_quantile(run, count, 0.25);
    t->ns_median = fd_quantile(run, count, 0.5);
    t->ns_p75 = fd_quantile(run, count, 0.75);
    t->floor_ns = fd_quantile(floor, count, 0.5);
    t->over_p25 = fd_quantile(over, count, 0.25);
    t->over_median = fd_quantile(over, count, 0.5);
    t->over_p75 = fd_quantile(over, count, 0.75);
}

static double rung_over(const fd_bench_data *data, int32_t repeats)
{
#ifdef _OPENMP
    const int threads = omp_get_max_threads(); /* the plug-in's runs have as many as before */
#endif
    fd_bench_point point = {.rung = fd_ladder_find(5), .threads = 1};
    fd_bench_run(data, &point, 1, repeats, 0.0);
#ifdef _OPENMP
    omp_set_num_threads(threads);
#endif
    return point.status == FD_OK ? point.ns_median / point.floor_ns : 0.0;
}

/* All blocks of one shape. FD_UNSUPPORTED: it does not take that. */
static fd_status time_shape(const fd_case *c, bool on_host, fd_trial_time *t, char *why, size_t n)
{
    double run[(BLOCKS + 1) * FD_WORKER_TIMES], over[(BLOCKS + 1) * FD_WORKER_TIMES],
        floor[(BLOCKS + 1) * FD_WORKER_TIMES];
    const fd_bench_shape shape = {c->dtype_q, c->dtype_kv, c->dtype_o,  c->batch,
                                  c->heads_q, c->heads_kv, c->head_dim, c->kv_len};
    fd_instance x;
    fd_bench_data data = {.kv_bytes = 0};
    fd_plan *plan = NULL;
    int32_t count = 0;
    fd_status status = fd_instance_create(&x, c, why, n);
    if (status != FD_OK) {
        return status;
    }
    float *o = calloc((size_t)(c->heads_q * c->head_dim_v), sizeof *o), *lse = calloc((size_t)c->heads_q, sizeof *lse);
    status = on_host ? fd_bench_create(&data, &shape, why, n) : FD_OK;
    status = status == FD_OK && (o == NULL || lse == NULL) ? FD_NO_MEMORY : status;
    status = status == FD_OK ? fd_supports_here(fd_worker_rung(), &x.problem, why, n) : status;
    status = status == FD_OK ? fd_plan_for(fd_worker_rung(), &x.problem, &plan, why, n) : status;
    if (status == FD_OK) {
        status = time_block(&x, plan, 1, o, lse, run, over, floor, &count, why, n);
    }
    if (status == FD_OK) {
        const double fit = 1e9 * (on_host ? SECONDS_A_BLOCK : SECONDS_ON_GPU) / (run[0] + floor[0]);
        const int32_t repeats = fit < REPEATS_LEAST     ? REPEATS_LEAST
                                : fit > FD_WORKER_TIMES ? FD_WORKER_TIMES
                                                        : (int32_t)fit;
        t->bytes = 2 * (int64_t)c->kv_len * c->heads_kv * c->head_dim * (int64_t)fd_dtype_bytes(c->dtype_kv);
        count = 0; /* the first was to learn how many */
        for (int block = 0; block < BLOCKS && status == FD_OK; block++) {
            status = time_block(&x, plan, repeats, o, lse, run, over, floor, &count, why, n);
            t->rung_over += on_host ? rung_over(&data, repeats) / BLOCKS : 0.0;
        }
    }
    if (status == FD_OK) {
        summarise(run, over, floor, count, t);
    }
    free(plan);
    free(o);
    free(lse);
    if (on_host) {
        fd_bench_free(&data);
    }
    fd_instance_free(&x);
    return status;
}

fd_status fd_trial_times(fd_trial *trial, char *why, size_t n)
{
    static const int32_t of_cpu[] = {FD_F32, FD_BF16, FD_F16}, of_gpu[] = {FD_BF16, FD_F16, FD_F32};
    enum { DTYPES = sizeof of_cpu / sizeof *of_cpu };
    const bool on_host = strcmp(trial->place, "cpu") == 0;
    const int32_t *dtypes = on_host ? of_cpu : of_gpu;
    if (strcmp(trial->place, "emu") == 0) {
        snprintf(why, n, "%.120s: --time: the emulator tells no time; time it on a GPU", trial->options.target);
        return FD_INVALID;
    }
#ifndef FD_GPU
    if (!on_host) {
        snprintf(why, n, "%.120s: --time of a plug-in for a GPU needs the program that `make gpu` builds",
                 trial->options.target);
        return FD_INVALID;
    }
#endif
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        fd_trial_line line = {.seconds = -1.0};
        fd_status status = FD_UNSUPPORTED;
        char reason[300] = "";
        for (size_t d = 0; d < DTYPES && status == FD_UNSUPPORTED; d++) {
            const fd_case c = shape_of(dtypes[d], lengths[l]);
            fd_progress("time", (int64_t)l, sizeof lengths / sizeof *lengths);
            if (!fd_worker_begin(reason, sizeof reason)) {
                status = FD_INVALID;
                break;
            }
            snprintf(line.name, sizeof line.name, "%s", c.name);
            status = time_shape(&c, on_host, &line.time, reason, sizeof reason);
        }
        snprintf(line.group, sizeof line.group, "time");
        line.verdict = status == FD_OK ? FD_PASS : status == FD_UNSUPPORTED ? FD_SKIP : FD_FAIL;
        line.tier = status == FD_OK || status == FD_UNSUPPORTED ? FD_TIER_NONE : FD_TIER_EXACT;
        snprintf(line.reason, sizeof line.reason, "%s",
                 fd_worker_incident()->happened ? fd_worker_incident()->text : reason);
        if (status == FD_NO_MEMORY && !fd_worker_incident()->happened) { /* ours, not the plug-in's */
            snprintf(why, n, "%s", reason);
            return status;
        }
        if (fd_trial_add(trial, &line, NULL) != FD_OK) {
            snprintf(why, n, "no memory for the verdicts");
            return FD_NO_MEMORY;
        }
    }
    fd_progress("", 1, 1);
    return FD_OK;
}
#else
fd_status fd_trial_times(fd_trial *trial, char *why, size_t n)
{
    snprintf(why, n, "%s: plug-ins are timed on Linux only", trial->options.target);
    return FD_UNSUPPORTED;
}
#endif
