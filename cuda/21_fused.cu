/* 21  fused                                                              [GPU | fp32 fp16 bf16]
 *
 * Idea      One kernel, a block for each query head of each sequence: tiles of keys pass through the block, the softmax
 *           runs along. This is how FlashAttention-2 without splits maps a decode step.
 * Changed   From 20: three kernels become one; a tile's weights stay in shared memory, m and l in registers; the sums
 *           are rescaled when a tile raises the maximum.
 * Why       The logits never travel to memory, and there is one launch. But batch * heads_q blocks are all there are:
 *           at batch 1 most multiprocessors stand idle, and a longer cache only makes each block slower.
 * Cost      bytes: K and V once per query head;  flops: 2*kv_len*(head_dim + head_dim_v) a row;  extra: none
 * Launch    grid (1, heads_q, batch), block 128, 1.5 KiB of shared memory
 *           thread t:  logit of key  tile + t   |   o[t], o[t + 128]  over all keys of the tile, in order
 * Numerics  Running maximum, as 03, rescaled once a tile; every thread keeps the same m and l. One division at the end.
 *           Bound: proofs/README.md, one running level over kv_len keys.
 * Limits    q_len 1; head_dim up to 256; dense caches; up to 65535 heads and sequences.
 * Read      tutorials/21-fused.md;  FlashAttention-2 (Dao 2023)
 */
#include "rung.h"

#define THREADS 128 /* and keys of a tile */
#define WARPS (THREADS / FD_WARP)
#define DIMS (FD_CUDA_HEAD_DIM_MAX / THREADS) /* of o, a thread */

typedef struct fused_args {
    fd_problem p;
} fused_args;

/* The largest of the block's values. The caller has a barrier before the next call. */
FD_DEVICE_INLINE float block_max(float *warp_max, float x)
{
    for (int32_t step = FD_WARP / 2; step > 0; step /= 2) {
        x = fmaxf(x, __shfl_xor_sync(FD_FULL_MASK, x, step));
    }
    if (threadIdx.x % FD_WARP == 0) {
        warp_max[threadIdx.x / FD_WARP] = x;
    }
    __syncthreads();
    for (int32_t w = 0; w < WARPS; w++) {
        x = fmaxf(x, warp_max[w]);
    }
    return x;
}

FD_KERNEL(fd_k_21_fused, fused_args, THREADS)
{
    __shared__ float q[FD_CUDA_HEAD_DIM_MAX], weight[THREADS], warp_max[WARPS];
    const fd_problem *p = &args.p;
    const int32_t b = (int32_t)blockIdx.z, h = (int32_t)blockIdx.y, h_kv = h / fd_group(p);
    const int32_t t = (int32_t)threadIdx.x;
    const int64_t kv_len = fd_kv_len(p, b);

    for (int32_t i = t; i < p->head_dim; i += THREADS) {
        q[i] = fd_load(&p->q, fd_row_at(&p->q, b, 0, h) + i * p->q.stride[3]);
    }
    __syncthreads();

    float m = -INFINITY, l = 0.0f, o[DIMS] = {0.0f};
    for (int64_t tile = 0; tile < kv_len; tile += THREADS) {
        /* Here: m = max s_j, l = sum exp(s_j - m), o = sum exp(s_j - m) v_j over the keys below tile. */
        const int32_t keys = kv_len - tile < THREADS ? (int32_t)(kv_len - tile) : THREADS;
        float s = -INFINITY;
        if (t < keys) {
            const int64_t k = fd_kv_at(p, &p->k, b, tile + t, h_kv);
            float dot = 0.0f;
            for (int32_t i = 0; i < p->head_dim; i++) {
                dot += q[i] * fd_load(&p->k, k + i * p->k.stride[3]);
            }
            s = p->sm_scale * dot;
        }
        const float m_new = fmaxf(m, block_max(warp_max, s)), rescale = expf(m - m_new);
        weight[t] = expf(s - m_new);
        __syncthreads();

        m = m_new;
        l *= rescale;
        FD_UNROLL
        for (int32_t x = 0; x < DIMS; x++) {
            o[x] *= rescale;
        }
        for (int32_t j = 0; j < keys; j++) {
            const int64_t v = fd_kv_at(p, &p->v, b, tile + j, h_kv);
            l += weight[j];
            FD_UNROLL
            for (int32_t x = 0; x < DIMS; x++) {
                const int32_t i = t + x * THREADS;
                if (i < p->head_dim_v) {
                    o[x] += weight[j] * fd_load(&p->v, v + i * p->v.stride[3]);
                }
            }
        }
        __syncthreads(); /* before the next tile's weights */
    }

    FD_UNROLL
    for (int32_t x = 0; x < DIMS; x++) {
        const int32_t i = t + x * THREADS;
        if (i < p->head_dim_v) {
            fd_store_o(p, b, h, i, kv_len > 0 ? o[x] / l : 0.0f);
        }
    }
    if (t == 0) {
        fd_store_lse(p, b, h, kv_len > 0 ? m + logf(l) : -INFINITY);
    }
}

static fd_status run(const fd_problem *p, const fd_context *c)
{
    if (p->batch == 0) {
        return FD_OK;
    }
    const fused_args args = {*p};
    const fd_launch launch = {
        .grid = {1, (uint32_t)p->heads_q, (uint32_t)p->batch}, .block = {THREADS, 1, 1}, .stream = c->stream};
    return FD_LAUNCH(fd_k_21_fused, launch, args);
}

static void arith(const fd_problem *p, const fd_plan *plan, int64_t kv_len, fd_arith *a)
{
    (void)p, (void)plan;
    a->num_levels = 1;
    a->level[0] = (fd_level){kv_len, FD_MERGE_RUNNING, FD_SEQUENTIAL, 1, 0};
    fd_claim_math(a);
}

FD_RUNG(fd_rung_21_fused) = {
    .size = sizeof(fd_rung),
    .abi = FD_ABI,
    .number = 21,
    .parent = 20,
    .name = "fused",
    .idea = "one kernel, a block a query head, online softmax over tiles; no split",
    .caps = &fd_cuda_caps,
    .supports = fd_cuda_supports,
    .run = run,
    .arith = arith,
};
