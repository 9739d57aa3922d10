#include "async.h"

#define THREADS 64

FD_KERNEL(fd_k_overlap_first, fd_async_args, THREADS)
{
    __shared__ float kept[THREADS]; /* the same static memory as the other kernel's, if the emulator confuses them */
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    fd_overlap_trigger();
    kept[threadIdx.x] = ((const float *)args.in)[i];
    __syncthreads();
    ((float *)args.in2)[i] = kept[threadIdx.x] + 1.0f;
}

FD_KERNEL(fd_k_overlap_second, fd_async_args, THREADS)
{
    __shared__ float kept[THREADS];
    FD_SMEM_DYN(fd_vec16, tile); /* [THREADS / 4] of in, under way while it waits */
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    const float *own = (const float *)args.in2 + i;
    const float early = args.fault == FD_OVERLAP_READ_EARLY ? *own : 0.0f;
    kept[threadIdx.x] = (float)i;
    if (threadIdx.x < THREADS / 4) {
        fd_cp_async16(&tile[threadIdx.x], (const float *)args.in + blockIdx.x * THREADS + 4 * threadIdx.x, 16);
        fd_cp_commit();
    }
    if (args.fault != FD_OVERLAP_NO_WAIT) {
        fd_overlap_wait();
    }
    fd_cp_wait(0);
    __syncthreads();
    args.out[i] = kept[threadIdx.x] != (float)i         ? -1.0f
                  : args.fault == FD_OVERLAP_READ_EARLY ? 2.0f * early
                                                        : 2.0f * *own + ((const float *)tile)[threadIdx.x];
}

fd_status FD_ASYNC(overlap)(const fd_async_args *args)
{
    const fd_launch first = {.grid = {.x = (uint32_t)args->n / THREADS}, .block = {.x = THREADS}};
    fd_launch second = first;
    second.smem = THREADS * sizeof(float);
    second.overlapping = 1;
    const fd_status status = FD_LAUNCH(fd_k_overlap_first, first, *args);
    return status == FD_OK ? FD_LAUNCH(fd_k_overlap_second, second, *args) : status;
}
