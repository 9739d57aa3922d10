/* 07  (o, lse) partials and their merge                                          [CPU | any]
 *
 * Idea      Fold (m, l) of a partial into one number, lse = m + ln l. A partial is then what a whole call returns, and two
 *           of them merge into a third of the same kind.
 * Changed   From 06: partials carry lse in place of m and l; combine() merges them in pairs along a tree; merge() does the
 *           same with results of other calls.
 * Why       Results over disjoint keys can be merged whoever made them: shards on other machines, a shared prefix, a cache
 *           that is read in pieces. The tree depends on the keys of the row alone: the bits of a row depend neither on
 *           the number of threads nor on the other sequences of the batch.
 * Cost      bytes: one float less a partial than 06;  flops: a merge of two takes 2 exp, 1 log and 4*head_dim_v instead of
 *           1 exp and 2*head_dim_v
 * Numerics  lse is rounded: u |lse| goes into the weight of a whole partial, at every merge, where m and l apart keep
 *           differences. That is what one more rounding of every logit would cost: little beside a dot product.
 *           Bound: proofs/README.md, additions over split_size keys, then a tree of (o, lse) merges.
 * Limits    as 06. If num_splits is asked for, the split size follows the longest sequence, and with it the bits.
 * Read      tutorials/07-lse-merge.md;  FlashInfer (Ye et al. 2025), attention states
 */
#ifdef _OPENMP
#include <omp.h>
#endif

#include "plan.h"
#include "row.h"

#define SPLIT_SIZE 1024 /* keys; the guide's chunk */

/* The workspace, per split, batch row, query row and query head. All splits are written, empty ones too. */
typedef struct partials {
    float *o;   /* [num_splits, batch, q_len, heads_q, head_dim_v], normalised by its own l: yes */
    float *lse; /* [num_splits, batch, q_len, heads_q], natural; -infinity for a split without keys */
    float *s;   /* [num_threads, split_size] logits, then weights, of the splits at hand */
} partials;

static partials partials_in(const fd_problem *p, const fd_context *c)
{
    const int64_t rows = (int64_t)c->plan->num_splits * p->batch * p->q_len * p->heads_q;
    partials w = {.o = (float *)c->workspace};
    w.lse = w.o + rows * p->head_dim_v;
    w.s = w.lse + rows;
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
    w->lse[at] = keys > 0 ? m + logf(l) : -INFINITY;
}

/* Stage 2. Merges a second result into (o, lse): the same keys' softmax attention, up to rounding. An empty one is left
 * out by selection, so that it changes no bit. Returns the lse of both. */
static float merge_two(float *o, float lse, const float *other, float lse_other, int32_t n)
{
    if (lse_other == -INFINITY) {
        return lse;
    }
    if (lse == -INFINITY) {
        memcpy(o, other, (size_t)n * sizeof *o);
        return lse_other;
    }
    const float m = fmaxf(lse, lse_other), weight = expf(lse - m), weight_other = expf(lse_other - m);
    const float l = weight + weight_other;
    for (int32_t i = 0; i < n; i++) {
        o[i] = (weight * o[i] + weight_other * other[i]) / l;
    }
    return m + logf(l);
}

/* The parts of row [b, t, h]: in the workspace, or tensors that merge() was given, shaped like o and lse. */
typedef struct parts {
    const fd_problem *p;
    const partials *w; /* NULL: tensors */
    const fd_tensor *tensor_o, *tensor_lse;
    int32_t b, t, h;
} parts;

static float load_part(const parts *x, int32_t part, float *o)
{
    const fd_problem *p = x->p;
    if (x->w != NULL) {
        const int64_t at = row_of(p, part, x->b, x->t, x->h);
        memcpy(o, x->w->o + at * p->head_dim_v, (size_t)p->head_dim_v * sizeof *o);
        return x->w->lse[at];
    }
    const fd_tensor *from = &x->tensor_o[part], *lse = &x->tensor_lse[part];
    fd_load_row(from, fd_row_at(from, x->b, x->t, x->h), p->head_dim_v, o);
    return fd_load(lse, fd_row_at(lse, x->b, x->t, x->h));
}

/* Merges count >= 1 parts in pairs, neighbours first: of six, ((0 1) (2 3)) (4 5). More parts behind these, if they are
 * empty, leave the bits alone: the tree depends on the parts that hold keys only. Its depth is log2 count. */
static float combine(const parts *x, int32_t first, int32_t count, float *o)
{
    if (count == 1) {
        return load_part(x, first, o);
    }
    int32_t left = 1; /* the largest power of two below count */
    while (left < count - left) {
        left *= 2;
    }
    float other[FD_HEAD_DIM_MAX];
    const float lse = combine(x, first, left, o), lse_other = combine(x, first + left, count - left, other);
    return merge_two(o, lse, other, lse_other, x->p->head_dim_v);
}

