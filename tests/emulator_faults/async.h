/* async.h: small kernels that copy asynchronously, wait at transaction barriers, form clusters, overlap and multiply
 * matrices, right ones and ones with a planted fault. A line that a report must name ends in the comment "FAULT name".
 * tests/test_emulator_async.c runs them. */
#ifndef FD_FAULTS_ASYNC_H
#define FD_FAULTS_ASYNC_H

#include "fd_cuda.h"

/* Everything here is in device memory. */
typedef struct fd_async_args {
    const void *in, *in2;
    float *out;
    int32_t n, fault; /* fault 0: the right sibling */
} fd_async_args;

typedef fd_status fd_async_run(const fd_async_args *args);

/* The Makefile compiles each file twice, the second time with hooks (cuda/emu/observe.h). */
#if FD_EMU_HOOKED
#define FD_ASYNC(name) fd_async_hooked_##name
#else
#define FD_ASYNC(name) fd_async_plain_##name
#endif

/* out[i] = 2 in[i] for n floats, tile by tile, the next tile on its way while one is worked on; zeros behind the n-th up
 * to a whole tile. */
enum {
    FD_COPY_NO_WAIT = 1, /* two tiles at most, or FD_COPY_REUSED comes first */
    FD_COPY_READ_EARLY,  /* before the wait */
    FD_COPY_NO_COMMIT,
    FD_COPY_WAIT_TOO_FEW, /* for all but one group, at the end too */
    FD_COPY_REUSED,       /* a buffer filled again before its copy was waited for */
    FD_COPY_MISALIGNED,
    FD_COPY_PAST_SOURCE,
    FD_COPY_TO_GLOBAL
};
#define FD_COPY_TILE 256 /* floats */
extern fd_async_run fd_async_plain_copy, fd_async_hooked_copy;

/* The same by bulk copies into two buffers, with a full and an empty barrier each, by two blocks: out is [2][n]. n is a
 * multiple of the tile. */
enum {
    FD_PIPE_PARITY_STUCK = 1,
    FD_PIPE_PARITY_INVERTED,
    FD_PIPE_BYTES_OVER,
    FD_PIPE_BYTES_UNDER, /* by 16: no phase ends */
    FD_PIPE_BYTES_HALF,  /* two copies, one announced: the phase ends early */
    FD_PIPE_WAIT_UNINITIALISED,
    FD_PIPE_INITIALISED_TWICE,
    FD_PIPE_NO_FENCE,
    FD_PIPE_ARRIVES_TWICE,
    FD_PIPE_OVERWRITTEN,
    FD_PIPE_MISALIGNED,
    FD_PIPE_ODD_BYTES,
    FD_PIPE_PAST_SOURCE,
    FD_PIPE_LAST_UNWAITED, /* the last tile is neither waited for nor used */
    FD_PIPE_OVERRUN        /* fills without waiting for the empty barrier */
};
#define FD_PIPE_TILE 256 /* floats */
extern fd_async_run fd_async_plain_pipe, fd_async_hooked_pipe;

/* out[b] of block b: the sum of in[0 ... n) over the cluster of n blocks; grid: 2 clusters. */
enum {
    FD_CLUSTER_LEAVES = 1, /* while others read its shared memory */
    FD_CLUSTER_NOT_STARTED,
    FD_CLUSTER_STATIC,
    FD_CLUSTER_STATIC_MAPPED,
    FD_CLUSTER_RANK,
    FD_CLUSTER_WARP_LEAVES, /* no fault: the barrier waits for those that are still there */
    FD_CLUSTER_ONE_WAITS    /* a lane at another cluster barrier than its warp */
};
extern fd_async_run fd_async_plain_cluster, fd_async_hooked_cluster;

/* out[16][8] += in[16][32] in2: n = 0: in2 is [8][32], n = 1: [32][8], transposed while loaded, n = 2: as 0, fragments
 * loaded one element at a time by PTX's tables; n + 4: bf16 instead of fp16. */
enum { FD_MMA_MISALIGNED = 1, FD_MMA_DIVERGENT, FD_MMA_GLOBAL };
extern fd_async_run fd_async_plain_mma, fd_async_hooked_mma;

/* Two launches: a first one writes in2[i] = in[i] + 1 (in2 is written), an overlapping one out[i] = 2 in2[i] + in[i]. */
enum { FD_OVERLAP_READ_EARLY = 1, FD_OVERLAP_NO_WAIT };
extern fd_async_run fd_async_plain_overlap, fd_async_hooked_overlap;

#endif /* FD_FAULTS_ASYNC_H */
