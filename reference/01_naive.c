/* 01  naive attention                                                            [CPU | any]
 *
 * Idea      The textbook, word for word: logits, exp, divide by the sum, average the values.
 * Changed   Nothing to change from: the first rung.
 * Why       To have the formula in code, and to see where it breaks.
 * Cost      bytes: kv_len*(head_dim + head_dim_v)*sizeof(kv) per query head;  flops: 2*kv_len*(head_dim + head_dim_v);
 *           extra: kv_len floats of workspace for the logits, written once and read twice
 * Numerics  No shift: exp(s) is infinite for s > 88.72 and 0 for s < -103.97, so the sum of a row with large logits
 *           overflows (o is NaN, infinite or 0, lse infinite), and a row of very negative ones is 0/0. It says so
 *           (fails_above, fails_below). Elsewhere the bound of proofs/README.md with one level of additions.
 * Limits    head_dim up to 1024; dense caches; no window_left.
 * Read      tutorials/01-naive.md
 */
#include "row.h"

/* s: [kv_len] scratch, first the logits, then the weights of this row. */
static void attend(const fd_problem *p, int32_t b, int32_t t, int32_t h, float *s)
{
    const int64_t kv_len = fd_visible_end(p, b, t);
    const int32_t h_kv = h / fd_group(p);
    float q[FD_HEAD_DIM_MAX], row[FD_HEAD_DIM_MAX], o[FD_HEAD_DIM_MAX] = {0.0f};

    fd_load_q(p, b, t, h, q);
    for (int64_t j = 0; j < kv_len; j++) {
        fd_load_k(p, b, j, h_kv, row);
        s[j] = p->sm_scale * fd_dot(q, row, p->head_dim);
    }

    float l = 0.0f;
    for (int64_t j = 0; j < kv_len; j++) {
        s[j] = expf(s[j]);
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
    fd_store_row(p, b, t, h, o, logf(l));
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
    a->shift = FD_SHIFT_NONE;
    a->fails_above = 88.73f;   /* ln FLT_MAX = 88.7228: the sum overflows */
    a->fails_below = -103.98f; /* ln 2^-150 = -103.972: every weight is 0 */
    a->num_levels = 1;
    a->level[0] = (fd_level){kv_len, FD_MERGE_ADD, FD_SEQUENTIAL, .in_order = 1};
}

const fd_rung fd_rung_01_naive = {
    .size = sizeof(fd_rung),
    .abi = FD_ABI,
    .number = 1,
    .parent = 0,
    .name = "naive",
    .idea = "the textbook: exp of the raw logits, divide by their sum",
    .caps = &fd_readable_caps,
    .supports = fd_readable_supports,
    .workspace = workspace,
    .run = run,
    .arith = arith,
};
