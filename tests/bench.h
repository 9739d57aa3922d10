/* bench.h: how long rungs take on this machine, beside the time to read the same K and V once with as many threads.
 *
 * Rungs take turns, and each run is followed by its read: all of them see the same clock, neighbours and caches, however
 * these drift. Medians with quartiles are kept. K and V are as warm as the read before left them: "hot" if they fit the
 * level-3 cache together, else "cold". */
#ifndef FD_BENCH_H
#define FD_BENCH_H

#include <stdbool.h>

#include "fd.h"

#define FD_BENCH_ALIGNMENT 256    /* bytes, of every buffer */
#define FD_BENCH_REPEATS_MAX 1001 /* runs of one point */

typedef struct fd_bench_shape {
    int32_t dtype_q, dtype_kv, dtype_o;
    int32_t batch, heads_q, heads_kv, head_dim;
    int64_t kv_len;
} fd_bench_shape;

/* One problem in memory, filled with small random numbers; k and v are stored [batch, heads_kv, kv_len, head_dim]. */
typedef struct fd_bench_data {
    fd_problem problem;
    size_t kv_bytes; /* of k, and of v */
    int64_t bytes;   /* that a perfect kernel moves: k and v once a KV head, q, o and lse */
} fd_bench_data;

/* What to time, and how long it took. The caller sets the first three. */
typedef struct fd_bench_point {
    const fd_rung *rung;
    int32_t threads;            /* that the plan is made for, and that read K and V */
    int32_t num_splits_request; /* 0: plan() chooses */

    fd_status status; /* not FD_OK: nothing was timed, and why says the reason */
    bool failed;      /* it took the problem, but run() failed */
    char why[256];
    int32_t num_splits, repeats; /* num_splits 0: no plan */
    size_t workspace_bytes;
    double ns_median, ns_p25, ns_p75, floor_ns;
} fd_bench_point;

/* Bytes of K and V of a shape, or -1 if they exceed INT64_MAX. */
int64_t fd_bench_kv_bytes(const fd_bench_shape *shape);

/* FD_OK; FD_INVALID (a shape that is none), FD_NO_MEMORY (needs and finds so much); why receives one line. */
fd_status fd_bench_check(const fd_bench_shape *shape, char *why, size_t n); /* allocates nothing */
fd_status fd_bench_create(fd_bench_data *data, const fd_bench_shape *shape, char *why, size_t n);
void fd_bench_free(fd_bench_data *data); /* legal for a zeroed struct, and after a failed fd_bench_create */

void *fd_bench_allocate(size_t bytes); /* aligned; NULL: no memory */

/* ---- bench_run.c ---- */

/* Does the rung run on several threads? That is: does its plan depend on how many there are. */
bool fd_bench_threaded(const fd_problem *problem, const fd_rung *rung);

/* Times count points in turns. repeats 0: as many of each as take `seconds`, kernel and read together, but at least 5. */
void fd_bench_run(const fd_bench_data *data, fd_bench_point *points, int count, int32_t repeats, double seconds);

double fd_now_ns(void); /* of a clock that never goes back */

/* The q-quantile of n >= 1 numbers in ascending order, interpolated between neighbours. */
double fd_quantile(const double *sorted, int32_t n, double q);

void fd_sort(double *x, int32_t n); /* ascending */

/* `flashdecode bench` (cmd_bench.c) */
int fd_cmd_bench(int argc, char **argv);

#endif /* FD_BENCH_H */
