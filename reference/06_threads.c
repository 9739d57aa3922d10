/* 06  split-KV on threads                                                        [CPU | any]
 *
 * Idea      The (split, sequence, query row, head) pieces of 05 are independent: deal them out to threads.
 * Changed   From 05: the two loops of run() become one parallel loop over pieces and one over rows; each thread has logits
 *           of its own; the plan says how many threads.
 * Why       This is what splitting is for. One sequence with few heads has too few rows to fill a machine; its splits do.
 * Cost      bytes, flops: as 05;  extra: split_size floats for each thread instead of once
 * Numerics  Every piece is computed as in 05 and stored in its own place, and a row's pieces are combined by one thread in
 *           the order of the splits. Which thread does what changes no bit, and the split size does not follow the number
 *           of threads: the price of that is a last round in which some threads have nothing to do.
 *           Bound: proofs/README.md, that of 05.
 * Limits    as 05. Without OpenMP the same code runs on one thread.
 * Read      tutorials/06-threads.md;  Flash-Decoding (Dao, Haziza, Massa, Sizov 2023)
 */
#ifdef _OPENMP
#include <omp.h>
#endif

#include "plan.h"
#include "row.h"

#define SPLIT_SIZE 1024 /* keys; the guide's chunk */

/* The workspace, per split, batch row, query row and query head. All splits are written, empty ones too. */
typedef struct partials {
    float *o; /* [num_splits, batch, q_len, heads_q, head_dim_v], normalised by its own l: yes */
    float *m; /* [num_splits, batch, q_len, heads_q] */
    float *l; /* [num_splits, batch, q_len, heads_q] */
    float *s; /* [num_threads, split_size] logits, then weights, of the splits at hand */
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
        if (fd_visible_end(p, b, t) == 0) {
            fd_store_empty(p, b, t, h);
        } else {
            combine(p, b, t, h, plan->base.num_splits, &w);
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
    return (rows * ((size_t)p->head_dim_v + 2) + threads * (size_t)plan->split_size) * sizeof(float);
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

const fd_rung fd_rung_06_threads = {
    .size = sizeof(fd_rung),
    .abi = FD_ABI,
    .number = 6,
    .parent = 5,
    .name = "threads",
    .idea = "the splits of 05 on threads, with the same bits for any number",
    .caps = &fd_readable_caps,
    .supports = fd_readable_supports,
    .plan_bytes = plan_bytes,
    .plan = plan,
    .workspace = workspace,
    .run = run,
    .arith = arith,
};
