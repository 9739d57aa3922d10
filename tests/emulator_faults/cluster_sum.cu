#include "async.h"

#define THREADS 64

FD_KERNEL(fd_k_cluster_sum, fd_async_args, THREADS)
{
    __shared__ float on_its_own[1];
    FD_SMEM_DYN(float, partial); /* [1]: the block's own term */
    const uint32_t rank = fd_cluster_rank(), size = fd_cluster_size();
    float sum = 0.0f;
    if (args.fault == FD_CLUSTER_NOT_STARTED) {
        for (uint32_t r = 0; r < size; r++) {
            const float *other = (const float *)fd_cluster_map(partial, r);
            sum += *other; /* FAULT not_started */
        }
    }
    if (args.fault == FD_CLUSTER_STATIC && threadIdx.x == 0) {
        on_its_own[0] = (float)rank;
    }
    if (threadIdx.x == 0) {
        partial[0] = ((const float *)args.in)[rank];
    }
    if (args.fault == FD_CLUSTER_ONE_WAITS && threadIdx.x == 40) {
        fd_cluster_sync(); /* FAULT one_waits */
    } else {
        fd_cluster_sync(); /* FAULT others_wait */
    }
    if (args.fault == FD_CLUSTER_STATIC_MAPPED) {
        sum += *(const float *)fd_cluster_map(on_its_own, 0); /* FAULT static_mapped */
    }
    for (uint32_t r = 0; r < size; r++) {
        const uint32_t from = args.fault == FD_CLUSTER_RANK ? r + 1 : r;
        const float *other = (const float *)fd_cluster_map(partial, from); /* FAULT rank */
        sum += *other;                                                     /* FAULT leaves */
    }
    if (args.fault == FD_CLUSTER_WARP_LEAVES && threadIdx.x >= FD_WARP) {
        return;
    }
    if (args.fault != FD_CLUSTER_LEAVES) {
        fd_cluster_sync(); /* nobody leaves while its memory is read */
    }
    if (threadIdx.x == 0) {
        args.out[blockIdx.x] = sum;
    }
}

fd_status FD_ASYNC(cluster)(const fd_async_args *args)
{
    const uint32_t size = (uint32_t)args->n;
    const fd_launch launch = {.grid = {.x = 2 * size}, .block = {.x = THREADS}, .smem = sizeof(float), .cluster = size};
    return FD_LAUNCH(fd_k_cluster_sum, launch, *args);
}
