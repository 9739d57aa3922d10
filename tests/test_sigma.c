/* test_sigma.c: the statistical tier. Is the model what random roundings do; do right rungs stay inside; does it see what
 * the proved bound cannot? */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "execute.h"
#include "gen.h"
#include "judge.h"
#include "ladder.h"
#include "row.h"
#include "seeds.h"
#include "sigma.h"

static fd_rounding rounding(void)
{
    const fd_libm_error libm = fd_libm_error_get("/nonexistent/libm_error.csv"); /* assumed, the same everywhere */
    return fd_host_rounding(&libm);
}

static fd_case a_case(const char *family, const char *argument, int32_t dtype, int32_t head_dim, int32_t kv_len)
{
    fd_case c = {.dtype_q = dtype,
                 .dtype_kv = dtype,
                 .dtype_o = dtype,
                 .batch = 1,
                 .heads_q = 2,
                 .heads_kv = 1,
                 .head_dim = head_dim,
                 .head_dim_v = head_dim,
                 .kv_lens = {kv_len},
                 .kv_len = kv_len,
                 .split_size = 512,
                 .seed = 5};
    snprintf(c.name, sizeof c.name, "test %s %s", family, argument);
    snprintf(c.family, sizeof c.family, "%s", family);
    snprintf(c.argument, sizeof c.argument, "%s", argument);
    return c;
}

/* ---- The model against simulated roundings ----------------------------------------------------- */

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

