/* point_gpu.h: what is timed on a GPU: one shape's tensors in device memory, in enough sets that every call of a rung
 * finds its own set out of the cache, and calls that go round the sets. In programs of make gpu only. */
#ifndef FD_POINT_GPU_H
#define FD_POINT_GPU_H

#include "bench.h"
#include "device.h"
#include "machine.h"

typedef struct fd_timing { /* nanoseconds a call */
    double median, p25, p75;
    int replays;
} fd_timing;

typedef struct fd_point {
    const fd_device *gpu;
    fd_problem problem; /* of set 0 */
    int sets, calls;
    int64_t kv_bytes, q_bytes, o_bytes, bytes; /* of k or v, q, o of a set; that a perfect kernel moves */
    unsigned char *k, *v, *q, *o, *lse;
    int way; /* of reading; see fd_gpu_read() */

    /* The rung at hand, between fd_point_begin() and fd_point_end(). */
    const fd_rung *rung;
    fd_context context;
    fd_plan *plan;
    void *plan_device, *workspace;
    int32_t num_splits; /* 0: no plan */
    size_t workspace_bytes;
} fd_point;

/* Every function: FD_OK, or another status with one line in why, at most n bytes. */

/* bytes of K and V of the shape checked by fd_bench_kv_bytes() before. */
fd_status fd_point_make(const fd_device *gpu, const fd_bench_shape *shape, fd_point *point, char *why, size_t n);
void fd_point_free(fd_point *point);

/* Plans for the rung and takes its workspace. num_splits_request 0: the rung chooses. FD_UNSUPPORTED: the rung does not
 * take the problem. What was begun is ended, after a failure too. */
fd_status fd_point_begin(fd_point *point, const fd_rung *rung, int32_t num_splits_request, char *why, size_t n);
void fd_point_end(fd_point *point);

/* Calls, as fd_gpu_time() wants them; data is the point. */
fd_status fd_point_call(void *data, int call, void *stream); /* of the rung at hand */
fd_status fd_point_read(void *data, int call, void *stream); /* K and V read once, in point->way */

/* fd_gpu_time() and its quantiles. part: that kernel of each call alone; -1: whole calls. parts (may be NULL): kernels a
 * call launches. */
typedef fd_status fd_point_work(void *data, int call, void *stream);
fd_status fd_point_time(fd_point_work *work, void *data, int calls, int part, double seconds, fd_timing *timing,
                        int *parts, char *why, size_t n);

/* The fastest of the ways of reading, and an empty kernel. */
fd_status fd_point_floor(fd_point *point, double seconds, double *floor_ns, char *why, size_t n);
fd_status fd_point_launch(double seconds, double *launch_ns, char *why, size_t n);

/* NaN into the outputs; is every element of the first o a number now? Right or wrong is for verify to say. */
fd_status fd_point_poison(const fd_point *point, char *why, size_t n);
fd_status fd_point_written(const fd_point *point, char *why, size_t n);

/* The record of machine, card and toolkit. */
void fd_point_machine(const fd_device *gpu, fd_machine_record *machine, int argc, char **argv);

#endif /* FD_POINT_GPU_H */
