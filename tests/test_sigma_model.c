/* test_sigma_model.c: is the sigma model what random roundings do? A simulation of every merge, written apart from
 * it. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gen.h"
#include "instance.h"
#include "row.h"
#include "sigma.h"

#define U 0x1p-16 /* large beside double's, small enough for first order */
#define KEYS_MAX 64
#define DIMS 3
#define HEAD_DIM 5 /* sm_scale is no power of two */

typedef struct state {
    double m, l, o[DIMS];
} state;

static struct {
    const fd_arith *arith;
    int base; /* levels below the first that has maxima */
    uint64_t rolled;
    int64_t n;
    double s[KEYS_MAX], v[KEYS_MAX][DIMS];
} sim;

/* x with a relative error drawn uniformly from [-U, U]. */
static double r(double x)
{
    const double uniform = (double)(fd_random_bits(99, 1, sim.rolled++) >> 11) * 0x1p-52 - 1.0;
    return x * (1.0 + U * uniform);
}

/* x in a 16-bit type: half a unit of its last place, of a subnormal one at least. */
static double in_type(double x, int32_t dtype)
{
    const double half = fmax(fabs(x) * (dtype == FD_F16 ? 0x1p-11 : 0x1p-8), dtype == FD_F16 ? 0x1p-25 : 0x1p-134);
    const double uniform = (double)(fd_random_bits(99, 1, sim.rolled++) >> 11) * 0x1p-52 - 1.0;
    return dtype == FD_F32 ? x : x + half * uniform;
}

static bool divides(const fd_level *l)
{
    return l->merge == FD_MERGE_NORMALISED || l->merge == FD_MERGE_LSE;
}

/* What the last level joins, if it is not the only one and none divides. */
static state stored(state x, const fd_level *l)
{
    bool plain = sim.arith->num_levels > 1 && l == &sim.arith->level[sim.arith->num_levels - 1];
    for (int i = 0; i < sim.arith->num_levels; i++) {
        plain = plain && !divides(&sim.arith->level[i]);
    }
    for (int i = 0; i < DIMS && plain; i++) {
        x.o[i] = in_type(x.o[i], sim.arith->dtype_partial);
    }
    return x;
}

/* exp of a difference, or of a raw logit. */
static double rexp(double x)
{
    return x == 0.0 ? 1.0 : r(exp(sim.arith->shift == FD_SHIFT_MAX ? r(x) : x));
}

static double top(int64_t first, int64_t last)
{
    double m = -HUGE_VAL;
    for (int64_t j = first; j < last; j++) {
        m = fmax(m, sim.s[j]);
    }
    return m;
}

static state plus(state x, state y)
{
    x.m = fmax(x.m, y.m);
    x.l = r(x.l + y.l);
    for (int i = 0; i < DIMS; i++) {
        x.o[i] = r(x.o[i] + y.o[i]);
    }
    return x;
}

/* What a merge of (o, lse) takes: m is lse, o divided. */
static state folded(state x)
{
    for (int i = 0; i < DIMS; i++) {
        x.o[i] = in_type(r(x.o[i] / x.l), sim.arith->dtype_partial);
    }
    x.m = r(x.m + r(log(x.l)));
    x.l = 1.0;
    return x;
}

/* x as a merge sees it that shifts to m. */
static state moved(state x, double m, int32_t merge)
{
    if (merge == FD_MERGE_LSE) { /* x is folded */
        x.l = rexp(x.m - m);
        for (int i = 0; i < DIMS && x.m != m; i++) {
            x.o[i] = r(x.l * x.o[i]);
        }
    } else if (merge == FD_MERGE_NORMALISED) {
        const double w = x.m == m ? x.l : r(rexp(r(x.m - m)) * x.l);
        for (int i = 0; i < DIMS; i++) {
            x.o[i] = r(w * in_type(r(x.o[i] / x.l), sim.arith->dtype_partial));
        }
        x.l = w;
    } else if (merge != FD_MERGE_ADD && x.m != m) {
        const double alpha = rexp(x.m - m);
        x.l = r(alpha * x.l);
        for (int i = 0; i < DIMS; i++) {
            x.o[i] = r(alpha * x.o[i]);
        }
    }
    x.m = merge == FD_MERGE_ADD ? x.m : m;
    return x;
}

