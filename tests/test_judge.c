/* test_judge.c: the judge against errors of known size and faults of known kind, planted into answers that are right. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "diagnose.h"
#include "execute.h"
#include "judge.h"
#include "ladder.h"
#include "mutants.h"
#include "row.h"

/* ---- A rung with a planted fault --------------------------------------------------------------- */

/* What the planted rung does to the answer of rung 05, and where: element i of row b = 0, h. */
static struct {
    void (*after)(const fd_problem *p, const fd_context *c);
    int32_t h, i;
    float value;
} plant;

static fd_status planted_run(const fd_problem *p, const fd_context *c)
{
    const fd_status status = fd_ladder_find(5)->run(p, c);
    plant.after(p, c);
    return status;
}

static fd_rung planted(void (*after)(const fd_problem *p, const fd_context *c))
{
    fd_rung rung = *fd_ladder_find(5);
    rung.name = "planted";
    rung.run = planted_run;
    plant.after = after;
    return rung;
}

static float *element(const fd_problem *p, int32_t h, int32_t i)
{
    return (float *)p->o.data + fd_row_at(&p->o, 0, 0, h) + i * p->o.stride[3];
}

static fd_case a_case(const char *family, const char *argument, int32_t kv_len)
{
    fd_case c = {.batch = 1,
                 .heads_q = 4,
                 .heads_kv = 2,
                 .head_dim = 16,
                 .head_dim_v = 16,
                 .kv_lens = {kv_len},
                 .kv_len = kv_len,
                 .split_size = 64,
                 .seed = 11};
    snprintf(c.name, sizeof c.name, "test %s %s", family, argument);
    snprintf(c.family, sizeof c.family, "%s", family);
    snprintf(c.argument, sizeof c.argument, "%s", argument);
    return c;
}

static fd_rounding rounding(void)
{
    const fd_libm_error libm = fd_libm_error_get("/nonexistent/libm_error.csv"); /* assumed, the same everywhere */
    return fd_host_rounding(&libm);
}

static enum fd_tier highest = FD_TIER_STATISTICAL; /* a test has a process of its own */

/* The outcome of one rung on one case; the instance is left in *x for more. */
static fd_outcome judge(const fd_rung *rung, const fd_case *c, fd_instance *x)
{
    char why[200] = "";
    fd_outcome out;
    const fd_rounding r = rounding();
    cr_assert_eq(fd_instance_create(x, c, why, sizeof why), FD_OK, "%s", why);
    cr_assert_eq(fd_judge_tiers(x, &rung, 1, &r, highest, &out, why, sizeof why), FD_OK, "%s", why);
    return out;
}

static void finish(fd_outcome *out, fd_instance *x)
{
    fd_outcomes_free(out, 1);
    fd_instance_free(x);
}

static void expect(const fd_rung *rung, const fd_case *c, enum fd_verdict verdict, enum fd_tier tier, const char *said)
{
    fd_instance x;
    fd_outcome out = judge(rung, c, &x);
    cr_assert_eq(out.verdict, (int32_t)verdict, "verdict %d: %s", out.verdict, out.reason);
    cr_assert_eq(out.tier, (int32_t)tier, "tier %d: %s", out.tier, out.reason);
    cr_assert(strstr(out.reason, said) != NULL, "'%s' does not say '%s'", out.reason, said);
    finish(&out, &x);
}

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

/* ---- Tier 1 ------------------------------------------------------------------------------------ */

static void write_past_o(const fd_problem *p, const fd_context *c)
{
    (void)c;
    element(p, p->heads_q - 1, p->head_dim_v)[0] = 1.0f;
}

static void read_past_the_end(const fd_problem *p, const fd_context *c)
{
    (void)c;
    float v[FD_HEAD_DIM_MAX];
    fd_load_v(p, 0, fd_kv_len(p, 0), 0, v);
    if (isinf(v[0])) {
        *element(p, 0, 0) += 1.0f;
    }
}

static size_t one_float_more(const fd_problem *p, const fd_plan *plan)
{
    return fd_ladder_find(5)->workspace(p, plan) + sizeof(float);
}

static void trust_old_workspace(const fd_problem *p, const fd_context *c)
{
    float old; /* behind what rung 05 uses: nobody writes it */
    memcpy(&old, (const char *)c->workspace + fd_ladder_find(5)->workspace(p, c->plan), sizeof old);
    *element(p, 0, 0) += isinf(old) ? 1.0f : 0.0f;
}

static void need_lse(const fd_problem *p, const fd_context *c)
{
    (void)c;
    if (p->lse.data == NULL) {
        *element(p, 0, 0) = 0.0f;
    }
}

static void change_plan(const fd_problem *p, const fd_context *c)
{
    (void)p;
    memcpy((char *)(uintptr_t)c->plan + offsetof(fd_plan, reserved), &(int32_t){1}, 4);
}

static void change_inputs(const fd_problem *p, const fd_context *c)
{
    (void)c;
    *(int32_t *)p->kv_lens.data = 0;
}

static void write_between_rows(const fd_problem *p, const fd_context *c)
{
    (void)c;
    *element(p, 0, p->head_dim_v) = 0.0f;
}

static void write_before_k(const fd_problem *p, const fd_context *c)
{
    (void)c;
    ((unsigned char *)p->k.data)[-1] = 0;
}

