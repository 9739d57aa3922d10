#include "async.h"

#define THREADS (FD_COPY_TILE / 4)

/* Bytes of the caller's 16 that are there: 0 ... 16. */
FD_DEVICE_INLINE uint32_t bytes_left(int32_t n, int32_t at)
{
    return n - at >= 4 ? 16u : n > at ? 4u * (uint32_t)(n - at) : 0u;
}

FD_KERNEL(fd_k_async_copy, fd_async_args, THREADS)
{
    FD_SMEM_DYN(float, buffers); /* [2][FD_COPY_TILE] */
    const float *in = (const float *)args.in;
    const int32_t mine = 4 * (int32_t)threadIdx.x, tiles = (args.n + FD_COPY_TILE - 1) / FD_COPY_TILE;
    if (args.fault == FD_COPY_MISALIGNED) {
        fd_cp_async16(buffers + mine + 1, in, 16); /* FAULT misaligned */
    }
    if (args.fault == FD_COPY_PAST_SOURCE) {
        fd_cp_async16(buffers + mine, in + args.n, 16); /* FAULT past_source */
    }
    if (args.fault == FD_COPY_TO_GLOBAL) {
        fd_cp_async16(args.out, in, 16); /* FAULT to_global */
    }
    fd_cp_async16(buffers + mine, in + mine, bytes_left(args.n, mine)); /* FAULT first_copy */
    if (args.fault != FD_COPY_NO_COMMIT) {
        fd_cp_commit();
    }
    for (int32_t t = 0; t < tiles; t++) {
        const int32_t next = (t + 1) * FD_COPY_TILE + mine;
        float *buffer = buffers + t % 2 * FD_COPY_TILE;
        float *other = args.fault == FD_COPY_REUSED ? buffer : buffers + (t + 1) % 2 * FD_COPY_TILE;
        float early = 0.0f;
        if (t + 1 < tiles) {
            fd_cp_async16(other + mine, in + next, bytes_left(args.n, next)); /* FAULT next_copy */
        }
        if (args.fault == FD_COPY_READ_EARLY) {
            early = buffer[mine]; /* FAULT read_early */
        }
        if (args.fault != FD_COPY_NO_COMMIT && (args.fault != FD_COPY_WAIT_TOO_FEW || t + 1 < tiles)) {
            fd_cp_commit(); /* of nothing, after the last tile: the count stays */
        }
        if (args.fault != FD_COPY_NO_WAIT) {
            fd_cp_wait(1);
        }
        __syncthreads();
        for (int32_t i = (int32_t)threadIdx.x; i < FD_COPY_TILE; i += THREADS) {
            const float x = args.fault == FD_COPY_READ_EARLY && i == mine ? early : buffer[i];
            args.out[t * FD_COPY_TILE + i] = 2.0f * x;
        }
        __syncthreads(); /* everybody has read the buffer that the next turn fills */
    }
}

fd_status FD_ASYNC(copy)(const fd_async_args *args)
{
    const fd_launch launch = {.grid = {.x = 1}, .block = {.x = THREADS}, .smem = 2 * FD_COPY_TILE * sizeof(float)};
    return FD_LAUNCH(fd_k_async_copy, launch, *args);
}
