/* observe_splits.c: time against num_splits, and what of it is the combine. */
#include "observe.h"

const char fd_observe_splits_head[] =
    FD_OBSERVE_KEY "num_splits,cache,ns_median,ns_p25,ns_p75,repeats,kernels,split_ns_median,split_ns_p25,split_ns_p75,"
                   "combine_ns_median,combine_ns_p25,combine_ns_p75,bytes,workspace_bytes,floor_ns,launch_ns,commit,"
                   "machine_id";

#ifdef FD_GPU

#include <inttypes.h>
#include <stdio.h>

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
                        char *why, size_t n)
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
    snprintf(row, sizeof row, "%s%" PRId32 ",cold,%.1f,%.1f,%.1f,%d,%d,%s,%" PRId64 ",%zu,%.1f,%.1f,%s,%s", key,
             x->num_splits, t[0].median, t[0].p25, t[0].p75, t[0].replays, kernels, parts, x->bytes, x->workspace_bytes,
             s->floor_ns, s->launch_ns, s->machine.commit, s->machine.machine_id);
    return fd_observe_add(s, row, why, n);
}

static fd_status split(fd_observation *s, fd_point *x, const char *key, int64_t request, void *data, char *why,
                       size_t n)
{
    fd_timing t[3];
    int kernels = 0;
    (void)request, (void)data;
    const fd_status status = time_all(x, t, &kernels, why, n);
    return status == FD_OK ? report(s, x, key, t, kernels, why, n) : status;
}

fd_status fd_observe_splits(fd_observation *s, char *why, size_t n)
{
    return fd_observe_rungs(s, split, NULL, why, n);
}

#endif