/* x as a merge sees it that shifts to m. */
static state moved(state x, double m, int32_t merge)
{
    if (merge == FD_MERGE_NORMALISED) {
        const double w = x.m == m ? x.l : r(rexp(r(x.m - m)) * x.l);
        for (int i = 0; i < DIMS; i++) {
            x.o[i] = r(w * r(x.o[i] / x.l));
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
        for (int i = 0; i < DIMS; i++) {
            x.o[i] = r(x.l * sim.v[first][i]);
        }
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
    if (l->order == FD_TREE) {
        while (count > 1) { /* neighbours in pairs, an odd one waits */
            int64_t pairs = 0;
            for (int64_t x = 0; x < count; x += 2) {
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
        state y = parts[part];
        if (l->merge == FD_MERGE_RUNNING) {
            const double m = fmax(x.m, y.m);
            x = part > 0 ? moved(x, m, l->merge) : x;
            y = level - 1 > sim.base ? moved(y, m, l->merge) : y; /* else it was summed with this shift */
        } else {
            y = moved(y, common, l->merge);
        }
        x = part == 0 ? y : plus(x, y);
    }
    return x;
}

/* exact: keep the oracle's. */
static void simulate_logits(const fd_problem *p, const fd_oracle_row *row, bool exact)
{
    float q[FD_HEAD_DIM_MAX], k[FD_HEAD_DIM_MAX];
    fd_load_q(p, 0, 0, q);
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
        const double off = (shifted ? r(m + r(log(x.l))) : r(log(x.l))) - row->lse;
        sd[DIMS] += off * off / runs;
    }
    for (int i = 0; i <= DIMS; i++) {
        sd[i] = sqrt(sd[i]);
    }
}

static void compare(const char *family, const char *argument, int32_t kv_len, int runs)
{
    enum { S = FD_SEQUENTIAL, T = FD_TREE, ADD = FD_MERGE_ADD, RUN = FD_MERGE_RUNNING };
    enum { ONCE = FD_MERGE_RESCALE, NORM = FD_MERGE_NORMALISED };
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
    };
    const fd_rounding rounding = {
        .u = U, .eta = 0.0, .largest = 1e30, .exp_rel = U, .exp_rel_positive = U, .log_rel = U, .log_rel_anywhere = U};
    fd_case c = a_case(family, argument, FD_F32, HEAD_DIM, kv_len);
    c.head_dim_v = DIMS;
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
        fd_sigma_logits(&x.problem, 0, 0, &row, &sigma);
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

/* Every merge in both orders, alone and on top of others; the last groups are short. The simulation knows its standard
 * deviations to 1 / sqrt(2 runs), and 4.5 times that is the tolerance: with few keys and many runs, each term counts. */
Test(sigma, the_model_is_what_independent_roundings_do)
{
    compare("gaussian", "", 43, 1000);
    compare("gaussian", "", 7, 15000);
    compare("gaussian", "", 3, 40000);
    compare("peaky", "8", 8, 10000);
}

/* ---- What the model says about the simplest rows, and where it is silent ----------------------- */

/* The standard deviations of row 0 of rung 05 with these claims changed by `change`. */
static void row_of(const fd_case *c, void (*change)(fd_arith *a), fd_oracle_row *row, fd_sigma *sigma)
{
    const fd_rounding host = rounding();
    fd_instance x;
    fd_plan *plan = NULL;
    fd_arith claims;
    char why[200];
    cr_assert_eq(fd_instance_create(&x, c, why, sizeof why), FD_OK, "%s", why);
    cr_assert_eq(fd_oracle_row_init(row, x.problem.kv_capacity, c->head_dim_v), FD_OK);
    cr_assert_eq(fd_sigma_init(sigma, x.problem.kv_capacity, c->head_dim_v), FD_OK);
    cr_assert_eq(fd_oracle(&x.problem, 0, 0, 0, FD_ORACLE_BITS, row, why, sizeof why), FD_OK);
    cr_assert_eq(fd_plan_for(fd_ladder_find(5), &x.problem, &plan, why, sizeof why), FD_OK);
    fd_claims(fd_ladder_find(5), &x.problem, plan, row->kv_len, &claims);
    if (change != NULL) {
        change(&claims);
    }
    fd_sigma_logits(&x.problem, 0, 0, row, sigma);
    fd_sigma_row(&claims, &host, &x.problem, 0, 0, row, sigma);
    free(plan);
    fd_instance_free(&x);
}

/* One key: a product, a quotient, a product, a quotient; no addition, and a weight of exactly 1. */
Test(sigma, one_key_has_the_roundings_that_occur)
{
    const fd_case c = a_case("gaussian", "", FD_F32, 16, 1);
    fd_oracle_row row;
    fd_sigma sigma;
    row_of(&c, NULL, &row, &sigma);
    for (int i = 0; i < 16; i++) {
        cr_expect_float_eq(sigma.o[i] / (0x1p-24 * fabs(row.o[i])), sqrt(4.0 / 3.0), 1e-6);
    }
    cr_expect_float_eq(sigma.lse / 0x1p-24, sqrt((sigma.logit[0] + row.lse * row.lse) / 3.0), 1e-3);
    fd_sigma_free(&sigma);
    fd_oracle_row_free(&row);
}

Test(sigma, storing_in_16_bits_adds_its_own_rounding)
{
    const fd_case c = a_case("gaussian", "", FD_F32, 16, 100);
    const int32_t dtypes[2] = {FD_BF16, FD_F16};
    fd_oracle_row row;
    fd_sigma wide, narrow;
    row_of(&c, NULL, &row, &wide);
    for (int t = 0; t < 2; t++) {
        fd_case stored = c;
        fd_oracle_row same;
        stored.dtype_o = dtypes[t];
        row_of(&stored, NULL, &same, &narrow);
        for (int i = 0; i < 16; i++) {
            const double half = fmax(fabs(row.o[i]) * (t == 0 ? 0x1p-8 : 0x1p-11), t == 0 ? 0.0 : 0x1p-25);
            const double expected = sqrt(wide.o[i] * wide.o[i] + half * half / 3.0);
            cr_expect_float_eq(narrow.o[i] / expected, 1.0, 1e-12);
        }
        cr_expect_eq(narrow.lse, wide.lse);
        fd_sigma_free(&narrow);
        fd_oracle_row_free(&same);
    }
    fd_sigma_free(&wide);
    fd_oracle_row_free(&row);
}

static void order_unknown(fd_arith *a)
{
    a->num_levels = 0;
}

static void merges_lse(fd_arith *a)
{
    a->level[1].merge = FD_MERGE_LSE;
}

static void weights_in_bf16(fd_arith *a)
{
    a->dtype_p = FD_BF16;
}

static void too_few_keys(fd_arith *a)
{
    a->level[0].ways = a->level[1].ways = 2;
}

Test(sigma, without_a_declared_tree_nothing_is_said)
{
    void (*const changes[])(fd_arith *) = {order_unknown, merges_lse, weights_in_bf16, too_few_keys};
    const fd_case c = a_case("gaussian", "", FD_F32, 16, 700);
    for (size_t k = 0; k < sizeof changes / sizeof *changes; k++) {
        fd_oracle_row row;
        fd_sigma sigma;
        row_of(&c, changes[k], &row, &sigma);
        cr_expect(!sigma.known && sigma.lse == 0.0);
        for (int i = 0; i < 16; i++) {
            cr_expect_eq(sigma.o[i], 0.0);
        }
        fd_sigma_free(&sigma);
        fd_oracle_row_free(&row);
    }
}

Test(sigma, only_random_families_are_weighed)
{
    static const struct {
        const char *family, *argument;
        int32_t head_dim;
        bool random;
    } families[] = {
        {"gaussian", "", 16, true},       {"gaussian", "", 1, true},        {"peaky", "40", 16, true},
        {"ragged-spike", "", 16, true},   {"ragged-spike", "", 2, false},   {"negative", "-120", 16, true},
        {"negative", "-46000", 16, true}, {"negative", "-46000", 1, false}, {"negative", "-46000-flat", 16, false},
        {"flat-integer", "", 16, false},  {"selector", "", 16, false},      {"selector", "four", 16, false},
        {"attained", "", 1, false},
    };
    const fd_rounding host = rounding();
    const fd_rung *rung = fd_ladder_find(5);
    for (size_t k = 0; k < sizeof families / sizeof *families; k++) {
        const fd_case c = a_case(families[k].family, families[k].argument, FD_F32, families[k].head_dim, 64);
        fd_instance x;
        fd_outcome out;
        char why[200];
        cr_assert_eq(fd_gen_random_family(&c), families[k].random, "%s %d", c.name, c.head_dim);
        cr_assert_eq(fd_instance_create(&x, &c, why, sizeof why), FD_OK, "%s", why);
        cr_assert_eq(fd_judge(&x, &rung, 1, &host, &out, why, sizeof why), FD_OK, "%s", why);
        cr_expect_eq(out.verdict, FD_PASS, "%s: %s", c.name, out.reason);
        cr_expect_eq(out.z_judged, families[k].random ? 2 * (c.head_dim + 1) : 0, "%s", c.name);
        cr_expect_eq(out.z_max > 0.0, families[k].random, "%s", c.name);
        fd_outcomes_free(&out, 1);
        fd_instance_free(&x);
    }
}

/* ---- Right rungs stay inside ------------------------------------------------------------------- */

/* The first 300 seeds of `flashdecode seeds`. The spread is that of the model: neither far below it, which would make it
 * blind, nor above. */
Test(sigma, right_rungs_stay_inside)
{
    const fd_rounding host = rounding();
    fd_seed_tally tallies[64];
    char why[200] = "";
    cr_assert_leq(fd_ladder_count, 64);
    cr_assert_eq(fd_seeds_run(0, 300, fd_ladder, fd_ladder_count, &host, tallies, why, sizeof why), FD_OK, "%s", why);
    for (int k = 0; k < fd_ladder_count; k++) {
        const double rms = sqrt(tallies[k].squares / (double)tallies[k].judged);
        cr_expect_eq(tallies[k].failed, 0, "rung %d fails", fd_ladder[k]->number);
        cr_expect_eq(tallies[k].above[0], 0, "rung %d: z of %.2f and %.2f", fd_ladder[k]->number, tallies[k].z,
                     tallies[k].z_lse);
        cr_expect_gt(tallies[k].judged, 3000);
        cr_expect(rms > 0.4 && rms < 1.0, "rung %d: rms %.3f", fd_ladder[k]->number, rms);
    }
}
