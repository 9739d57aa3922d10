/* observe_splits.c: time against num_splits, and what of it is the combine. */
#include "observe.h"

const char fd_observe_splits_head[] =
    FD_OBSERVE_KEY "num_splits,cache,ns_median,ns_p25,ns_p75,repeats,kernels,split_ns_median,split_ns_p25,split_ns_p75,"
                   "combine_ns_median,combine_ns_p25,combine_ns_p75,bytes,workspace_bytes,floor_ns,launch_ns,commit,"
                   "machine_id";

#ifdef FD_GPU

#include <inttypes.h>
#include <stdio.h>

#include "ladder.h"
#include "point_gpu.h"

#define SECONDS 0.03

/* The combine alone reads the states that the whole calls before left in the workspace, which are in the L2 cache, as
 * behind a split kernel they would be. */
static fd_status time_all(fd_point *x, fd_timing t[3], int *kernels, char *why, size_t n)
{
    fd_status status = fd_point_poison(x, why, n);
    status = status == FD_OK ? fd_point_time(fd_point_call, x, x->calls, -1, SECONDS, &t[0], kernels, why, n) : status;
    for (int part = 0; part < 2 && status == FD_OK && *kernels == 2; part++) {
        status = fd_point_time(fd_point_call, x, x->calls, part, SECONDS, &t[1 + part], NULL, why, n);
    }
    return status == FD_OK ? fd_point_written(x, why, n) : status;
}

static fd_status report(fd_observation *s, const fd_point *x, const char *key, const fd_timing t[3], int kernels,
                        double floor_ns, char *why, size_t n)
{
    char row[768], parts[192] = ",,,,,";
    printf("%02" PRId32 " %-16.16s %8" PRId64 " keys %6" PRId32 " splits %10.2f us", x->rung->number, x->rung->name,
           x->problem.kv_capacity, x->num_splits, t[0].median * 1e-3);
    if (kernels == 2) {
        printf(", split %.2f us, combine %.2f us", t[1].median * 1e-3, t[2].median * 1e-3);
        snprintf(parts, sizeof parts, "%.1f,%.1f,%.1f,%.1f,%.1f,%.1f", t[1].median, t[1].p25, t[1].p75, t[2].median,
                 t[2].p25, t[2].p75);
    }
    printf("\n");
    fflush(stdout);
    snprintf(row, sizeof row, "%s%" PRId32 ",cold,%.1f,%.1f,%.1f,%d,%d,%s,%" PRId64 ",%zu,%.1f,%.1f,%s,%s", key,
             x->num_splits, t[0].median, t[0].p25, t[0].p75, t[0].replays, kernels, parts, x->bytes, x->workspace_bytes,
             floor_ns, s->launch_ns, s->machine.commit, s->machine.machine_id);
    return s->csv.file != NULL ? fd_resume_add(&s->csv, row, why, n) : FD_OK;
}

static fd_status one(fd_observation *s, fd_point *x, const fd_bench_shape *shape, const fd_rung *rung, int64_t request,
                     double floor_ns, char *why, size_t n)
{
    fd_timing t[3];
    int kernels = 0;
    char key[160];
    fd_observe_key(rung, shape, request, key, sizeof key);
    if (fd_observe_has(s, key)) {
        return FD_OK;
    }
    fd_status status = fd_point_begin(x, rung, (int32_t)request, why, n);
    status = status == FD_OK ? time_all(x, t, &kernels, why, n) : status;
    if (status == FD_OK) {
        s->done++;
        status = report(s, x, key, t, kernels, floor_ns, why, n);
    } else {
        s->skipped += status == FD_UNSUPPORTED;
        s->failed += status != FD_UNSUPPORTED;
        printf("%02" PRId32 " %s, %" PRId64 " keys, %" PRId64 " splits: %s: %s\n", rung->number, rung->name,
               shape->kv_len, request, status == FD_UNSUPPORTED ? "skipped" : "FAILED", why);
        status = FD_OK;
    }
    fd_point_end(x);
    return status;
}

fd_status fd_observe_splits(fd_observation *s, char *why, size_t n)
{
    const fd_observe_options *o = s->options;
    for (int i = 0; i < o->num_kv_lens; i++) {
        fd_bench_shape shape = o->shape;
        fd_point x;
        double floor_ns = 0.0;
        shape.kv_len = o->kv_lens[i];
        fd_status status = fd_point_make(s->gpu, &shape, &x, why, n);
        if (status != FD_OK) {
            return status;
        }
        status = fd_point_floor(&x, SECONDS, &floor_ns, why, n);
        for (int r = 0; r < fd_ladder_count && status == FD_OK; r++) {
            for (int k = 0; k < o->num_splits && status == FD_OK && fd_observe_wants(s, fd_ladder[r]); k++) {
                status = one(s, &x, &shape, fd_ladder[r], o->splits[k], floor_ns, why, n);
            }
        }
        fd_point_free(&x);
        if (status != FD_OK) {
            return status;
        }
    }
    return FD_OK;
}

#endif
