/* 05  split-KV, serial                                                           [CPU | any]
 *
 * Idea      Cut the cache into splits; each computes its own softmax attention (o, m, l); a combine step merges them.
 * Changed   From 02: the key loop gains a range and leaves its state in the workspace; combine weighs the states.
 * Why       The splits are independent: on a GPU they are thread blocks, and few heads can fill the machine. On one core
 *           nothing gets faster, but sums get shorter, and so does the error.
 * Cost      bytes: as 02, plus num_splits*(head_dim_v + 2)*4 written and read per query head;  flops: as 02, plus
 *           2*num_splits*head_dim_v;  extra: split_size floats for the logits of one split
 * Numerics  partial_o is divided once by its own l, after its sum. combine: weight exp(m_s - m) l_s, one division at the
 *           end. Bound: proofs/README.md, additions over split_size keys, then over num_splits normalised parts.
 * Limits    head_dim up to 1024; dense caches; no window_left. Empty splits have m = -infinity, l = 0 and weigh 0.
 * Read      tutorials/05-split-kv.md;  Flash-Decoding (Dao, Haziza, Massa, Sizov 2023)
 */
#include "plan.h"
#include "row.h"

#define SPLIT_SIZE 1024 /* keys; the guide's chunk */

/* The workspace, per split, batch row, query row and query head. All splits are written, empty ones too. */
typedef struct partials {
    float *o; /* [num_splits, batch, q_len, heads_q, head_dim_v], normalised by its own l: yes */
    float *m; /* [num_splits, batch, q_len, heads_q] */
    float *l; /* [num_splits, batch, q_len, heads_q] */
    float *s; /* [split_size] logits, then weights, of the split at hand */
} partials;

static partials partials_in(const fd_problem *p, const fd_context *c)
{
    const int64_t rows = (int64_t)c->plan->num_splits * p->batch * p->q_len * p->heads_q;
    partials w = {.o = (float *)c->workspace};
    w.m = w.o + rows * p->head_dim_v;
    w.l = w.m + rows;
    w.s = w.l + rows;
    return w;
}

static int64_t row_of(const fd_problem *p, int32_t split, int32_t b, int32_t t, int32_t h)
{
    return (((int64_t)split * p->batch + b) * p->q_len + t) * p->heads_q + h;
}

/* Stage 1: softmax attention over the keys [split_begin, split_end) of one split. */
static void attend(const fd_problem *p, int32_t b, int32_t t, int32_t h, int64_t split_begin, int64_t split_end,
                   const partials *w, int64_t at)
{
    const int32_t h_kv = h / fd_group(p);
    float q[FD_HEAD_DIM_MAX], row[FD_HEAD_DIM_MAX];
    float *s = w->s, *o = w->o + at * p->head_dim_v;
    const int64_t keys = split_end - split_begin;

    fd_load_q(p, b, t, h, q);
    float m = -INFINITY;
    for (int64_t j = 0; j < keys; j++) {
        fd_load_k(p, b, split_begin + j, h_kv, row);
        s[j] = p->sm_scale * fd_dot(q, row, p->head_dim);
        m = fmaxf(m, s[j]);
    }

    float l = 0.0f;
    for (int64_t j = 0; j < keys; j++) {
        s[j] = expf(s[j] - m);
        l += s[j];
    }

    memset(o, 0, (size_t)p->head_dim_v * sizeof *o);
    for (int64_t j = 0; j < keys; j++) {
        fd_load_v(p, b, split_begin + j, h_kv, row);
        for (int32_t i = 0; i < p->head_dim_v; i++) {
            o[i] += s[j] * row[i];
        }
    }
    for (int32_t i = 0; i < p->head_dim_v && l > 0.0f; i++) {
        o[i] /= l;
    }
    w->m[at] = m;
    w->l[at] = l;
}

