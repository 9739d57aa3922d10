/* measure.h: what measuring a GPU needs beyond running a rung: times, a read of the same bytes, an empty kernel, and
 * CUDA's own functions on many floats. In programs built by nvcc only (make gpu). Everything enqueued goes to the
 * stream it is given; the rest waits until it is done. */
#ifndef FD_GPU_MEASURE_H
#define FD_GPU_MEASURE_H

#include "fd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Times ---- */

/* Enqueues call number `call`, and nothing that a CUDA graph cannot hold. */
typedef fd_status fd_gpu_work(void *data, int call, void *stream);

/* Times a CUDA graph of so many calls: one replay to warm up, then as many as take `seconds`, at least 5 and at most
 * `capacity`, queued behind a kernel that holds them up until all are there, so that the host is never waited for.
 * ns [*replays]: nanoseconds a call, of each replay. */
fd_status fd_gpu_time(fd_gpu_work *work, void *data, int calls, double seconds, double *ns, int capacity, int *replays,
                      char *why, size_t n);

/* The same of one kernel alone: number `part` of those that each call launches; -1: whole calls. *parts: how many a call
 * launches. Of a call of one kernel, part 0 is the whole. */
fd_status fd_gpu_time_part(fd_gpu_work *work, void *data, int calls, int part, int *parts, double seconds, double *ns,
                           int capacity, int *replays, char *why, size_t n);

/* Times one call of `run`, then one of `other`, each behind a write of `flush` bytes, which leaves nothing of
 * theirs in the L2 cache, and so on, all in one stream. What it takes to begin a launch is in both. run_ns,
 * other_ns [pairs]. */
fd_status fd_gpu_time_pairs(fd_gpu_work *run, void *run_data, fd_gpu_work *other, void *other_data, size_t flush,
                            int pairs, double *run_ns, double *other_ns, char *why, size_t n);

/* Reads k and v once with 16-byte loads, `bytes` each, a multiple of 16; spread over the GPU in one of several ways,
 * of which another is the fastest at every size. */
#define FD_GPU_READ_WAYS 6
fd_status fd_gpu_read(const void *k, const void *v, size_t bytes, int way, void *stream);

/* The same in blocks that have a multiprocessor each, for they ask for all of its shared memory: how many of them does a
 * read take? loads: 16-byte loads that a thread has under way, 1, 2, 4 or 8. The first call must not be recorded. */
#define FD_GPU_READ_THREADS 1024 /* a block */
fd_status fd_gpu_read_alone(const void *k, const void *v, size_t bytes, int loads, int blocks, void *stream);

/* A kernel of one thread that does nothing. */
fd_status fd_gpu_nothing(void *stream);

/* A kernel that keeps the stream busy for 2 ms, longer than it takes to queue what is to follow without a gap. */
fd_status fd_gpu_hold(void *stream);

/* Elements of x in device memory, fp32, fp16 or bf16, uniform in [-1, 1). */
fd_status fd_gpu_fill(const fd_tensor *x, int64_t elements, uint64_t seed, char *why, size_t n);

/* ---- Memory ---- */

/* All bits of so many bytes, and the first byte that has not all of them; *at is -1 if there is none. bytes: a multiple of 4. */
fd_status fd_gpu_set_ones(void *data, size_t bytes, char *why, size_t n);
fd_status fd_gpu_find_not_ones(const void *data, size_t bytes, int64_t *at, char *why, size_t n);

/* ---- Functions ---- */

enum fd_gpu_function {
    FD_GPU_EXPF = 0, /* of CUDA's library, which is what rungs call */
    FD_GPU_LOGF,
    FD_GPU_EXP2F,
    FD_GPU_EX2_APPROX_FTZ, /* the instructions; .ftz: subnormal arguments and results are 0 */
    FD_GPU_EX2_APPROX,
    FD_GPU_LG2_APPROX_FTZ,
    FD_GPU_LG2_APPROX,
    FD_GPU_FUNCTIONS
};

/* values [count], in host memory: of the floats whose bits are first, first + 1, ... */
fd_status fd_gpu_evaluate(int function, uint32_t first, size_t count, float *values, char *why, size_t n);

/* "nvcc 13.0.88" */
const char *fd_gpu_toolkit(void);

#ifdef __cplusplus
}
#endif

#endif /* FD_GPU_MEASURE_H */