static int64_t keys_below(int level)
{
    int64_t keys = 1;
    for (int i = 0; i < level; i++) {
        keys *= sim.arith->level[i].ways;
    }
    return keys;
}

/* The state of keys [first, last), which are one group of level - 1. Below the base, weights are taken to shift. */
static state sum_of(int level, int64_t first, int64_t last, double shift)
{
    if (level == 0) {
        state x = {.m = sim.s[first], .l = rexp(sim.s[first] - shift)};
        const double p = x.l == 1.0 ? 1.0 : in_type(x.l, sim.arith->dtype_p);
        for (int i = 0; i < DIMS; i++) {
            x.o[i] = r(p * sim.v[first][i]);
        }
        x.l = sim.arith->p_in_l ? p : x.l;
        return x;
    }
    const fd_level *l = &sim.arith->level[level - 1];
    const int64_t step = keys_below(level - 1);
    const bool own = level - 1 >= sim.base; /* this level has maxima */
    const double common = top(first, last);
    state parts[KEYS_MAX] = {{0}};
    int64_t count = 0;
    double running = -HUGE_VAL;
    for (int64_t at = first; at < last; at += step) {
        const int64_t end = at + step < last ? at + step : last;
        double to = own && level - 1 == sim.base ? top(at, end) : shift;
        if (own && l->merge == FD_MERGE_RUNNING && l->order == FD_SEQUENTIAL) {
            running = fmax(running, top(at, end));
            to = level - 1 == sim.base ? running : to;
        }
        parts[count++] = sum_of(level - 1, at, end, to);
    }
    double largest_lse = -HUGE_VAL;
    for (int64_t x = 0; x < count && l->merge == FD_MERGE_LSE && l->order == FD_SEQUENTIAL; x++) {
        parts[x] = folded(parts[x]);
        largest_lse = fmax(largest_lse, parts[x].m);
    }
    if (l->order == FD_TREE) {
        while (count > 1) { /* neighbours in pairs, an odd one waits */
            int64_t pairs = 0;
            for (int64_t x = 0; x < count; x += 2) {
                if (l->merge == FD_MERGE_LSE && x + 1 < count) {
                    parts[x] = folded(parts[x]);
                    parts[x + 1] = folded(parts[x + 1]);
                }
                for (int64_t y = x; y < x + 2 && x + 1 < count; y++) {
                    parts[y] = stored(parts[y], l);
                }
                const double m = x + 1 < count ? fmax(parts[x].m, parts[x + 1].m) : 0.0;
                parts[pairs++] =
                    x + 1 < count ? plus(moved(parts[x], m, l->merge), moved(parts[x + 1], m, l->merge)) : parts[x];
            }
            count = pairs;
        }
        return parts[0];
    }
    state x = {.m = -HUGE_VAL};
    for (int64_t part = 0; part < count; part++) {
        state y = stored(parts[part], l);
        if (l->merge == FD_MERGE_RUNNING) {
            const double m = fmax(x.m, y.m);
            x = part > 0 ? moved(x, m, l->merge) : x;
            y = level - 1 > sim.base ? moved(y, m, l->merge) : y; /* else it was summed with this shift */
        } else {
            y = moved(y, l->merge == FD_MERGE_LSE ? largest_lse : common, l->merge);
        }
        x = part == 0 ? y : plus(x, y);
    }
    return x;
}

/* exact: keep the oracle's. */
static void simulate_logits(const fd_problem *p, const fd_oracle_row *row, bool exact)
{
    float q[FD_HEAD_DIM_MAX], k[FD_HEAD_DIM_MAX];
    fd_load_q(p, 0, 0, 0, q);
    for (int64_t j = 0; j < sim.n; j++) {
        fd_load_k(p, 0, j, 0, k);
        double sum = r((double)q[0] * (double)k[0]);
        for (int32_t i = 1; i < p->head_dim; i++) {
            sum = r(sum + r((double)q[i] * (double)k[i]));
        }
        sim.s[j] = exact ? row->s_max - row->gap[j] : r(sum * (double)p->sm_scale);
    }
}

