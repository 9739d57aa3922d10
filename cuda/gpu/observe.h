/* observe.h: when and on which multiprocessor each block of a kernel ran, in programs of make gpu OBSERVE=1. There every
 * kernel takes the address of its stamps beside its arguments (observe.cuh); the program that is timed has none of it. */
#ifndef FD_GPU_OBSERVE_H
#define FD_GPU_OBSERVE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of one block. Nanoseconds of the card's own clock, one for all multiprocessors. */
typedef struct fd_stamp {
    unsigned long long start, end; /* its first thread begins; the last of its warps ends */
    uint32_t sm, reserved;
} fd_stamp;

typedef struct fd_observed_launch {
    const char *kernel;
    int64_t first, blocks; /* its stamps; linear numbers of blocks, x fastest */
    int32_t threads, smem; /* a block: threads; bytes of shared memory, static and dynamic */
    int32_t registers;     /* a thread */
    int32_t blocks_per_sm; /* that fit at once, by CUDA's own count */
} fd_observed_launch;

#define FD_OBSERVED_MAX 8 /* launches of a call */

/* From now on launches leave stamps, zeroed device memory for `capacity` blocks. NULL: no more. */
void fd_gpu_observe(fd_stamp *stamps, int64_t capacity);

/* What was launched since. Returns how many; -1: there was no room for the stamps of a launch, which left none. */
int fd_gpu_observed(fd_observed_launch launches[FD_OBSERVED_MAX]);

/* observe.cuh asks, before each launch: where its stamps go; NULL: nowhere. `launch` without `first`. */
fd_stamp *fd_gpu_observing(const fd_observed_launch *launch);

#ifdef __cplusplus
}
#endif

#endif /* FD_GPU_OBSERVE_H */
