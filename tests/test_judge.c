/* test_judge.c: tier 2, and the diagnosis, against errors of known size and faults of known kind, planted into answers that
 * are right. */
#include "test_judge.h"
#include "diagnose.h"
#include "mutants.h"

/* ---- Tier 2 ------------------------------------------------------------------------------------ */

static void set_value(const fd_problem *p, const fd_context *c)
{
    (void)c;
    *element(p, plant.h, plant.i) = plant.value;
}

/* An error of 1.01 bounds fails, at the right element; one of 0.99 passes. On either side of the exact value. */
Test(judge, the_pass_line_is_where_it_says)
{
    const fd_case c = a_case("gaussian", "", 200);
    fd_instance x;
    highest = FD_TIER_PROVED; /* 0.99 bounds are 200 standard deviations */
    fd_outcome right = judge(fd_ladder_find(5), &c, &x);
    cr_assert_eq(right.verdict, FD_PASS);
    fd_oracle_row row;
    char why[200];
    cr_assert_eq(fd_oracle_row_init(&row, x.problem.kv_capacity, 16), FD_OK);
    cr_assert_eq(fd_oracle(&x.problem, 0, 0, 3, FD_ORACLE_BITS, &row, why, sizeof why), FD_OK);
    const fd_rung rung = planted(set_value);
    plant.h = 3;
    plant.i = 9;
    for (int side = -1; side <= 1; side += 2) {
        const double line = right.pass_line[3 * 16 + 9];
        fd_instance y;
        plant.value = (float)(row.o[9] + side * 0.99 * line);
        fd_outcome out = judge(&rung, &c, &y);
        cr_assert_eq(out.verdict, FD_PASS, "%s", out.reason);
        cr_assert_float_eq(out.ratio, 0.99, 0.005);
        finish(&out, &y);
        plant.value = (float)(row.o[9] + side * 1.01 * line);
        out = judge(&rung, &c, &y);
        cr_assert(out.verdict == FD_FAIL && out.tier == FD_TIER_PROVED);
        cr_assert(out.worst.b == 0 && out.worst.h == 3 && out.worst.i == 9);
        cr_assert(out.worst.got == plant.value && out.worst.want == row.o[9]);
        finish(&out, &y);
    }
    fd_oracle_row_free(&row);
    finish(&right, &x);
}

Test(judge, not_a_number_and_infinity_fail)
{
    const fd_case c = a_case("gaussian", "", 100);
    const fd_rung rung = planted(set_value);
    const float values[] = {NAN, INFINITY, -INFINITY};
    for (int k = 0; k < 3; k++) {
        plant.value = values[k];
        expect(&rung, &c, FD_FAIL, FD_TIER_PROVED, "o is outside");
    }
}

static void lse_in_base_2(const fd_problem *p, const fd_context *c)
{
    (void)c;
    for (int32_t h = 0; h < p->heads_q && p->lse.data != NULL; h++) {
        ((float *)p->lse.data)[fd_row_at(&p->lse, 0, 0, h)] *= 1.44269504f;
    }
}

Test(judge, an_lse_in_base_2_fails)
{
    const fd_case c = a_case("gaussian", "", 100);
    const fd_rung rung = planted(lse_in_base_2);
    expect(&rung, &c, FD_FAIL, FD_TIER_PROVED, "lse is outside");
}

/* o of the first head a little out, lse of the last one far out. */
static void lse_worse_than_o(const fd_problem *p, const fd_context *c)
{
    (void)c;
    *element(p, 0, 0) += 1e-3f;
    if (p->lse.data != NULL) {
        ((float *)p->lse.data)[fd_row_at(&p->lse, 0, 0, p->heads_q - 1)] += 100.0f;
    }
}

Test(judge, the_reason_speaks_of_the_element_that_is_shown)
{
    const fd_case c = a_case("gaussian", "", 100);
    const fd_rung rung = planted(lse_worse_than_o);
    fd_instance x;
    fd_outcome out = judge(&rung, &c, &x);
    cr_assert(out.verdict == FD_FAIL && out.worst.h == 3 && out.worst.i == -1);
    cr_assert_str_eq(out.reason, "lse is outside the proved bound");
    finish(&out, &x);
}

static void nothing(const fd_problem *p, const fd_context *c)
{
    (void)p, (void)c;
}

static void claims_failure(const fd_problem *p, const fd_plan *plan, int64_t kv_len, fd_arith *a)
{
    (void)p, (void)plan, (void)kv_len;
    a->shift = FD_SHIFT_NONE;
    a->fails_above = -1e30f;
    a->fails_below = -INFINITY;
    a->num_levels = 1;
    a->level[0] = (fd_level){kv_len, FD_MERGE_ADD, FD_SEQUENTIAL, 1, 0};
}

