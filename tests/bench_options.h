/* bench_options.h: what `flashdecode bench` was asked for. */
#ifndef FD_BENCH_OPTIONS_H
#define FD_BENCH_OPTIONS_H

#include "bench.h"
#include "options.h"

typedef struct fd_bench_options {
    fd_bench_shape shape; /* kv_len apart */
    int64_t rungs[FD_LIST_MAX], kv_lens[FD_LIST_MAX], threads[FD_LIST_MAX];
    int num_rungs, num_kv_lens; /* no rungs: all */
    int num_threads;            /* none: 1, and all cores */
    int size;                   /* fd_size */
    int32_t repeats;            /* 0: by time */
    const char *csv;            /* NULL: none */
    bool gpu;                   /* the CUDA rungs on a GPU, bench_gpu.c */
} fd_bench_options;

/* Fills options. Returns -1 to go on, or the exit code after --help or a message on stderr. */
int fd_bench_parse(int argc, char **argv, fd_bench_options *options);

#endif /* FD_BENCH_OPTIONS_H */
