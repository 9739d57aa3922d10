/* parametric.c: rung 05 again, with a place for each fault. Level 0 must keep its bits: same operations, same order. */
#include "parametric.h"

#include <math.h>
#include <stdbool.h>

#include "gen.h"
#include "ladder.h"
#include "row.h"

#define SEED 2026
enum { STREAM_KEY = 91, STREAM_SIGN };

typedef struct amounts {
    double scale;                                   /* of sm_scale */
    float weight;                                   /* relative error of a weight */
    int32_t partial_bits, v_bits, l_bits, exp_bits; /* 0: all */
    bool drop;
} amounts;

const char *fd_fault_name(int32_t fault)
{
    static const char *const names[FD_NUM_FAULTS] = {"sm_scale",   "key dropped", "partial_o bits", "weights",
                                                     "sum of p v", "sum of l",    "exp argument"};
    return names[fault];
}

double fd_fault_size(int32_t level)
{
    return level == 0 ? 0.0 : ldexp(1.0, -level);
}

static amounts amounts_of(int32_t fault, int32_t level)
{
    amounts a = {.scale = 1.0};
    switch (level == 0 ? FD_NUM_FAULTS : fault) {
    case FD_FAULT_SCALE:
        a.scale += fd_fault_size(level);
        break;
    case FD_FAULT_KEY:
        a.drop = true;
        break;
    case FD_FAULT_PARTIAL:
        a.partial_bits = level;
        break;
    case FD_FAULT_WEIGHTS:
        a.weight = (float)fd_fault_size(level);
        break;
    case FD_FAULT_SUM_V:
        a.v_bits = level;
        break;
    case FD_FAULT_SUM_L:
        a.l_bits = level;
        break;
    case FD_FAULT_EXP:
        a.exp_bits = level;
        break;
    default:
        break;
    }
    return a;
}

float fd_round_to_bits(float x, int32_t bits)
{
    if (bits <= 0 || bits >= FD_FAULT_BITS || !isfinite(x)) {
        return x;
    }
    const uint32_t pattern = fd_bits_from_float(x), below = (uint32_t)(FD_FAULT_BITS - bits);
    const uint32_t odd = pattern >> below & 1u, half = (1u << (below - 1)) - 1u;
    return fd_float_from_bits((pattern + half + odd) >> below << below); /* a carry enters the exponent, as it should */
}

/* ---- Rung 05 ----------------------------------------------------------------------------------- */

typedef struct partials {
    float *o, *m, *l, *s; /* as in reference/05_split_kv.c */
} partials;

static int64_t row_of(const fd_problem *p, int32_t split, int32_t b, int32_t h)
{
    return ((int64_t)split * p->batch + b) * p->heads_q + h;
}

static float weigh(float x, int64_t j, const amounts *a)
{
    const float weight = expf(fd_round_to_bits(x, a->exp_bits));
    if (a->weight == 0.0f) {
        return weight;
    }
    return (fd_random_bits(SEED, STREAM_SIGN, (uint64_t)j) & 1u) != 0 ? weight + weight * a->weight
                                                                      : weight - weight * a->weight;
}

/* Keys [begin, end) but for `dropped`, which is -1 if none is. */
static void attend(const fd_problem *p, int32_t b, int32_t h, int64_t begin, int64_t end, int64_t dropped,
                   const amounts *a, const partials *w, int64_t at)
{
    const int32_t h_kv = h / fd_group(p);
    const float sm_scale = (float)((double)p->sm_scale * a->scale);
    float q[FD_HEAD_DIM_MAX], row[FD_HEAD_DIM_MAX];
    float *s = w->s, *o = w->o + at * p->head_dim_v;

    fd_load_q(p, b, 0, h, q);
    float m = -INFINITY;
    for (int64_t j = begin; j < end; j++) {
        fd_load_k(p, b, j, h_kv, row);
        s[j - begin] = j == dropped ? -INFINITY : sm_scale * fd_dot(q, row, p->head_dim);
        m = fmaxf(m, s[j - begin]);
    }

    float l = 0.0f;
    for (int64_t j = begin; j < end; j++) {
        s[j - begin] = j == dropped ? 0.0f : weigh(s[j - begin] - m, j, a);
        l = fd_round_to_bits(l + s[j - begin], a->l_bits);
    }

    memset(o, 0, (size_t)p->head_dim_v * sizeof *o);
    for (int64_t j = begin; j < end; j++) {
        fd_load_v(p, b, j, h_kv, row);
        for (int32_t i = 0; i < p->head_dim_v && a->v_bits == 0; i++) {
            o[i] += s[j - begin] * row[i];
        }
        for (int32_t i = 0; i < p->head_dim_v && a->v_bits != 0; i++) {
            o[i] = fd_round_to_bits(o[i] + s[j - begin] * row[i], a->v_bits);
        }
    }
    for (int32_t i = 0; i < p->head_dim_v && l > 0.0f; i++) {
        o[i] = fd_round_to_bits(o[i] / l, a->partial_bits);
    }
    w->m[at] = m;
    w->l[at] = l;
}