/* A rung that declares to fail where a sum of raw exponentials must overflow, but does not, has declared wrongly. */
Test(judge, a_declared_failure_must_happen)
{
    const fd_case overflow = a_case("peaky", "40", 1000);
    fd_rung rung = planted(nothing);
    rung.arith = claims_failure;
    expect(&rung, &overflow, FD_FAIL, FD_TIER_PROVED, "declares to fail");
    expect(fd_ladder_find(1), &overflow, FD_EXPECTED_FAILURE, FD_TIER_NONE, "as declared");
}

/* A rung that declares to fail everywhere is not excused where it need not fail. */
Test(judge, a_declaration_excuses_only_what_must_fail)
{
    const fd_case c = a_case("gaussian", "", 100);
    fd_rung rung = planted(set_value);
    rung.arith = claims_failure;
    plant.h = plant.i = 0;
    plant.value = NAN;
    expect(&rung, &c, FD_FAIL, FD_TIER_PROVED, "o is outside");
}

static void claims_nonsense(const fd_problem *p, const fd_plan *plan, int64_t kv_len, fd_arith *a)
{
    claims_failure(p, plan, kv_len, a);
    a->shift = FD_SHIFT_MAX;
    a->math = FD_MATH_CLAIMED;
    a->exp_rel = NAN;
}

Test(judge, claims_that_make_no_sense_fail)
{
    const fd_case c = a_case("gaussian", "", 100);
    fd_rung rung = planted(nothing);
    rung.arith = claims_nonsense;
    expect(&rung, &c, FD_FAIL, FD_TIER_PROVED, "make no sense");
}

static void claims_one_level(const fd_problem *p, const fd_plan *plan, int64_t kv_len, fd_arith *a)
{
    fd_ladder_find(5)->arith(p, plan, kv_len, a);
    a->num_levels = 1; /* the splits are forgotten */
}

/* The bound of such a tree is infinite; without this, a rung could buy itself a vacuous bound with it. */
Test(judge, claims_that_join_fewer_keys_than_there_are_fail)
{
    fd_case c = a_case("gaussian", "", 100);
    fd_rung rung = planted(nothing);
    rung.arith = claims_one_level;
    expect(&rung, &c, FD_FAIL, FD_TIER_PROVED, "join fewer keys");
    c.split_size = 128; /* one split: the claim is true */
    expect(&rung, &c, FD_PASS, FD_TIER_NONE, "");
}

static void claims_max(const fd_problem *p, const fd_plan *plan, int64_t kv_len, fd_arith *a)
{
    (void)p, (void)plan;
    a->num_levels = 1;
    a->level[0] = (fd_level){kv_len, FD_MERGE_ADD, FD_SEQUENTIAL, 1, 0};
}

/* Overflow that a rung does not declare is a failure, whoever's intermediate it was. */
Test(judge, an_undeclared_overflow_fails)
{
    fd_rung rung = *fd_ladder_find(1);
    rung.arith = claims_max;
    const fd_case c = a_case("peaky", "40", 1000);
    expect(&rung, &c, FD_FAIL, FD_TIER_PROVED, "outside");
}

/* A bound that proves nothing passes nothing: the case is skipped, and counted. */
Test(judge, a_vacuous_bound_does_not_pass)
{
    fd_case c = a_case("negative", "-46000", 100);
    c.head_dim = c.head_dim_v = 500; /* 501 u a_j is then above 2^-4 */
    expect(fd_ladder_find(2), &c, FD_SKIP, FD_TIER_NONE, "vacuous");
}

/* Key 0 holds the row but for element 3, which is 0 there; element 4 is 0 everywhere. exp(-800) is no double's, let alone a
 * float's, and yet not 0: an answer within the underflow term of the bound is no fault. */
static void least_float(const fd_problem *p, const fd_context *c)
{
    (void)c;
    *element(p, plant.h, plant.i) = plant.value;
}

static void one_key_and_a_vanished_rest(const fd_instance *x)
{
    const fd_problem *p = &x->problem;
    float *q = p->q.data, *k = p->k.data, *v = p->v.data;
    for (int32_t h = 0; h < p->heads_q; h++) {
        for (int32_t i = 0; i < p->head_dim; i++) {
            q[fd_row_at(&p->q, 0, 0, h) + i * p->q.stride[3]] = i == 0 ? 1.0f : 0.0f;
        }
    }
    for (int64_t j = 0; j < fd_kv_len(p, 0); j++) {
        for (int32_t h = 0; h < p->heads_kv; h++) {
            k[fd_kv_at(p, &p->k, 0, j, h)] = (j == 0 ? 800.0f : 0.0f) / p->sm_scale;
            v[fd_kv_at(p, &p->v, 0, j, h) + 3 * p->v.stride[3]] = j == 0 ? 0.0f : 1.0f;
            v[fd_kv_at(p, &p->v, 0, j, h) + 4 * p->v.stride[3]] = 0.0f;
        }
    }
}

