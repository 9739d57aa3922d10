/* kernel.cuh: the GPU's side of fd_cuda.h, and the one file with PTX in it. What every wrapper does is said there; here
 * is how. CUDA C++20, sm_80 and later. Bulk copies need sm_90: below, a kernel that reaches one stops with a trap, and
 * every other kernel of the same file still runs. */
#ifndef FD_GPU_KERNEL_CUH
#define FD_GPU_KERNEL_CUH

#include <cuda_runtime.h>

#include "launch.h"

#define FD_DEVICE_INLINE static __device__ __forceinline__
#define FD_UNROLL _Pragma("unroll")
#define FD_ROLLED _Pragma("unroll 1")

#ifndef FD_OBSERVE

/* Internal linkage: two rungs may have a kernel of one name. The struct lies in constant memory and is never copied. */
#define FD_KERNEL(name, args_t, threads)                                                                               \
    static __global__ void __launch_bounds__(threads) name(const __grid_constant__ args_t args)

#define FD_LAUNCH(name, launch, args) fd_launch_kernel(name, #name, launch, args)

#endif /* FD_OBSERVE: see observe.cuh */

#define FD_SMEM_DYN(type, name)                                                                                        \
    extern __shared__ __align__(128) unsigned char fd_smem_dyn[];                                                      \
    type *name = (type *)fd_smem_dyn

/* The first declaration gives the name, which C code refers to, its linkage. */
#define FD_RUNG(symbol)                                                                                                \
    extern "C" {                                                                                                       \
    extern const fd_rung symbol;                                                                                       \
    }                                                                                                                  \
    const fd_rung symbol

#define FD_OTHER_RUNG(symbol) extern "C" const fd_rung symbol

/* ---- Launch ------------------------------------------------------------------------------------ */

#define FD_SMEM_DEFAULT (48u * 1024u) /* bytes of dynamic shared memory that need no attribute */
#define FD_CLUSTER_PORTABLE 8u        /* blocks of a cluster that every sm_90 chip takes */

/* Of a plug-in's own CUDA runtime, which no other program can ask: the last error, taken; NULL: none. Which of several
 * files' it is does not matter. */
extern "C" __attribute__((weak, visibility("default"))) const char *fd_cuda_left_error(void)
{
    const cudaError_t error = cudaGetLastError();
    return error != cudaSuccess ? cudaGetErrorString(error) : NULL;
}

static inline fd_status fd_launch_failed(const char *kernel, cudaError_t error)
{
    (void)cudaGetLastError(); /* or the next launch would report this one */
    fd_gpu_failed(kernel, cudaGetErrorString(error));
    return FD_DEVICE_ERROR;
}

static inline dim3 fd_dim3(fd_dim d)
{
    return dim3(d.x > 0 ? d.x : 1, d.y > 0 ? d.y : 1, d.z > 0 ? d.z : 1);
}

/* A template so that the compiler compares the struct handed over with the kernel's. */
template <typename args_t>
static inline fd_status fd_launch_kernel(void (*kernel)(args_t), const char *name, const fd_launch &launch,
                                         const args_t &args)
{
    cudaLaunchAttribute attributes[2];
    cudaLaunchConfig_t config = {};
    config.gridDim = fd_dim3(launch.grid);
    config.blockDim = fd_dim3(launch.block);
    config.dynamicSmemBytes = launch.smem;
    config.stream = (cudaStream_t)launch.stream;
    config.attrs = attributes;
    if (launch.cluster > 0) {
        attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
        attributes[config.numAttrs].val.clusterDim.x = launch.cluster;
        attributes[config.numAttrs].val.clusterDim.y = 1;
        attributes[config.numAttrs].val.clusterDim.z = 1;
        config.numAttrs++;
    }
    if (launch.overlapping) {
        attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[config.numAttrs].val.programmaticStreamSerializationAllowed = 1;
        config.numAttrs++;
    }

    const void *function = (const void *)kernel;
    cudaError_t error = cudaSuccess;
    fd_gpu_launching(name);
    if (launch.smem > FD_SMEM_DEFAULT) {
        error = cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)launch.smem);
    }
    if (error == cudaSuccess && launch.cluster > FD_CLUSTER_PORTABLE) {
        error = cudaFuncSetAttribute(function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    }
    if (error == cudaSuccess) {
        void *parameters[] = {(void *)&args};
        error = cudaLaunchKernelExC(&config, function, parameters);
    }
    return error == cudaSuccess ? FD_OK : fd_launch_failed(name, error);
}

/* ---- Memory ------------------------------------------------------------------------------------ */

FD_DEVICE_INLINE fd_vec16 fd_vec16_from(uint4 x)
{
    fd_vec16 v;
    v.w[0] = x.x, v.w[1] = x.y, v.w[2] = x.z, v.w[3] = x.w;
    return v;
}

FD_DEVICE_INLINE fd_vec16 fd_ld16(const void *p)
{
    return fd_vec16_from(*(const uint4 *)p);
}

FD_DEVICE_INLINE fd_vec16 fd_ld16_stream(const void *p)
{
    return fd_vec16_from(__ldcs((const uint4 *)p)); /* ld.global.cs: first to be evicted, from L1 and L2 */
}

FD_DEVICE_INLINE void fd_st16(void *p, fd_vec16 v)
{
    *(uint4 *)p = make_uint4(v.w[0], v.w[1], v.w[2], v.w[3]);
}

