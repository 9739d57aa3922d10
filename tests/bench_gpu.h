/* bench_gpu.h: `flashdecode bench --gpu`: CUDA rungs timed on a GPU, beside the fastest read of the same K and V and an
 * empty kernel, all in one run. */
#ifndef FD_BENCH_GPU_H
#define FD_BENCH_GPU_H

#include "bench_options.h"

/* Returns the exit code; 77 with one line where there is no GPU, or no GPU code in this program. */
int fd_bench_gpu(const fd_bench_options *options, int argc, char **argv);

#endif /* FD_BENCH_GPU_H */