/* Standard deviations of o and, last, of lse over so many simulated runs. */
static void simulate(const fd_problem *p, const fd_oracle_row *row, bool exact, int runs, double sd[DIMS + 1])
{
    memset(sd, 0, (DIMS + 1) * sizeof *sd);
    for (int run = 0; run < runs; run++) {
        simulate_logits(p, row, exact);
        const bool shifted = sim.arith->shift == FD_SHIFT_MAX;
        const double m = shifted ? top(0, sim.n) : 0.0;
        const state x = sum_of(sim.arith->num_levels, 0, sim.n, m);
        for (int i = 0; i < DIMS; i++) {
            const double off = r(x.o[i] / x.l) - row->o[i];
            sd[i] += off * off / runs;
        }
        const double off = (shifted ? r(x.m + r(log(x.l))) : r(log(x.l))) - row->lse;
        sd[DIMS] += off * off / runs;
    }
    for (int i = 0; i <= DIMS; i++) {
        sd[i] = sqrt(sd[i]);
    }
}

static void compare(const char *family, const char *argument, int32_t kv_len, int runs)
{
    enum { S = FD_SEQUENTIAL, T = FD_TREE, ADD = FD_MERGE_ADD, RUN = FD_MERGE_RUNNING };
    enum { ONCE = FD_MERGE_RESCALE, NORM = FD_MERGE_NORMALISED, LSE = FD_MERGE_LSE };
    const fd_arith claims[] = {
        {.num_levels = 1, .level = {{64, ADD, S, 1, 0}}, .shift = FD_SHIFT_NONE},
        {.num_levels = 1, .level = {{64, ADD, S, 1, 0}}},
        {.num_levels = 1, .level = {{64, ADD, T, 1, 0}}},
        {.num_levels = 1, .level = {{64, RUN, S, 1, 0}}},
        {.num_levels = 1, .level = {{64, RUN, T, 1, 0}}},
        {.num_levels = 1, .level = {{64, ONCE, S, 1, 0}}},
        {.num_levels = 1, .level = {{64, ONCE, T, 1, 0}}},
        {.num_levels = 1, .level = {{64, NORM, T, 1, 0}}},
        {.num_levels = 2, .level = {{3, ADD, S, 1, 0}, {22, NORM, S, 1, 0}}},
        {.num_levels = 2, .level = {{3, ADD, T, 1, 0}, {22, NORM, T, 1, 0}}},
        {.num_levels = 2, .level = {{2, ADD, S, 1, 0}, {32, RUN, S, 1, 0}}},
        {.num_levels = 2, .level = {{2, RUN, S, 1, 0}, {32, RUN, S, 1, 0}}},
        {.num_levels = 2, .level = {{3, RUN, S, 1, 0}, {22, ONCE, S, 1, 0}}},
        {.num_levels = 3, .level = {{2, ADD, T, 1, 0}, {3, RUN, S, 1, 0}, {8, NORM, S, 1, 0}}},
        {.num_levels = 3, .level = {{2, ADD, S, 1, 0}, {2, ADD, T, 1, 0}, {16, ONCE, T, 1, 0}}},
        {.num_levels = 2, .level = {{3, ADD, S, 1, 0}, {22, LSE, S, 1, 0}}},
        {.num_levels = 2, .level = {{2, ADD, S, 1, 0}, {32, LSE, T, 1, 0}}},
        {.num_levels = 3, .level = {{2, RUN, S, 1, 0}, {3, LSE, T, 1, 0}, {11, LSE, S, 1, 0}}},
        {.num_levels = 2, .level = {{3, ADD, S, 1, 0}, {22, NORM, S, 1, 0}}, .dtype_p = FD_BF16},
        {.num_levels = 1, .level = {{64, ADD, T, 1, 0}}, .dtype_p = FD_F16, .p_in_l = 1},
        {.num_levels = 2, .level = {{3, ADD, S, 1, 0}, {22, NORM, S, 1, 0}}, .dtype_partial = FD_BF16},
        {.num_levels = 2, .level = {{2, ADD, S, 1, 0}, {32, LSE, T, 1, 0}}, .dtype_partial = FD_F16},
        {.num_levels = 2, .level = {{3, RUN, S, 1, 0}, {22, ONCE, T, 1, 0}}, .dtype_partial = FD_BF16},
        {.num_levels = 2,
         .level = {{3, RUN, S, 1, 0}, {22, ONCE, S, 1, 0}},
         .dtype_p = FD_F16,
         .dtype_partial = FD_F16},
    };
    const fd_rounding rounding = {
        .u = U, .eta = 0.0, .largest = 1e30, .exp_rel = U, .exp_rel_positive = U, .log_rel = U, .log_rel_anywhere = U};
    fd_case c = {.batch = 1,
                 .heads_q = 1,
                 .heads_kv = 1,
                 .head_dim = HEAD_DIM,
                 .head_dim_v = DIMS,
                 .kv_lens = {kv_len},
                 .kv_len = kv_len,
                 .seed = 5};
    snprintf(c.name, sizeof c.name, "test %s %s", family, argument);
    snprintf(c.family, sizeof c.family, "%s", family);
    snprintf(c.argument, sizeof c.argument, "%s", argument);
    fd_instance x;
    fd_oracle_row row;
    fd_sigma sigma;
    char why[200];
    cr_assert_eq(fd_instance_create(&x, &c, why, sizeof why), FD_OK, "%s", why);
    cr_assert_eq(fd_oracle_row_init(&row, x.problem.kv_capacity, DIMS), FD_OK);
    cr_assert_eq(fd_sigma_init(&sigma, x.problem.kv_capacity, DIMS), FD_OK);
    cr_assert_eq(fd_oracle(&x.problem, 0, 0, 0, FD_ORACLE_BITS, &row, why, sizeof why), FD_OK);
    sim.n = c.kv_len;
    for (int64_t j = 0; j < sim.n; j++) {
        float v[FD_HEAD_DIM_MAX];
        fd_load_v(&x.problem, 0, j, 0, v);
        for (int i = 0; i < DIMS; i++) {
            sim.v[j][i] = (double)v[i];
        }
    }
    /* Twice: the second time without the errors of the logits, which hide those of the sums. */
    for (size_t pass = 0; pass < 2 * sizeof claims / sizeof *claims; pass++) {
        const size_t k = pass / 2;
        const bool exact = pass % 2 == 1;
        double sd[DIMS + 1];
        sim.arith = &claims[k];
        for (sim.base = 0; sim.base < claims[k].num_levels && claims[k].level[sim.base].merge == ADD;) {
            sim.base++;
        }
        simulate(&x.problem, &row, exact, runs, sd);
        fd_sigma_logits(&x.problem, 0, 0, 0, &row, &sigma);
        if (exact) {
            memset(sigma.logit, 0, (size_t)sim.n * sizeof *sigma.logit);
        }
        fd_sigma_row(&claims[k], &rounding, &x.problem, 0, 0, &row, &sigma);
        cr_assert(sigma.known);
        for (int i = 0; i <= DIMS; i++) {
            const double model = i < DIMS ? sigma.o[i] : sigma.lse;
            cr_expect(fabs(model / sd[i] - 1.0) < 4.5 / sqrt(2.0 * runs),
                      "%s, claims %zu%s, %s %d: model %.4g, simulated %.4g, ratio %.4f", family, k,
                      exact ? ", exact logits" : "", i < DIMS ? "o" : "lse", i, model, sd[i], model / sd[i]);
        }
    }
    fd_sigma_free(&sigma);
    fd_oracle_row_free(&row);
    fd_instance_free(&x);
}

/* Every merge in both orders, alone and on top of others; the last groups are short. The simulation knows its
 * standard deviations to 1 / sqrt(2 runs), and 4.5 times that is the tolerance: with few keys and many runs, each
 * term counts. */
Test(sigma, the_model_is_what_independent_roundings_do)
{
    compare("gaussian", "", 43, 1000);
    compare("gaussian", "", 7, 15000);
    compare("gaussian", "", 3, 40000);
    compare("peaky", "8", 8, 10000);
}
