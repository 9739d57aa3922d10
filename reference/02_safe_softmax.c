/* 02  safe softmax                                                               [CPU | any]
 *
 * Idea      Subtract the largest logit before exp: exponents are <= 0, and the largest weight is exactly 1.
 * Changed   From 01: the logit loop keeps the maximum m; exp(s) becomes exp(s - m); lse gains m.
 * Why       exp can no longer overflow, and l >= 1 can no longer vanish: any finite logits give an answer.
 * Cost      as 01, plus one comparison and one subtraction a key. The guide's "standard attention".
 * Numerics  At most one rounding more in the exponent, u (m - s), which a weight of exp(s - m) hides.
 *           Bound: proofs/README.md, one level of additions.
 * Limits    head_dim up to 1024; dense caches; no window_left.
 * Read      tutorials/02-safe-softmax.md
 */
#include "row.h"

/* s: [kv_len] scratch, first the logits, then the weights of this row. */
static void attend(const fd_problem *p, int32_t b, int32_t t, int32_t h, float *s)
{
    const int64_t kv_len = fd_visible_end(p, b, t);
    const int32_t h_kv = h / fd_group(p);
    float q[FD_HEAD_DIM_MAX], row[FD_HEAD_DIM_MAX], o[FD_HEAD_DIM_MAX] = {0.0f};

    fd_load_q(p, b, t, h, q);
    float m = -INFINITY;
    for (int64_t j = 0; j < kv_len; j++) {
        fd_load_k(p, b, j, h_kv, row);
        s[j] = p->sm_scale * fd_dot(q, row, p->head_dim);
        m = fmaxf(m, s[j]);
    }

    float l = 0.0f;
    for (int64_t j = 0; j < kv_len; j++) {
        s[j] = expf(s[j] - m);
        l += s[j];
    }

    for (int64_t j = 0; j < kv_len; j++) {
        fd_load_v(p, b, j, h_kv, row);
        for (int32_t i = 0; i < p->head_dim_v; i++) {
            o[i] += s[j] * row[i];
        }
    }
    for (int32_t i = 0; i < p->head_dim_v; i++) {
        o[i] /= l;
    }
    fd_store_row(p, b, t, h, o, m + logf(l));
}

static fd_status run(const fd_problem *p, const fd_context *c)
{
    for (int32_t b = 0; b < p->batch; b++) {
        for (int32_t t = 0; t < p->q_len; t++) {
            for (int32_t h = 0; h < p->heads_q; h++) {
                if (fd_visible_end(p, b, t) == 0) {
                    fd_store_empty(p, b, t, h);
                } else {
                    attend(p, b, t, h, (float *)c->workspace);
                }
            }
        }
    }
    return FD_OK;
}

static size_t workspace(const fd_problem *p, const fd_plan *plan)
{
    (void)plan;
    return (size_t)p->kv_capacity * sizeof(float);
}

static void arith(const fd_problem *p, const fd_plan *plan, int64_t kv_len, fd_arith *a)
{
    (void)p, (void)plan;
    a->invariances = FD_INV_SPLITS | FD_INV_BATCH | FD_INV_THREADS;
    a->num_levels = 1;
    a->level[0] = (fd_level){kv_len, FD_MERGE_ADD, FD_SEQUENTIAL, .in_order = 1};
}

const fd_rung fd_rung_02_safe_softmax = {
    .size = sizeof(fd_rung),
    .abi = FD_ABI,
    .number = 2,
    .parent = 1,
    .name = "safe softmax",
    .idea = "subtract the largest logit before exp",
    .caps = &fd_readable_caps,
    .supports = fd_readable_supports,
    .workspace = workspace,
    .run = run,
    .arith = arith,
};
