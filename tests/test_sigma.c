/* test_sigma.c: the statistical tier. Where does it speak; do right rungs stay inside; does it see what the proved bound
 * cannot? Whether the model is right: test_sigma_model.c. */
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
    fd_sigma_logits(&x.problem, 0, 0, 0, row, sigma);
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

static void merges_lse_undivided(fd_arith *a)
{
    a->level[1].merge = FD_MERGE_LSE_NO_DIV;
}

static void on_tensor_cores_in_a_tree(fd_arith *a)
{
    a->accumulator = FD_ACC_TENSOR_CORE;
    a->level[0].order = FD_TREE;
}

static void sums_in_fp16(fd_arith *a)
{
    a->accumulator = FD_ACC_F16;
}

static void weights_in_two_parts(fd_arith *a)
{
    a->dtype_p = FD_BF16;
    a->p_parts = 2;
}

static void too_few_keys(fd_arith *a)
{
    a->level[0].ways = a->level[1].ways = 2;
}

Test(sigma, without_a_declared_tree_nothing_is_said)
{
    void (*const changes[])(fd_arith *) = {order_unknown, merges_lse_undivided, on_tensor_cores_in_a_tree,
                                           sums_in_fp16,  weights_in_two_parts, too_few_keys};
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
 * blind, nor above: of as many normal numbers, 16 would be above 3. */
Test(sigma, right_rungs_stay_inside)
{
    const fd_rounding host = rounding();
    fd_seed_tally tallies[64];
    char why[200] = "";
    cr_assert_leq(fd_ladder_cpu_count, 64);
    cr_assert_eq(fd_seeds_run(0, 300, fd_ladder, fd_ladder_cpu_count, &host, tallies, why, sizeof why), FD_OK, "%s",
                 why);
    for (int k = 0; k < fd_ladder_cpu_count; k++) {
        const double rms = sqrt(tallies[k].squares / (double)tallies[k].judged);
        cr_expect_eq(tallies[k].failed, 0, "rung %d fails", fd_ladder[k]->number);
        cr_expect_leq(tallies[k].above[0], 1, "rung %d: z of %.2f and %.2f", fd_ladder[k]->number, tallies[k].z,
                      tallies[k].z_lse);
        cr_expect_gt(tallies[k].judged, 3000);
        cr_expect(rms > 0.4 && rms < 1.0, "rung %d: rms %.3f", fd_ladder[k]->number, rms);
    }
}

/* ---- Power: faults that cost a little everywhere ----------------------------------------------- */

/* Rung 05 written again, with a place for each fault. None: a right rung. */
typedef struct faults {
    float scale;     /* of the logits */
    float exp_error; /* each weight is off by up to so much, relative; as the bits of its argument say */
    int32_t dtype_l; /* that l is accumulated in */
    int32_t dtype_partial;
    bool drop_last; /* split, for head 0 */
} faults;

static float stored_as(float x, int32_t dtype)
{
    fd_tensor place = {.data = &(float){0.0f}, .dtype = dtype};
    fd_store(&place, 0, x);
    return fd_load(&place, 0);
}

static float weight_of(float x, const faults *f)
{
    const double uniform = (double)(fd_random_bits(fd_bits_from_float(x), 3, 0) >> 11) * 0x1p-52 - 1.0;
    const float weight = expf(x);
    return f->exp_error == 0.0f || x == 0.0f ? weight
                                             : (float)((double)weight * (1.0 + (double)f->exp_error * uniform));
}

static fd_status faulty_run(const fd_problem *p, const fd_context *c, const faults *f)
{
    static float s[8192];
    const int64_t n = fd_kv_len(p, 0), size = c->plan->split_size;
    for (int32_t h = 0; h < p->heads_q; h++) {
        float q[FD_HEAD_DIM_MAX], row[FD_HEAD_DIM_MAX], sum[FD_HEAD_DIM_MAX] = {0.0f}, l = 0.0f, m = -INFINITY;
        fd_load_q(p, 0, 0, h, q);
        for (int64_t j = 0; j < n; j++) {
            fd_load_k(p, 0, j, h / fd_group(p), row);
            s[j] = p->sm_scale * f->scale * fd_dot(q, row, p->head_dim);
            m = fmaxf(m, s[j]);
        }
        for (int64_t begin = 0; begin < n; begin += size) {
            const int64_t end = begin + size < n ? begin + size : n;
            float o[FD_HEAD_DIM_MAX] = {0.0f}, part_l = 0.0f, part_m = -INFINITY;
            if (f->drop_last && h == 0 && end == n) {
                break;
            }
            for (int64_t j = begin; j < end; j++) {
                part_m = fmaxf(part_m, s[j]);
            }
            for (int64_t j = begin; j < end; j++) {
                const float weight = weight_of(s[j] - part_m, f);
                part_l = stored_as(part_l + weight, f->dtype_l);
                fd_load_v(p, 0, j, h / fd_group(p), row);
                for (int32_t i = 0; i < p->head_dim_v; i++) {
                    o[i] += weight * row[i];
                }
            }
            const float weight = weight_of(part_m - m, f) * part_l;
            l += weight;
            for (int32_t i = 0; i < p->head_dim_v; i++) {
                sum[i] += weight * stored_as(o[i] / part_l, f->dtype_partial);
            }
        }
        for (int32_t i = 0; i < p->head_dim_v; i++) {
            sum[i] /= l;
        }
        fd_store_row(p, 0, 0, h, sum, m + logf(l));
    }
    return FD_OK;
}

#define FAULTY(name, ...)                                                                                              \
    static fd_status name(const fd_problem *p, const fd_context *c)                                                    \
    {                                                                                                                  \
        const faults f = {__VA_ARGS__};                                                                                \
        return faulty_run(p, c, &f);                                                                                   \
    }

FAULTY(no_fault, .scale = 1.0f)
FAULTY(scale_1_percent, .scale = 1.01f)
FAULTY(scale_2_15, .scale = 1.0f + 0x1p-15f)
FAULTY(l_in_bf16, .scale = 1.0f, .dtype_l = FD_BF16)
FAULTY(partial_in_bf16, .scale = 1.0f, .dtype_partial = FD_BF16)
FAULTY(partial_in_f16, .scale = 1.0f, .dtype_partial = FD_F16)
FAULTY(exp_1_in_1000, .scale = 1.0f, .exp_error = 1e-3f)
FAULTY(exp_2_12, .scale = 1.0f, .exp_error = 0x1p-12f)
FAULTY(exp_2_19, .scale = 1.0f, .exp_error = 0x1p-19f)
FAULTY(last_split_dropped, .scale = 1.0f, .drop_last = true)

typedef struct planted {
    const char *name;
    fd_status (*run)(const fd_problem *p, const fd_context *c);
    bool proved; /* tier 2 sees it, too */
} planted;

/* 4100 keys in splits of 512: the last holds 4. The first rung is right. */
static void power(int32_t dtype, const planted *plants, int count)
{
    const fd_rounding host = rounding();
    const fd_case c = a_case("gaussian", "", dtype, 64, 4100);
    fd_rung rungs[16];
    const fd_rung *list[16];
    fd_outcome outcomes[16];
    fd_instance x;
    char why[200];
    for (int k = 0; k < count; k++) {
        rungs[k] = *fd_ladder_find(5);
        rungs[k].run = plants[k].run;
        list[k] = &rungs[k];
    }
    cr_assert_eq(fd_instance_create(&x, &c, why, sizeof why), FD_OK, "%s", why);
    cr_assert_eq(fd_judge(&x, list, count, &host, outcomes, why, sizeof why), FD_OK, "%s", why);
    for (int k = 0; k < count; k++) {
        const fd_outcome *out = &outcomes[k];
        const double z = fmax(out->z_max, out->z_lse);
        if (k == 0) {
            cr_expect(out->verdict == FD_PASS && z < 4.0, "%s: z %.2f", plants[k].name, z);
            continue;
        }
        cr_expect(out->verdict == FD_FAIL && z > FD_SIGMA_LIMIT, "%s: z %.2f", plants[k].name, z);
        cr_expect_eq(out->tier, (int32_t)(plants[k].proved ? FD_TIER_PROVED : FD_TIER_STATISTICAL), "%s: tier %d, %s",
                     plants[k].name, out->tier, out->reason);
    }
    fd_outcomes_free(outcomes, count);
    fd_instance_free(&x);
}

/* The faults that published tolerances miss, which the lse or an element near 0 shows to the proved bound, too; and smaller
 * ones that only this tier sees. */
Test(sigma, it_sees_lost_precision_in_fp32)
{
    static const planted plants[] = {{"no fault", no_fault, false},
                                     {"l in bf16", l_in_bf16, true},
                                     {"partial_o in bf16", partial_in_bf16, true},
                                     {"partial_o in fp16", partial_in_f16, false},
                                     {"exp off by 1e-3", exp_1_in_1000, true},
                                     {"exp off by 2^-19", exp_2_19, false},
                                     {"scale off by 2^-15", scale_2_15, false}};
    power(FD_F32, plants, sizeof plants / sizeof *plants);
}

Test(sigma, it_sees_what_hides_behind_a_bf16_output)
{
    static const planted plants[] = {{"no fault", no_fault, false},
                                     {"scale off by 1 %", scale_1_percent, true},
                                     {"scale off by 2^-15", scale_2_15, false},
                                     {"last split dropped", last_split_dropped, true},
                                     {"l in bf16", l_in_bf16, true},
                                     {"partial_o in bf16", partial_in_bf16, true},
                                     {"exp off by 1e-3", exp_1_in_1000, true},
                                     {"exp off by 2^-12", exp_2_12, false}};
    power(FD_BF16, plants, sizeof plants / sizeof *plants);
}

/* ---- Levels ------------------------------------------------------------------------------------ */

/* A tier that is not asked fails nothing. */
Test(sigma, a_fault_passes_the_tiers_below_the_one_that_sees_it)
{
    const struct {
        fd_status (*run)(const fd_problem *p, const fd_context *c);
        enum fd_tier sees;
    } rungs[] = {{exp_2_19, FD_TIER_STATISTICAL}, {exp_1_in_1000, FD_TIER_PROVED}};
    const fd_rounding host = rounding();
    const fd_case c = a_case("gaussian", "", FD_F32, 64, 4100);
    fd_instance x;
    char why[200];
    cr_assert_eq(fd_instance_create(&x, &c, why, sizeof why), FD_OK, "%s", why);
    for (int k = 0; k < 2; k++) {
        fd_rung rung = *fd_ladder_find(5);
        const fd_rung *list = &rung;
        rung.run = rungs[k].run;
        for (enum fd_tier level = FD_TIER_EXACT; level <= FD_TIER_STATISTICAL; level++) {
            fd_outcome out;
            cr_assert_eq(fd_judge_tiers(&x, &list, 1, &host, level, &out, why, sizeof why), FD_OK, "%s", why);
            const bool seen = level >= rungs[k].sees;
            cr_expect_eq(out.verdict, seen ? FD_FAIL : FD_PASS, "level %d: %s", level, out.reason);
            cr_expect_eq(out.tier, (int32_t)(seen ? rungs[k].sees : FD_TIER_NONE));
            fd_outcomes_free(&out, 1);
        }
    }
    fd_instance_free(&x);
}
