/* 03  online softmax                                                             [CPU | any]
 *
 * Idea      Keep a running maximum; when a key raises it, rescale what has been summed so far. One pass.
 * Changed   From 02: three loops become one; the logits are no longer stored.
 * Why       Workspace falls from kv_len floats to none, and each key is finished while it is in cache. This is the
 *           recurrence inside every FlashAttention kernel.
 * Cost      bytes: kv_len*(head_dim + head_dim_v)*sizeof(kv) per query head, nothing extra;  flops: as 02, plus
 *           head_dim_v + 1 multiplications for every key that raises the maximum (about ln kv_len of them on random data)
 * Numerics  A rescale by exp(m - m_new) costs every earlier key one exp and one product. The judge counts, for each key,
 *           the later keys that can raise the maximum. Where none does, alpha would be exp(0) = 1, and nothing is lost.
 * Limits    head_dim up to 1024; dense caches; no window_left.
 * Read      tutorials/03-online-softmax.md;  Milakov and Gimelshein 2018
 */
#include "row.h"

static void attend(const fd_problem *p, int32_t b, int32_t t, int32_t h)
{
    const int64_t kv_len = fd_visible_end(p, b, t);
    const int32_t h_kv = h / fd_group(p);
    float q[FD_HEAD_DIM_MAX], row[FD_HEAD_DIM_MAX], o[FD_HEAD_DIM_MAX] = {0.0f};

    fd_load_q(p, b, t, h, q);
    float m = -INFINITY, l = 0.0f;
    /* After key j: m = max s, l = sum exp(s - m), o = sum exp(s - m) v, each over the keys 0..j. */
    for (int64_t j = 0; j < kv_len; j++) {
        fd_load_k(p, b, j, h_kv, row);
        const float s = p->sm_scale * fd_dot(q, row, p->head_dim);
        if (s > m) {
            const float alpha = expf(m - s); /* 0 for the first key: m is -infinity */
            l *= alpha;
            for (int32_t i = 0; i < p->head_dim_v; i++) {
                o[i] *= alpha;
            }
            m = s;
        }
        const float weight = expf(s - m);
        l += weight;
        fd_load_v(p, b, j, h_kv, row);
        for (int32_t i = 0; i < p->head_dim_v; i++) {
            o[i] += weight * row[i];
        }
    }
    for (int32_t i = 0; i < p->head_dim_v; i++) {
        o[i] /= l;
    }
    fd_store_row(p, b, t, h, o, m + logf(l));
}

static fd_status run(const fd_problem *p, const fd_context *c)
{
    (void)c;
    for (int32_t b = 0; b < p->batch; b++) {
        for (int32_t t = 0; t < p->q_len; t++) {
            for (int32_t h = 0; h < p->heads_q; h++) {
                if (fd_visible_end(p, b, t) == 0) {
                    fd_store_empty(p, b, t, h);
                } else {
                    attend(p, b, t, h);
                }
            }
        }
    }
    return FD_OK;
}

static void arith(const fd_problem *p, const fd_plan *plan, int64_t kv_len, fd_arith *a)
{
    (void)p, (void)plan;
    a->invariances = FD_INV_SPLITS | FD_INV_BATCH | FD_INV_THREADS;
    a->num_levels = 1;
    a->level[0] = (fd_level){kv_len, FD_MERGE_RUNNING, FD_SEQUENTIAL, .in_order = 1};
}

const fd_rung fd_rung_03_online_softmax = {
    .size = sizeof(fd_rung),
    .abi = FD_ABI,
    .number = 3,
    .parent = 2,
    .name = "online softmax",
    .idea = "one pass: rescale the sums when a key raises the maximum",
    .caps = &fd_readable_caps,
    .supports = fd_readable_supports,
    .run = run,
    .arith = arith,
};