static fd_status no_plan(const fd_problem *p, const fd_machine *machine, fd_plan *plan)
{
    (void)p, (void)machine, (void)plan;
    return FD_INVALID;
}

Test(judge, a_plan_that_fails_is_a_verdict)
{
    const fd_case c = a_case("gaussian", "", 100);
    fd_rung rung = *fd_ladder_find(5);
    rung.plan = no_plan;
    expect(&rung, &c, FD_FAIL, FD_TIER_EXACT, "plan() returned");
}

static int calls;

static void count_calls(const fd_problem *p, const fd_context *c)
{
    (void)c;
    *element(p, 1, 1) += (float)calls++ * 0x1p-20f;
}

Test(judge, faults_that_need_no_tolerance_are_exact)
{
    const fd_case c = a_case("gaussian", "", 100);
    const struct {
        void (*after)(const fd_problem *p, const fd_context *c);
        const char *said;
    } faults[] = {{write_past_o, "wrote outside the rows of o"},
                  {read_past_the_end, "no visible token"},
                  {need_lse, "when lse is not wanted"},
                  {change_plan, "changed its plan"},
                  {count_calls, "the same call again has other bits"},
                  {change_inputs, "wrote to its inputs"},
                  {write_before_k, "wrote to its inputs"},
                  {write_between_rows, "wrote outside the rows"}};
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++) {
        const fd_rung rung = planted(faults[k].after);
        expect(&rung, &c, FD_FAIL, FD_TIER_EXACT, faults[k].said);
    }
}

Test(judge, stale_workspace_must_not_show)
{
    const fd_case c = a_case("gaussian", "", 100);
    fd_rung rung = planted(trust_old_workspace);
    rung.workspace = one_float_more;
    expect(&rung, &c, FD_FAIL, FD_TIER_EXACT, "to infinity: the workspace as run() finds it");
}

/* An element that is no visible token, on its way into the answer: as a bit, since NaN would hide a second one. */
static void leak(const fd_problem *p, const fd_tensor *x, int64_t at)
{
    *element(p, 0, 0) += isnan(fd_load(x, at)) ? 0x1p-3f : 0.0f;
}

static fd_status leaking_run(const fd_problem *p, const fd_context *c)
{
    const bool old_o = isnan(*element(p, 3, 2));
    const fd_status status = fd_ladder_find(5)->run(p, c);
    if (strchr("qa", plant.i) != NULL) {
        leak(p, &p->q, p->head_dim);
    }
    if (strchr("ka", plant.i) != NULL) {
        leak(p, &p->k, fd_kv_at(p, &p->k, 0, p->kv_capacity - 1, 0));
    }
    if (strchr("va", plant.i) != NULL) {
        leak(p, &p->v, fd_kv_at(p, &p->v, 0, 0, 0) + p->head_dim_v);
    }
    if (strchr("oa", plant.i) != NULL && old_o) {
        *element(p, 0, 0) += 0x1p-3f;
    }
    return status;
}

Test(judge, the_bytes_that_matter_are_named)
{
    static const struct {
        char which;
        const char *said;
    } leaks[] = {{'q', "to infinity: q between its rows"},
                 {'k', "to infinity: k behind kv_lens or between its rows"},
                 {'v', "to infinity: v behind kv_lens or between its rows"},
                 {'o', "to infinity: o and lse as run() finds them"},
                 {'a',
                  "to infinity: q between its rows, k behind kv_lens or between its rows, v behind kv_lens or between "
                  "its rows, o and lse as run() finds them"}};
    const fd_case c = a_case("gaussian", "", 100);
    fd_rung rung = *fd_ladder_find(5);
    rung.run = leaking_run;
    for (size_t k = 0; k < sizeof leaks / sizeof *leaks; k++) {
        fd_instance x;
        plant.i = leaks[k].which;
        fd_outcome out = judge(&rung, &c, &x);
        const char *from = strstr(out.reason, "to infinity");
        cr_assert(out.verdict == FD_FAIL && from != NULL, "%s", out.reason);
        cr_assert_str_eq(from, leaks[k].said);
        finish(&out, &x);
    }
}

/* Exact answers see an error that the bound would allow. */
static void half_a_unit(const fd_problem *p, const fd_context *c)
{
    (void)c;
    *element(p, 2, 5) = nextafterf(*element(p, 2, 5), INFINITY);
}

Test(judge, a_known_answer_is_compared_bit_for_bit)
{
    fd_case c = a_case("selector", "", 129);
    const fd_rung rung = planted(half_a_unit);
    expect(fd_ladder_find(5), &c, FD_PASS, FD_TIER_NONE, "");
    expect(&rung, &c, FD_FAIL, FD_TIER_EXACT, "exact answer");
}

static void one_instead_of_zero(const fd_problem *p, const fd_context *c)
{
    (void)c;
    if (fd_kv_len(p, 0) == 0) {
        *element(p, 0, 3) = 1e-30f;
    }
}

Test(judge, an_empty_cache_has_one_right_answer)
{
    const fd_case c = a_case("gaussian", "", 0);
    expect(fd_ladder_find(5), &c, FD_PASS, FD_TIER_NONE, "");
    const fd_rung rung = planted(one_instead_of_zero);
    expect(&rung, &c, FD_FAIL, FD_TIER_EXACT, "not 0");
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
