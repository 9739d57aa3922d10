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

/* Reads k and v once with 16-byte loads, `bytes` each, a multiple of 16; spread over the GPU in one of several ways,
 * of which another is the fastest at every size. */
#define FD_GPU_READ_WAYS 6
fd_status fd_gpu_read(const void *k, const void *v, size_t bytes, int way, void *stream);

/* A kernel of one thread that does nothing. */
fd_status fd_gpu_nothing(void *stream);

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
