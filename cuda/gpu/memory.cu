/* memory.cu: kernels that fill memory, look at it, and evaluate CUDA's own functions; see measure.h. */
#include <stdio.h>

#include "fd_cuda.h"
#include "gpu/good.cuh"
#include "measure.h"

#define THREADS 256

/* ---- Data -------------------------------------------------------------------------------------- */

typedef struct {
    fd_tensor x;
    int64_t elements;
    uint64_t seed;
} fill_args;

FD_KERNEL(fd_k_fill, fill_args, THREADS)
{
    const int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < args.elements; i += step) {
        uint64_t z = args.seed * 0x9e3779b97f4a7c15u + (uint64_t)i; /* splitmix64's finisher */
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        z ^= z >> 31;
        fd_store(&args.x, i, (float)(int32_t)(z >> 32) * 0x1p-31f);
    }
}

fd_status fd_gpu_fill(const fd_tensor *x, int64_t elements, uint64_t seed, char *why, size_t n)
{
    const fill_args args = {*x, elements, seed};
    const fd_launch launch = {.grid = {4096, 1, 1}, .block = {THREADS, 1, 1}};
    const fd_status status = FD_LAUNCH(fd_k_fill, launch, args);
    return status == FD_OK ? good(cudaDeviceSynchronize(), "filling memory", why, n) : status;
}

/* ---- Memory ------------------------------------------------------------------------------------ */

fd_status fd_gpu_set_ones(void *data, size_t bytes, char *why, size_t n)
{
    const fd_status status = good(cudaMemset(data, 0xff, bytes), "filling memory", why, n);
    return status == FD_OK ? good(cudaDeviceSynchronize(), "filling memory", why, n) : status;
}

typedef struct {
    const uint32_t *words;
    uint64_t count;
    unsigned long long *first; /* word; count: none */
} find_args;

FD_KERNEL(fd_k_find_not_ones, find_args, THREADS)
{
    const uint64_t step = (uint64_t)gridDim.x * THREADS;
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < args.count; i += step) {
        if (args.words[i] != 0xffffffffu) {
            atomicMin(args.first, (unsigned long long)i);
        }
    }
}

fd_status fd_gpu_find_not_ones(const void *data, size_t bytes, int64_t *at, char *why, size_t n)
{
    unsigned long long first = bytes / 4, *there = NULL;
    *at = -1;
    fd_status status = good(cudaMalloc((void **)&there, sizeof first), "memory for a result", why, n);
    if (status == FD_OK) {
        status = good(cudaMemcpy(there, &first, sizeof first, cudaMemcpyHostToDevice), "looking at memory", why, n);
    }
    if (status == FD_OK) {
        const find_args args = {(const uint32_t *)data, bytes / 4, there};
        const fd_launch launch = {.grid = {4096, 1, 1}, .block = {THREADS, 1, 1}};
        status = FD_LAUNCH(fd_k_find_not_ones, launch, args);
    }
    if (status == FD_OK) {
        status = good(cudaMemcpy(&first, there, sizeof first, cudaMemcpyDeviceToHost), "looking at memory", why, n);
    }
    cudaFree(there);
    if (status == FD_OK && first < bytes / 4) {
        *at = (int64_t)(4 * first);
    }
    return status;
}

/* ---- Functions --------------------------------------------------------------------------------- */

typedef struct {
    int32_t function;
    uint32_t first;
    uint64_t count;
    float *values;
} evaluate_args;

FD_KERNEL(fd_k_evaluate, evaluate_args, THREADS)
{
    const uint64_t step = (uint64_t)gridDim.x * THREADS;
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < args.count; i += step) {
        const float x = __uint_as_float(args.first + (uint32_t)i);
        float y;
        switch (args.function) {
        case FD_GPU_EXPF:
            y = expf(x);
            break;
        case FD_GPU_LOGF:
            y = logf(x);
            break;
        case FD_GPU_EXP2F:
            y = fd_exp2(x);
            break;
        case FD_GPU_EX2_APPROX_FTZ:
            y = fd_exp2_approx(x);
            break;
        case FD_GPU_EX2_APPROX:
            asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
            break;
        case FD_GPU_LG2_APPROX_FTZ:
            asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
            break;
        default:
            asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
            break;
        }
        args.values[i] = y;
    }
}

fd_status fd_gpu_evaluate(int function, uint32_t first, size_t count, float *values, char *why, size_t n)
{
    const size_t most = (size_t)1 << 26; /* 256 MiB at a time */
    float *there = NULL;
    fd_status status = good(cudaMalloc((void **)&there, most * sizeof *there), "memory for results", why, n);
    for (size_t at = 0; at < count && status == FD_OK; at += most) {
        const size_t part = count - at < most ? count - at : most;
        const evaluate_args args = {function, first + (uint32_t)at, part, there};
        const fd_launch launch = {.grid = {4096, 1, 1}, .block = {THREADS, 1, 1}};
        status = FD_LAUNCH(fd_k_evaluate, launch, args);
        if (status == FD_OK) {
            status = good(cudaMemcpy(values + at, there, part * sizeof *values, cudaMemcpyDeviceToHost),
                          "evaluating a function", why, n);
        }
    }
    cudaFree(there);
    return status;
}
