/* observe.cuh: FD_KERNEL and FD_LAUNCH that note when and where each block ran (observe.h). Included by kernel.cuh in
 * place of its own where FD_OBSERVE is defined. The kernel of a rung becomes the body of one that has two stamps around
 * it: one clock read and one store a block before, one clock read and one atomic maximum a warp behind. No barrier is
 * added, and an early return of the body still leaves its stamp. Not for timing: inline PTX anywhere in a kernel can make
 * nvcc unroll its loops otherwise, as it does with rung 20's. */
#ifndef FD_GPU_OBSERVE_CUH
#define FD_GPU_OBSERVE_CUH

#include "observe.h"

template <typename args_t> struct fd_with_stamps {
    args_t args;
    fd_stamp *stamps; /* of this launch; NULL: not observed */
};

#define FD_KERNEL(name, args_t, threads)                                                                               \
    FD_DEVICE_INLINE void name##_body(const args_t &args);                                                             \
    static __global__ void __launch_bounds__(threads) name(const __grid_constant__ fd_with_stamps<args_t> with)        \
    {                                                                                                                  \
        fd_stamp_begin(with.stamps);                                                                                   \
        name##_body(with.args);                                                                                        \
        fd_stamp_end(with.stamps);                                                                                     \
    }                                                                                                                  \
    FD_DEVICE_INLINE void name##_body(const args_t &args)

#define FD_LAUNCH(name, launch, args)                                                                                  \
    fd_launch_kernel(name, #name, launch, fd_stamps_for((const void *)name, #name, launch, args))

FD_DEVICE_INLINE fd_stamp *fd_stamp_of_block(fd_stamp *stamps)
{
    return stamps + ((uint64_t)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
}

FD_DEVICE_INLINE void fd_stamp_begin(fd_stamp *stamps)
{
    if (stamps != NULL && threadIdx.x == 0) {
        fd_stamp *mine = fd_stamp_of_block(stamps);
        mine->start = fd_clock();
        mine->sm = fd_smid();
    }
}

FD_DEVICE_INLINE void fd_stamp_end(fd_stamp *stamps)
{
    if (stamps != NULL && threadIdx.x % FD_WARP == 0) {
        atomicMax(&fd_stamp_of_block(stamps)->end, (unsigned long long)fd_clock());
    }
}

template <typename args_t>
static inline fd_with_stamps<args_t> fd_stamps_for(const void *function, const char *name, const fd_launch &launch,
                                                   const args_t &args)
{
    const dim3 grid = fd_dim3(launch.grid), block = fd_dim3(launch.block);
    fd_observed_launch seen = {};
    cudaFuncAttributes of;
    seen.kernel = name;
    seen.blocks = (int64_t)grid.x * grid.y * grid.z;
    seen.threads = (int32_t)(block.x * block.y * block.z);
    if (launch.smem > FD_SMEM_DEFAULT) { /* or none would fit */
        (void)cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)launch.smem);
    }
    if (cudaFuncGetAttributes(&of, function) == cudaSuccess) {
        seen.registers = of.numRegs;
        seen.smem = (int32_t)(of.sharedSizeBytes + launch.smem);
    }
    int fit = 0;
    (void)cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, function, seen.threads, launch.smem);
    seen.blocks_per_sm = fit;
    return fd_with_stamps<args_t>{args, fd_gpu_observing(&seen)};
}

#endif /* FD_GPU_OBSERVE_CUH */
