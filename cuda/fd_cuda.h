/* fd_cuda.h: everything a CUDA rung may use besides CUDA's own threadIdx, blockIdx, blockDim, gridDim, __shared__,
 * __syncthreads(), __syncwarp(mask), __shfl_{,xor_,up_,down_}sync(), __ballot_sync(), __any_sync(), __all_sync(),
 * __threadfence(), and the C library's expf, logf, fmaxf.
 *
 * A rung is one .cu file in the C subset of CUDA. nvcc compiles it for a GPU, as C++20; the host C compiler compiles the
 * same file for the emulator (emu/emu.h), which runs every thread as a fiber, so that real kernels are verified, counted
 * and stepped through in a debugger on a machine that has no GPU. gpu/kernel.cuh is the one file with PTX in it. */
#ifndef FD_CUDA_H
#define FD_CUDA_H

#include <math.h>

#include "fd.h"

#define FD_WARP 32
#define FD_FULL_MASK 0xffffffffu
#define FD_RESTRICT __restrict__

/* 16 bytes, the widest load of a thread. */
typedef struct fd_vec16 {
    uint32_t w[4];
} fd_vec16;

typedef struct fd_dim {
    uint32_t x, y, z; /* 0 counts as 1 */
} fd_dim;

/* How a kernel is launched. */
typedef struct fd_launch {
    fd_dim grid, block; /* blocks; threads */
    uint32_t smem;      /* bytes of dynamic shared memory */
    uint32_t cluster;   /* blocks of a cluster along x; 0: none */
    uint32_t
        overlapping; /* 1: may start before the previous kernel of the stream ends (programmatic dependent launch) */
    void *stream;
} fd_launch;

/* FD_KERNEL(name, args_t, threads) { ... args.x ... }: a kernel of one argument struct, for blocks of at most `threads`
 * threads. FD_LAUNCH(name, launch, args) launches it and returns an fd_status.
 *
 *     typedef struct { const float *x; float *y; int32_t n; } scale_args;
 *     FD_KERNEL(fd_k_scale, scale_args, 128) { ... }
 *     const fd_launch launch = {.grid = {.x = 4}, .block = {.x = 128}, .stream = context->stream};
 *     return FD_LAUNCH(fd_k_scale, launch, args); */
#ifdef __CUDACC__
#include "gpu/kernel.cuh"
#else
#include "emu/emu.h"
#endif

/* Every other wrapper is listed here, with what it does; gpu/kernel.cuh and emu/emu.h define the two sides.
 *
 *   FD_DEVICE_INLINE                a function of the device, always inlined
 *   FD_UNROLL                       before a loop with constant bounds
 *   FD_ROLLED                       before a loop that is to stay one: code that a cold cache must fetch costs time
 *   FD_SMEM_DYN(type, name)         declares `type *name`, the block's dynamic shared memory, 128-byte aligned
 *   FD_RUNG(symbol) = {...};        defines the rung's descriptor
 *   FD_OTHER_RUNG(symbol);          declares another rung's, to hand it what this one does not do better
 *
 *   fd_vec16 fd_ld16(const void *)          a 16-byte load, address a multiple of 16
 *   fd_vec16 fd_ld16_stream(const void *)   the same, of data that nobody will read again
 *   void fd_st16(void *, fd_vec16)
 *   float fd_f16(uint16_t), fd_bf16(uint16_t)       the number an element denotes, exactly
 *   uint16_t fd_to_f16(float), fd_to_bf16(float)    rounded to nearest even
 *   float fd_exp2(float), fd_exp2_approx(float)     2^x: libm's; the hardware's, where results below 2^-126 are 0
 *
 *   uint32_t fd_atomic_add_acqrel(uint32_t *, uint32_t)   returns the old value; orders what comes before and after
 *   uint32_t fd_load_acquire(const uint32_t *);  void fd_store_release(uint32_t *, uint32_t)
 *   void fd_spin(void)                               inside every loop that waits for another thread
 *
 *   void fd_cp_async16(void *shared, const void *global, uint32_t bytes)   asynchronous copy; bytes < 16: the rest is 0
 *   void fd_cp_commit(void);  fd_cp_wait(n)          closes a group; waits until at most n groups are pending, n constant
 *
 *   void fd_mbar_init(uint64_t *, uint32_t arrivals)          a transaction barrier in shared memory of the block, once;
 *                                                             then fd_fence_async(), then a block barrier
 *   void fd_mbar_expect(uint64_t *, uint32_t bytes)           arrives, and adds bytes to what the phase waits for
 *   void fd_mbar_arrive(uint64_t *);  void fd_mbar_wait(uint64_t *, uint32_t parity)
 *   void fd_bulk_load(void *shared, const void *global, uint32_t bytes, uint64_t *bar)   16-byte multiples
 *   void fd_fence_async(void)                        orders shared memory accesses before later bulk copies
 *
 *   void fd_ldmatrix_x4(uint32_t r[4], const void *row), fd_ldmatrix_x4_trans(uint32_t r[4], const void *row)
 *   void fd_mma_f16(float d[4], const uint32_t a[4], const uint32_t b[2]), fd_mma_bf16(...)    m16n8k16, d += a b
 *
 *   uint32_t fd_cluster_rank(void), fd_cluster_size(void);  void fd_cluster_sync(void)
 *   void *fd_cluster_map(void *shared, uint32_t rank)         the same address in another block's dynamic shared memory:
 *                                                             to read and write, between two fd_cluster_sync()
 *   void fd_overlap_wait(void);  void fd_overlap_trigger(void)   programmatic dependent launch, both ends
 *   uint32_t fd_smid(void);  uint64_t fd_clock(void)           diagnostics: multiprocessor, nanoseconds */

#endif /* FD_CUDA_H */