static void combine(const fd_problem *p, int32_t b, int32_t h, int32_t num_splits, const partials *w)
{
    float m = -INFINITY, l = 0.0f, o[FD_HEAD_DIM_MAX] = {0.0f};
    for (int32_t split = 0; split < num_splits; split++) {
        m = fmaxf(m, w->m[row_of(p, split, b, h)]);
    }
    for (int32_t split = 0; split < num_splits; split++) {
        const int64_t at = row_of(p, split, b, h);
        const float weight = expf(w->m[at] - m) * w->l[at];
        l += weight;
        for (int32_t i = 0; i < p->head_dim_v; i++) {
            o[i] += weight * w->o[at * p->head_dim_v + i];
        }
    }
    for (int32_t i = 0; i < p->head_dim_v; i++) {
        o[i] /= l;
    }
    fd_store_row(p, b, 0, h, o, m + logf(l));
}

static fd_status run_with(const fd_problem *p, const fd_context *c, const amounts *a)
{
    const int32_t num_splits = c->plan->num_splits;
    const int64_t rows = (int64_t)num_splits * p->batch * p->heads_q;
    partials w = {.o = (float *)c->workspace};
    w.m = w.o + rows * p->head_dim_v;
    w.l = w.m + rows;
    w.s = w.l + rows;
    for (int32_t b = 0; b < p->batch; b++) {
        const int64_t kv_len = fd_kv_len(p, b);
        const int64_t dropped = a->drop && kv_len > 0
                                    ? (int64_t)(fd_random_bits(SEED, STREAM_KEY, (uint64_t)kv_len) % (uint64_t)kv_len)
                                    : -1;
        for (int32_t h = 0; h < p->heads_q; h++) {
            for (int32_t split = 0; split < num_splits; split++) {
                const int64_t begin = split * c->plan->split_size, end = begin + c->plan->split_size;
                attend(p, b, h, begin < kv_len ? begin : kv_len, end < kv_len ? end : kv_len, dropped, a, &w,
                       row_of(p, split, b, h));
            }
            if (kv_len == 0) {
                fd_store_empty(p, b, 0, h);
            } else {
                combine(p, b, h, num_splits, &w);
            }
        }
    }
    return FD_OK;
}

/* ---- Slots ------------------------------------------------------------------------------------- */

static amounts slots[FD_PARAMETRIC_SLOTS];

/* One run() a slot, numbered in octal. */
#define RUN(n)                                                                                                         \
    static fd_status run_##n(const fd_problem *p, const fd_context *c)                                                 \
    {                                                                                                                  \
        return run_with(p, c, &slots[0##n]);                                                                           \
    }
#define RUNS(n) RUN(n##0) RUN(n##1) RUN(n##2) RUN(n##3) RUN(n##4) RUN(n##5) RUN(n##6) RUN(n##7)
#define NAMES(n) run_##n##0, run_##n##1, run_##n##2, run_##n##3, run_##n##4, run_##n##5, run_##n##6, run_##n##7

RUNS(0)
RUNS(1)
RUNS(2)
RUNS(3)
RUNS(4)
RUNS(5)
RUNS(6)
RUNS(7)

static fd_status (*const runs[FD_PARAMETRIC_SLOTS])(const fd_problem *p, const fd_context *c) = {
    NAMES(0), NAMES(1), NAMES(2), NAMES(3), NAMES(4), NAMES(5), NAMES(6), NAMES(7)};

const fd_rung *fd_parametric(int slot, int32_t fault, int32_t level)
{
    static fd_caps one_row;
    one_row = fd_readable_caps;
    one_row.features &= ~(uint32_t)(FD_MULTI_QUERY | FD_WINDOW);
    static fd_rung rungs[FD_PARAMETRIC_SLOTS];
    slots[slot] = amounts_of(fault, level);
    rungs[slot] = *fd_ladder_find(5);
    rungs[slot].caps = &one_row;
    rungs[slot].name = fd_fault_name(fault);
    rungs[slot].run = runs[slot];
    return &rungs[slot];
}
