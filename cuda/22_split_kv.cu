/* 22  split-KV on the GPU                                                [GPU | fp32 fp16 bf16]
 *
 * Idea      FlashDecoding: cut the cache into splits, a block for each split of each query head; a second kernel
 *           combines the splits' states (o, m, l).
 * Changed   From 21: the block gets a range of keys, and leaves its state in the workspace; combine.h merges states.
 * Why       num_splits times as many blocks: enough to fill the machine at batch 1. Within a block nothing changes.
 * Cost      bytes: as 21, plus num_splits*(head_dim_v + 2)*4 written and read per query head;  flops: as 21, plus
 *           2*num_splits*head_dim_v;  extra: num_splits*(head_dim_v + 2) floats a row
 * Launch    split:   grid (num_splits, heads_q, batch), block 128, 1.5 KiB of shared memory; threads as in 21
 *           combine: grid (1, heads_q, batch), block 128: dims t, t + 128 a thread, all splits in order
 * Numerics  partial_o is divided by its own l once; combine weighs it with exp(m_s - m) l_s. Bound: proofs/README.md,
 *           a running level within a split, then num_splits normalised parts.
 * Limits    q_len 1; head_dim up to 256; dense caches; up to 65535 heads and sequences. A chunk of 1024 keys.
 * Read      tutorials/22-split-kv.md;  Flash-Decoding (Dao, Haziza, Massa, Sizov 2023)
 */
#include "combine.h"

#define THREADS 128 /* and keys of a tile */
#define WARPS (THREADS / FD_WARP)
#define DIMS (FD_CUDA_HEAD_DIM_MAX / THREADS) /* of o, a thread */
#define CHUNK 1024                            /* keys of a split; the guide's */

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

FD_KERNEL(fd_k_22_split, fd_split_args, THREADS)
{
    __shared__ float q[FD_CUDA_HEAD_DIM_MAX], weight[THREADS], warp_max[WARPS];
    const fd_problem *p = &args.p;
    const int32_t b = (int32_t)blockIdx.z, h = (int32_t)blockIdx.y, h_kv = h / fd_group(p);
    const int32_t split = (int32_t)blockIdx.x, t = (int32_t)threadIdx.x;
    int64_t split_begin, split_end;
    fd_split_range(&args.plan, fd_kv_len(p, b), split, &split_begin, &split_end);

    for (int32_t i = t; i < p->head_dim; i += THREADS) {
        q[i] = fd_load(&p->q, fd_row_at(&p->q, b, 0, h) + i * p->q.stride[3]);
    }
    __syncthreads();

    float m = -INFINITY, l = 0.0f, o[DIMS] = {0.0f};
    for (int64_t tile = split_begin; tile < split_end; tile += THREADS) {
        /* Here: m = max s_j, l = sum exp(s_j - m), o = sum exp(s_j - m) v_j over the keys split_begin .. tile - 1. */
        const int32_t keys = split_end - tile < THREADS ? (int32_t)(split_end - tile) : THREADS;
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

    const int64_t at = fd_partial_at(p, split, b, h);
    FD_UNROLL
    for (int32_t x = 0; x < DIMS; x++) {
        const int32_t i = t + x * THREADS;
        if (i < p->head_dim_v) {
            args.partial.o[at * p->head_dim_v + i] = split_begin < split_end ? o[x] / l : 0.0f;
        }
    }
    if (t == 0) {
        args.partial.m[at] = m;
        args.partial.l[at] = l;
    }
}

static fd_status plan(const fd_problem *p, const fd_machine *machine, fd_plan *plan)
{
    const fd_split_policy policy = {.kind = FD_SPLIT_CHUNK, .chunk = CHUNK};
    return fd_plan_splits(&policy, p, machine, plan, NULL, 0);
}

static fd_status run(const fd_problem *p, const fd_context *c)
{
    if (p->batch == 0) {
        return FD_OK;
    }
    const fd_split_args args = fd_split_args_of(p, c);
    const fd_launch launch = {.grid = {(uint32_t)c->plan->num_splits, (uint32_t)p->heads_q, (uint32_t)p->batch},
                              .block = {THREADS, 1, 1},
                              .stream = c->stream};
    const fd_status status = FD_LAUNCH(fd_k_22_split, launch, args);
    return status == FD_OK ? fd_launch_combine(p, c, &args) : status;
}

static void arith(const fd_problem *p, const fd_plan *plan, int64_t kv_len, fd_arith *a)
{
    (void)p;
    const int64_t keys = kv_len < plan->split_size ? kv_len : plan->split_size;
    a->num_levels = 2;
    a->level[0] = (fd_level){keys, FD_MERGE_RUNNING, FD_SEQUENTIAL, 1, 0};
    a->level[1] = (fd_level){fd_splits_with_keys(plan, kv_len), FD_MERGE_NORMALISED, FD_SEQUENTIAL, 1, 0};
    fd_claim_math(a);
}

FD_RUNG(fd_rung_22_split_kv) = {
    .size = sizeof(fd_rung),
    .abi = FD_ABI,
    .number = 22,
    .parent = 21,
    .name = "split-KV CUDA",
    .idea = "a block a split, states (o, m, l) in the workspace, a combine kernel",
    .caps = &fd_cuda_caps,
    .supports = fd_cuda_supports,
    .plan_bytes = fd_split_plan_bytes,
    .plan = plan,
    .workspace = fd_split_workspace,
    .run = run,
    .arith = arith,
};