Test(judge, a_gauge_that_underflows_is_not_zero)
{
    const struct {
        int32_t i;
        float value;
        int32_t verdict;
    } plants[] = {{3, 0.0f, FD_SKIP}, {3, 0x1p-149f, FD_SKIP}, {3, 0x1p-120f, FD_FAIL}, {4, 0x1p-149f, FD_FAIL}};
    const fd_case c = a_case("gaussian", "", 65);
    const fd_rung rung = planted(least_float);
    const fd_rung *const only = &rung;
    const fd_rounding r = rounding();
    for (size_t n = 0; n < sizeof plants / sizeof *plants; n++) {
        char why[200] = "";
        fd_instance x;
        fd_outcome out;
        plant.h = 1, plant.i = plants[n].i, plant.value = plants[n].value;
        cr_assert_eq(fd_instance_create(&x, &c, why, sizeof why), FD_OK, "%s", why);
        one_key_and_a_vanished_rest(&x);
        cr_assert_eq(fd_judge_tiers(&x, &only, 1, &r, FD_TIER_PROVED, &out, why, sizeof why), FD_OK, "%s", why);
        cr_expect_eq(out.verdict, plants[n].verdict, "o[%d] = %a: verdict %d, %s", plants[n].i, (double)plants[n].value,
                     out.verdict, out.reason);
        fd_outcomes_free(&out, 1);
        fd_instance_free(&x);
    }
}

/* ---- Diagnosis --------------------------------------------------------------------------------- */

/* Somebody else's split attention, in double and in another order, with one of the bugs of tests/mutants or another. */
static enum bug { NO_BUG, DROP_LAST, NO_RESCALE, WRONG_HEAD, DOUBLE_SCALE } bug;

static fd_status foreign_run(const fd_problem *p, const fd_context *c)
{
    const int64_t kv_len = fd_kv_len(p, 0), n = bug == DROP_LAST ? kv_len - 1 : kv_len, size = c->plan->split_size;
    for (int32_t h = 0; h < p->heads_q; h++) {
        const int32_t h_kv = bug == WRONG_HEAD ? h % p->heads_kv : h / fd_group(p);
        float q[FD_HEAD_DIM_MAX], k[FD_HEAD_DIM_MAX], v[FD_HEAD_DIM_MAX], o[FD_HEAD_DIM_MAX];
        double m = -HUGE_VAL, l = 0.0, sum[FD_HEAD_DIM_MAX] = {0.0};
        double s[512], split_m[512];
        fd_load_q(p, 0, 0, h, q);
        for (int64_t j = n - 1; j >= 0; j--) {
            fd_load_k(p, 0, j, h_kv, k);
            s[j] = 0.0;
            for (int32_t i = p->head_dim - 1; i >= 0; i--) {
                s[j] += (double)q[i] * (double)k[i];
            }
            s[j] *= (double)p->sm_scale * (bug == DOUBLE_SCALE ? 2.0 : 1.0);
            m = fmax(m, s[j]);
        }
        for (int64_t j = 0; j < n; j++) {
            split_m[j / size] = j % size == 0 ? s[j] : fmax(split_m[j / size], s[j]);
        }
        for (int64_t j = n - 1; j >= 0; j--) {
            const double weight = exp(s[j] - (bug == NO_RESCALE ? split_m[j / size] : m));
            fd_load_v(p, 0, j, h_kv, v);
            l += weight;
            for (int32_t i = 0; i < p->head_dim_v; i++) {
                sum[i] += weight * (double)v[i];
            }
        }
        for (int32_t i = 0; i < p->head_dim_v; i++) {
            o[i] = (float)(sum[i] / l);
        }
        fd_store_row(p, 0, 0, h, o, (float)(m + log(l)));
    }
    return FD_OK;
}

Test(judge, a_bug_in_other_code_is_named)
{
    const struct {
        enum bug bug;
        const char *name;
    } bugs[] = {{DROP_LAST, "last key dropped"},
                {NO_RESCALE, "combine without rescale"},
                {WRONG_HEAD, "wrong KV head"},
                {DOUBLE_SCALE, "unknown"}};
    fd_case c = a_case("gaussian", "", 300);
    fd_rung rung = *fd_ladder_find(5);
    rung.run = foreign_run;
    bug = NO_BUG;
    expect(&rung, &c, FD_PASS, FD_TIER_NONE, "");
    for (size_t k = 0; k < sizeof bugs / sizeof *bugs; k++) {
        fd_instance x;
        bug = bugs[k].bug;
        fd_outcome out = judge(&rung, &c, &x);
        char text[200];
        cr_assert_eq(out.verdict, FD_FAIL);
        fd_diagnosis_text(fd_diagnose(&x, &out, FD_ALL_SUSPECTS), text, sizeof text);
        cr_assert(strcmp(text + strlen("looks like: "), bugs[k].name) == 0, "%s is called '%s'", bugs[k].name, text);
        finish(&out, &x);
    }
}