/* Merges count >= 0 parts into row [b, t, h] of o and lse. */
static void finish(const parts *x, int32_t count)
{
    float o[FD_HEAD_DIM_MAX];
    const float lse = count > 0 ? combine(x, 0, count, o) : -INFINITY;
    if (lse == -INFINITY) {
        fd_store_empty(x->p, x->b, x->t, x->h);
    } else {
        fd_store_row(x->p, x->b, x->t, x->h, o, lse);
    }
}

static int32_t this_thread(void)
{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

static fd_status run(const fd_problem *p, const fd_context *c)
{
    const fd_threaded_plan *plan = (const fd_threaded_plan *)(const void *)c->plan;
    const int64_t rows = (int64_t)p->batch * p->q_len * p->heads_q;
    const partials w = partials_in(p, c);
    /* Which piece a number is, is where its partial is: row_of(). Pieces differ in length, so they are dealt out as
     * threads become free. */
#pragma omp parallel for num_threads(plan->num_threads) schedule(dynamic, 1)
    for (int64_t at = 0; at < plan->base.num_splits * rows; at++) {
        const int32_t h = (int32_t)(at % p->heads_q), t = (int32_t)(at / p->heads_q % p->q_len);
        const int32_t b = (int32_t)(at / p->heads_q / p->q_len % p->batch);
        const int64_t kv_len = fd_visible_end(p, b, t);
        int64_t begin, end;
        fd_split_range(&plan->base, kv_len, (int32_t)(at / rows), &begin, &end);
        partials mine = w;
        mine.s += this_thread() * plan->base.split_size;
        attend(p, b, t, h, begin, end, &mine, at);
    }
#pragma omp parallel for num_threads(plan->num_threads)
    for (int64_t row = 0; row < rows; row++) {
        const int32_t h = (int32_t)(row % p->heads_q), t = (int32_t)(row / p->heads_q % p->q_len);
        const int32_t b = (int32_t)(row / p->heads_q / p->q_len);
        finish(&(parts){.p = p, .w = &w, .b = b, .t = t, .h = h}, plan->base.num_splits);
    }
    return FD_OK;
}

static fd_status merge(const fd_problem *p, int32_t n, const fd_tensor *partial_o, const fd_tensor *partial_lse,
                       const fd_context *c)
{
    (void)c;
    if (n < 0) {
        return FD_INVALID;
    }
    for (int32_t b = 0; b < p->batch; b++) {
        for (int32_t t = 0; t < p->q_len; t++) {
            for (int32_t h = 0; h < p->heads_q; h++) {
                finish(&(parts){.p = p, .tensor_o = partial_o, .tensor_lse = partial_lse, .b = b, .t = t, .h = h}, n);
            }
        }
    }
    return FD_OK;
}

static size_t plan_bytes(const fd_problem *p, const fd_machine *machine)
{
    (void)p, (void)machine;
    return sizeof(fd_threaded_plan);
}

static fd_status plan(const fd_problem *p, const fd_machine *machine, fd_plan *plan)
{
    const fd_split_policy policy = {.kind = FD_SPLIT_CHUNK, .chunk = SPLIT_SIZE};
    const fd_status status = fd_plan_splits(&policy, p, machine, plan, NULL, 0);
    plan->size = sizeof(fd_threaded_plan);
    ((fd_threaded_plan *)(void *)plan)->num_threads = machine->num_units > 0 ? machine->num_units : 1;
    return status;
}

static size_t workspace(const fd_problem *p, const fd_plan *plan)
{
    const size_t rows = (size_t)plan->num_splits * (size_t)p->batch * (size_t)p->q_len * (size_t)p->heads_q;
    const size_t threads = (size_t)((const fd_threaded_plan *)(const void *)plan)->num_threads;
    return (rows * ((size_t)p->head_dim_v + 1) + threads * (size_t)plan->split_size) * sizeof(float);
}

static void arith(const fd_problem *p, const fd_plan *plan, int64_t kv_len, fd_arith *a)
{
    /* The split size is the plan's own unless num_splits is asked for: then it follows the longest of the batch. */
    a->invariances = FD_INV_THREADS | (p->num_splits_request == 0 ? FD_INV_BATCH : 0u);
    a->num_levels = 2;
    const int64_t keys = kv_len < plan->split_size ? kv_len : plan->split_size;
    const int64_t splits = (kv_len + plan->split_size - 1) / plan->split_size; /* that hold a key */
    a->level[0] = (fd_level){keys, FD_MERGE_ADD, FD_SEQUENTIAL, .in_order = 1};
    a->level[1] = (fd_level){splits, FD_MERGE_LSE, FD_TREE, .in_order = 1};
}

const fd_rung fd_rung_07_lse_merge = {
    .size = sizeof(fd_rung),
    .abi = FD_ABI,
    .number = 7,
    .parent = 6,
    .name = "lse merge",
    .idea = "partials are (o, lse), merged in pairs; so are results of other calls",
    .caps = &fd_readable_caps,
    .supports = fd_readable_supports,
    .plan_bytes = plan_bytes,
    .plan = plan,
    .workspace = workspace,
    .run = run,
    .arith = arith,
    .merge = merge,
};
