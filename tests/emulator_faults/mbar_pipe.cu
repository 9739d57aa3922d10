#include "async.h"

#define THREADS 64
#define TILE_BYTES ((uint32_t)(FD_PIPE_TILE * sizeof(float)))

/* Tile t into buffer t % 2, whose full barrier it is counted by. */
FD_DEVICE_INLINE void fill(const fd_async_args *args, float *buffer, uint64_t *full, int32_t t)
{
    const float *from = (const float *)args->in + (args->fault == FD_PIPE_PAST_SOURCE ? t + 2 : t) * FD_PIPE_TILE;
    const uint32_t announced = args->fault == FD_PIPE_BYTES_OVER    ? TILE_BYTES + 16
                               : args->fault == FD_PIPE_BYTES_UNDER ? TILE_BYTES - 16
                               : args->fault == FD_PIPE_BYTES_HALF  ? TILE_BYTES / 2
                                                                    : TILE_BYTES;
    fd_mbar_expect(full, announced); /* FAULT expect */
    if (args->fault == FD_PIPE_ARRIVES_TWICE) {
        fd_mbar_arrive(full); /* FAULT arrives_twice */
    }
    if (args->fault == FD_PIPE_MISALIGNED) {
        fd_bulk_load(buffer + 1, from, TILE_BYTES, full); /* FAULT bulk_misaligned */
    }
    if (args->fault == FD_PIPE_ODD_BYTES) {
        fd_bulk_load(buffer, from, TILE_BYTES - 4, full); /* FAULT odd_bytes */
    }
    if (args->fault == FD_PIPE_BYTES_HALF) {
        fd_bulk_load(buffer, from, TILE_BYTES / 2, full);
        fd_bulk_load(buffer + FD_PIPE_TILE / 2, from + FD_PIPE_TILE / 2, TILE_BYTES / 2, full);
        return;
    }
    fd_bulk_load(buffer, from, TILE_BYTES, full); /* FAULT bulk */
}

FD_KERNEL(fd_k_mbar_pipe, fd_async_args, THREADS)
{
    FD_SMEM_DYN(float, buffers); /* [2][FD_PIPE_TILE], then the barriers: full[2], empty[2], never[1] */
    uint64_t *full = (uint64_t *)(buffers + 2 * FD_PIPE_TILE), *empty = full + 2;
    const int32_t tiles = args.n / FD_PIPE_TILE;
    const int leader = threadIdx.x == 0;
    float *out = args.out + (int32_t)blockIdx.x * args.n;
    if (leader) {
        for (int s = 0; s < 2; s++) {
            fd_mbar_init(&full[s], 1);
            fd_mbar_init(&empty[s], THREADS);
        }
        if (args.fault == FD_PIPE_INITIALISED_TWICE) {
            fd_mbar_init(&empty[1], THREADS); /* FAULT initialised_twice */
        }
        if (args.fault != FD_PIPE_NO_FENCE) {
            fd_fence_async();
        }
        if (args.fault == FD_PIPE_OVERWRITTEN) {
            full[0] = 0;
        }
    }
    __syncthreads();
    if (args.fault == FD_PIPE_WAIT_UNINITIALISED) {
        fd_mbar_wait(empty + 2, 0); /* FAULT wait_uninitialised */
    }
    if (leader) {
        for (int32_t t = 0; t < 2 && t < tiles; t++) {
            fill(&args, buffers + t * FD_PIPE_TILE, &full[t], t);
        }
    }
    for (int32_t t = 0; t < tiles; t++) {
        const uint32_t s = (uint32_t)t % 2, phase = (uint32_t)t / 2 % 2;
        const uint32_t parity = args.fault == FD_PIPE_PARITY_STUCK      ? 0
                                : args.fault == FD_PIPE_PARITY_INVERTED ? 1 - phase
                                                                        : phase;
        if (args.fault == FD_PIPE_LAST_UNWAITED && t == tiles - 1) {
            break;
        }
        float *buffer = buffers + s * FD_PIPE_TILE;
        fd_mbar_wait(&full[s], parity); /* FAULT wait */
        for (int32_t i = (int32_t)threadIdx.x; i < FD_PIPE_TILE; i += THREADS) {
            out[t * FD_PIPE_TILE + i] = 2.0f * buffer[i];
        }
        if (args.fault != FD_PIPE_OVERRUN) {
            fd_mbar_arrive(&empty[s]); /* FAULT arrive */
        }
        if (leader && t + 2 < tiles) {
            if (args.fault != FD_PIPE_OVERRUN) {
                fd_mbar_wait(&empty[s], phase); /* FAULT wait_empty */
            }
            fill(&args, buffer, &full[s], t + 2);
        }
    }
}

fd_status FD_ASYNC(pipe)(const fd_async_args *args)
{
    const fd_launch launch = {.grid = {.x = 2}, .block = {.x = THREADS}, .smem = 2 * TILE_BYTES + 5 * sizeof(uint64_t)};
    return FD_LAUNCH(fd_k_mbar_pipe, launch, *args);
}