FD_DEVICE_INLINE uint32_t fd_atomic_add_acqrel(uint32_t *p, uint32_t x)
{
    uint32_t old;
    asm volatile("atom.acq_rel.gpu.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(x) : "memory");
    return old;
}

FD_DEVICE_INLINE uint32_t fd_load_acquire(const uint32_t *p)
{
    uint32_t x;
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
    return x;
}

FD_DEVICE_INLINE void fd_store_release(uint32_t *p, uint32_t x)
{
    asm volatile("st.release.gpu.u32 [%0], %1;" : : "l"(p), "r"(x) : "memory");
}

FD_DEVICE_INLINE void fd_spin(void)
{
    __nanosleep(20); /* below a trip to the L2, which the next look at memory takes anyway */
}

/* ---- Numbers ----------------------------------------------------------------------------------- */

FD_DEVICE_INLINE float fd_f16(uint16_t x)
{
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
}

FD_DEVICE_INLINE float fd_bf16(uint16_t x)
{
    return __uint_as_float((uint32_t)x << 16);
}

FD_DEVICE_INLINE uint16_t fd_to_f16(float x)
{
    uint16_t y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
}

FD_DEVICE_INLINE uint16_t fd_to_bf16(float x)
{
    uint16_t y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
}

FD_DEVICE_INLINE float fd_exp2(float x)
{
    return exp2f(x);
}

FD_DEVICE_INLINE float fd_exp2_approx(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); /* one MUFU; without .ftz a test and two products more */
    return y;
}

/* ---- Asynchronous copies ----------------------------------------------------------------------- */

FD_DEVICE_INLINE uint32_t fd_shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

FD_DEVICE_INLINE void fd_cp_async16(void *shared, const void *global, uint32_t bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(fd_shared_address(shared)), "l"(__cvta_generic_to_global(global)), "r"(bytes)
                 : "memory");
}

FD_DEVICE_INLINE void fd_cp_commit(void)
{
    asm volatile("cp.async.commit_group;" : : : "memory");
}

#define fd_cp_wait(n) asm volatile("cp.async.wait_group %0;" : : "n"(n) : "memory")

FD_DEVICE_INLINE void fd_mbar_init(uint64_t *bar, uint32_t arrivals)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" : : "r"(fd_shared_address(bar)), "r"(arrivals) : "memory");
}

FD_DEVICE_INLINE void fd_mbar_arrive(uint64_t *bar)
{
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }"
                 :
                 : "r"(fd_shared_address(bar))
                 : "memory");
}

FD_DEVICE_INLINE void fd_mbar_wait(uint64_t *bar, uint32_t parity)
{
    const uint32_t at = fd_shared_address(bar);
    uint32_t done;
    do {
#if __CUDA_ARCH__ >= 900
        /* Suspends the thread for a while, where test_wait would burn issue slots. */
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(at), "r"(parity)
                     : "memory");
#else
        asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(at), "r"(parity)
                     : "memory");
#endif
    } while (!done);
}

FD_DEVICE_INLINE void fd_mbar_expect(uint64_t *bar, uint32_t bytes)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :
                 : "r"(fd_shared_address(bar)), "r"(bytes)
                 : "memory");
#else
    (void)bar, (void)bytes;
    __trap();
#endif
}

FD_DEVICE_INLINE void fd_bulk_load(void *shared, const void *global, uint32_t bytes, uint64_t *bar)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :
                 : "r"(fd_shared_address(shared)), "l"(__cvta_generic_to_global(global)), "r"(bytes),
                   "r"(fd_shared_address(bar))
                 : "memory");
#else
    (void)shared, (void)global, (void)bytes, (void)bar;
    __trap();
#endif
}

/* Makes earlier accesses of shared memory, a barrier's mbarrier.init too, visible to the copy engine. */
FD_DEVICE_INLINE void fd_fence_async(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
#endif
}

/* ---- Matrices ---------------------------------------------------------------------------------- */

FD_DEVICE_INLINE void fd_ldmatrix_x4(uint32_t r[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(fd_shared_address(row))
                 : "memory");
}

FD_DEVICE_INLINE void fd_ldmatrix_x4_trans(uint32_t r[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(fd_shared_address(row))
                 : "memory");
}

FD_DEVICE_INLINE void fd_mma_f16(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

FD_DEVICE_INLINE void fd_mma_bf16(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* ---- Clusters and overlapping launches --------------------------------------------------------- */

/* Below sm_90 a block is a cluster of its own, and no launch overlaps another. */

FD_DEVICE_INLINE uint32_t fd_cluster_rank(void)
{
    uint32_t rank = 0;
#if __CUDA_ARCH__ >= 900
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
    return rank;
}

FD_DEVICE_INLINE uint32_t fd_cluster_size(void)
{
    uint32_t size = 1;
#if __CUDA_ARCH__ >= 900
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
#endif
    return size;
}

FD_DEVICE_INLINE void fd_cluster_sync(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" : : : "memory");
#else
    __syncthreads();
#endif
}

FD_DEVICE_INLINE void *fd_cluster_map(void *shared, uint32_t rank)
{
#if __CUDA_ARCH__ >= 900
    uint64_t mapped;
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(mapped) : "l"(shared), "r"(rank));
    return (void *)mapped;
#else
    (void)rank;
    return shared;
#endif
}

FD_DEVICE_INLINE void fd_overlap_wait(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" : : : "memory");
#endif
}

FD_DEVICE_INLINE void fd_overlap_trigger(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
#endif
}

/* ---- Diagnostics ------------------------------------------------------------------------------- */

FD_DEVICE_INLINE uint32_t fd_smid(void)
{
    uint32_t x;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(x));
    return x;
}

FD_DEVICE_INLINE uint64_t fd_clock(void)
{
    uint64_t x;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(x));
    return x;
}

#ifdef FD_OBSERVE
#include "observe.cuh"
#endif

#endif /* FD_GPU_KERNEL_CUH */