/* Stage 2: the states of one row, rescaled to their common maximum and added. */
static void combine(const fd_problem *p, int32_t b, int32_t t, int32_t h, int32_t num_splits, const partials *w)
{
    float m = -INFINITY, l = 0.0f, o[FD_HEAD_DIM_MAX] = {0.0f};
    for (int32_t split = 0; split < num_splits; split++) {
        m = fmaxf(m, w->m[row_of(p, split, b, t, h)]);
    }
    for (int32_t split = 0; split < num_splits; split++) {
        const int64_t at = row_of(p, split, b, t, h);
        const float weight = expf(w->m[at] - m) * w->l[at];
        l += weight;
        for (int32_t i = 0; i < p->head_dim_v; i++) {
            o[i] += weight * w->o[at * p->head_dim_v + i];
        }
    }
    for (int32_t i = 0; i < p->head_dim_v; i++) {
        o[i] /= l;
    }
    fd_store_row(p, b, t, h, o, m + logf(l));
}

static fd_status run(const fd_problem *p, const fd_context *c)
{
    const partials w = partials_in(p, c);
    for (int32_t b = 0; b < p->batch; b++) {
        for (int32_t t = 0; t < p->q_len; t++) {
            const int64_t kv_len = fd_visible_end(p, b, t);
            for (int32_t h = 0; h < p->heads_q; h++) {
                for (int32_t split = 0; split < c->plan->num_splits; split++) {
                    int64_t begin, end;
                    fd_split_range(c->plan, kv_len, split, &begin, &end);
                    attend(p, b, t, h, begin, end, &w, row_of(p, split, b, t, h));
                }
            }
        }
    }
    for (int32_t b = 0; b < p->batch; b++) {
        for (int32_t t = 0; t < p->q_len; t++) {
            for (int32_t h = 0; h < p->heads_q; h++) {
                if (fd_visible_end(p, b, t) == 0) {
                    fd_store_empty(p, b, t, h);
                } else {
                    combine(p, b, t, h, c->plan->num_splits, &w);
                }
            }
        }
    }
    return FD_OK;
}

static size_t plan_bytes(const fd_problem *p, const fd_machine *machine)
{
    (void)p, (void)machine;
    return sizeof(fd_plan);
}

static fd_status plan(const fd_problem *p, const fd_machine *machine, fd_plan *plan)
{
    const fd_split_policy policy = {.kind = FD_SPLIT_CHUNK, .chunk = SPLIT_SIZE};
    return fd_plan_splits(&policy, p, machine, plan, NULL, 0);
}

static size_t workspace(const fd_problem *p, const fd_plan *plan)
{
    const size_t rows = (size_t)plan->num_splits * (size_t)p->batch * (size_t)p->q_len * (size_t)p->heads_q;
    return (rows * ((size_t)p->head_dim_v + 2) + (size_t)plan->split_size) * sizeof(float);
}

static void arith(const fd_problem *p, const fd_plan *plan, int64_t kv_len, fd_arith *a)
{
    /* The split size is the plan's own unless num_splits is asked for: then it follows the longest of the batch. */
    a->invariances = FD_INV_THREADS | (p->num_splits_request == 0 ? FD_INV_BATCH : 0u);
    a->num_levels = 2;
    const int64_t keys = kv_len < plan->split_size ? kv_len : plan->split_size;
    const int64_t splits = (kv_len + plan->split_size - 1) / plan->split_size; /* that hold a key */
    a->level[0] = (fd_level){keys, FD_MERGE_ADD, FD_SEQUENTIAL, .in_order = 1};
    a->level[1] = (fd_level){splits, FD_MERGE_NORMALISED, FD_SEQUENTIAL, .in_order = 1};
}

const fd_rung fd_rung_05_split_kv = {
    .size = sizeof(fd_rung),
    .abi = FD_ABI,
    .number = 5,
    .parent = 2,
    .name = "split-KV",
    .idea = "each split its own softmax (o, m, l), then a combine",
    .caps = &fd_readable_caps,
    .supports = fd_readable_supports,
    .plan_bytes = plan_bytes,
    .plan = plan,
    .workspace = workspace,
    .run = run,
    .arith = arith,
};
