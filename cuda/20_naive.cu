/* 20  naive                                                              [GPU | fp32 fp16 bf16]
 *
 * Idea      Softmax attention as written: all logits, then all weights, then the weighted mean. Three kernels.
 * Changed   From 02: the loops over rows and keys, and over rows and dims, become the grid; the logits of all rows wait
 *           in global memory between kernels.
 * Why       The simplest right kernels. What they pay for shows in every later rung: logits and weights travel to
 *           memory and back, and the third kernel has only batch * heads_q blocks.
 * Cost      bytes: as 02, K and V once per query head, plus 5*kv_len*4 a row: logits written and read twice,
 *           weights written and read;  flops: 2*kv_len*(head_dim + head_dim_v) a row;
 *           extra: kv_len + 2 floats a row
 * Launch    logits:  grid (keys / 128, heads_q, batch), block 128: one key a thread
 *           weights: grid (1, heads_q, batch), block 128, 512 bytes of shared memory: keys t, t + 128, ... a thread
 *           values:  grid (1, heads_q, batch), block 128: dims t, t + 128 a thread, all keys in order
 * Numerics  Maximum first; one division at the end. Bound: proofs/README.md, additions over kv_len keys.
 * Limits    q_len 1; head_dim up to 256; dense caches; up to 65535 heads and sequences.
 * Read      tutorials/20-naive.md
 */
#include "plan.h"
#include "rung.h"

#define THREADS 128

typedef struct naive_args {
    fd_problem p;
    int64_t keys; /* room in a row of s: the longest sequence planned for */
    float *s;     /* [batch, heads_q, keys] logits, then weights */
    float *m, *l; /* [batch, heads_q] */
} naive_args;

FD_DEVICE_INLINE int64_t row_of(const fd_problem *p, int32_t b, int32_t h)
{
    return (int64_t)b * p->heads_q + h;
}

/* s_j = sm_scale q.k_j, a key a thread. Neighbouring threads read rows that are head_dim elements apart. */
FD_KERNEL(fd_k_20_logits, naive_args, THREADS)
{
    const fd_problem *p = &args.p;
    const int32_t b = (int32_t)blockIdx.z, h = (int32_t)blockIdx.y;
    const int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (j >= fd_kv_len(p, b)) {
        return;
    }
    const int64_t q = fd_row_at(&p->q, b, 0, h), k = fd_kv_at(p, &p->k, b, j, h / fd_group(p));
    float dot = 0.0f;
    for (int32_t i = 0; i < p->head_dim; i++) {
        dot += fd_load(&p->q, q + i * p->q.stride[3]) * fd_load(&p->k, k + i * p->k.stride[3]);
    }
    args.s[row_of(p, b, h) * args.keys + j] = p->sm_scale * dot;
}

/* The 128 values of a block, combined pairwise in shared memory; everybody gets the result. */
FD_DEVICE_INLINE float block_combine(float *values, float mine, int is_sum)
{
    values[threadIdx.x] = mine;
    __syncthreads();
    for (uint32_t half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            const float a = values[threadIdx.x], b = values[threadIdx.x + half];
            values[threadIdx.x] = is_sum ? a + b : fmaxf(a, b);
        }
        __syncthreads();
    }
    const float result = values[0];
    __syncthreads(); /* before values are written again */
    return result;
}

/* m, l, and the weights exp(s_j - m) in place of the logits. */
FD_KERNEL(fd_k_20_weights, naive_args, THREADS)
{
    __shared__ float values[THREADS];
    const fd_problem *p = &args.p;
    const int32_t b = (int32_t)blockIdx.z, h = (int32_t)blockIdx.y;
    const int64_t kv_len = fd_kv_len(p, b), row = row_of(p, b, h);
    float *s = args.s + row * args.keys;

    float m = -INFINITY;
    for (int64_t j = threadIdx.x; j < kv_len; j += THREADS) {
        m = fmaxf(m, s[j]);
    }
    m = block_combine(values, m, 0);

    float l = 0.0f;
    for (int64_t j = threadIdx.x; j < kv_len; j += THREADS) {
        s[j] = expf(s[j] - m);
        l += s[j];
    }
    l = block_combine(values, l, 1);
    if (threadIdx.x == 0) {
        args.m[row] = m;
        args.l[row] = l;
    }
}

/* o_i = sum_j weight_j v_ji / l. The threads of a warp read neighbouring dims of one key. */
FD_KERNEL(fd_k_20_values, naive_args, THREADS)
{
    const fd_problem *p = &args.p;
    const int32_t b = (int32_t)blockIdx.z, h = (int32_t)blockIdx.y;
    const int64_t kv_len = fd_kv_len(p, b), row = row_of(p, b, h);
    const float *s = args.s + row * args.keys;
    for (int32_t i = (int32_t)threadIdx.x; i < p->head_dim_v; i += THREADS) {
        float o = 0.0f;
        for (int64_t j = 0; j < kv_len; j++) {
            o += s[j] * fd_load(&p->v, fd_kv_at(p, &p->v, b, j, h / fd_group(p)) + i * p->v.stride[3]);
        }
        fd_store_o(p, b, h, i, kv_len > 0 ? o / args.l[row] : 0.0f);
    }
    if (threadIdx.x == 0) {
        fd_store_lse(p, b, h, kv_len > 0 ? args.m[row] + logf(args.l[row]) : -INFINITY);
    }
}

static size_t workspace(const fd_problem *p, const fd_plan *plan)
{
    (void)plan;
    return (size_t)p->batch * (size_t)p->heads_q * ((size_t)fd_plan_keys(p) + 2) * sizeof(float);
}

static fd_status run(const fd_problem *p, const fd_context *c)
{
    const int64_t rows = (int64_t)p->batch * p->heads_q, keys = fd_plan_keys(p);
    if (rows == 0) {
        return FD_OK;
    }
    naive_args args = {.p = *p, .keys = keys};
    args.s = (float *)c->workspace;
    args.m = args.s + rows * keys;
    args.l = args.m + rows;
    const fd_dim block = {THREADS, 1, 1};
    const fd_dim rows_only = {1, (uint32_t)p->heads_q, (uint32_t)p->batch};
    const fd_dim with_keys = {(uint32_t)((keys + THREADS - 1) / THREADS), rows_only.y, rows_only.z};
    const fd_launch per_key = {.grid = with_keys, .block = block, .stream = c->stream};
    const fd_launch per_row = {.grid = rows_only, .block = block, .stream = c->stream};
    fd_status status = FD_LAUNCH(fd_k_20_logits, per_key, args);
    status = status == FD_OK ? FD_LAUNCH(fd_k_20_weights, per_row, args) : status;
    return status == FD_OK ? FD_LAUNCH(fd_k_20_values, per_row, args) : status;
}

static void arith(const fd_problem *p, const fd_plan *plan, int64_t kv_len, fd_arith *a)
{
    (void)p, (void)plan;
    a->num_levels = 1;
    a->level[0] = (fd_level){kv_len, FD_MERGE_ADD, FD_SEQUENTIAL, 0, 0};
    fd_claim_math(a);
}

FD_RUNG(fd_rung_20_naive) = {
    .size = sizeof(fd_rung),
    .abi = FD_ABI,
    .number = 20,
    .parent = 2,
    .name = "naive CUDA",
    .idea = "logits, weights, values: three kernels, the logits in global memory",
    .caps = &fd_cuda_caps,
    .supports = fd_cuda_supports,
    .workspace = workspace,
    .run = run,
    .arith = arith,
};
