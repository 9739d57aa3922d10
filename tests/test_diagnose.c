/* test_diagnose.c: bugs in somebody else's code get the name of the mutant, other bugs get none. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "commands.h"
#include "diagnose.h"
#include "execute.h"
#include "ladder.h"
#include "mutants.h"
#include "row.h"

/* ---- Somebody else's kernel: split attention in double, last key first, with one bug at a time ------------------- */

static enum bug {
    NO_BUG,
    EQUAL_WEIGHTS,
    L_FORGOTTEN,
    ALPHA_INVERTED,
    LAST_SPLIT_DROPPED,
    FIRST_SPLIT_TWICE,
    GAP,
    TAIL_DROPPED,
    KV_LEN_OF_0,
    K_OF_0,
    V_WRONG_HEAD,
    SCALE_MISSING,
    LSE_BASE_2,
    EMPTY_SPLIT_COUNTS,
    EMPTY_ROW_UNWRITTEN,
    SENTINEL,
    L_IN_BF16,
    SCALE_DOUBLED, /* from here on: no mutant has it */
    KEY_5_DROPPED,
    V_OF_NEXT_KEY
} bug;

typedef struct state {
    double m, l, o[FD_HEAD_DIM_MAX];
} state;

static double logit(const fd_problem *p, int32_t b, int32_t h, int64_t j)
{
    float q[FD_HEAD_DIM_MAX], k[FD_HEAD_DIM_MAX];
    double sum = 0.0;
    fd_load_q(p, b, 0, h, q);
    fd_load_k(p, bug == K_OF_0 ? 0 : b, j, h / fd_group(p), k);
    for (int32_t i = p->head_dim - 1; i >= 0; i--) {
        sum += (double)q[i] * (double)k[i];
    }
    return sum * (bug == SCALE_MISSING ? 1.0 : (double)p->sm_scale) * (bug == SCALE_DOUBLED ? 2.0 : 1.0);
}

static void attend(const fd_problem *p, int32_t b, int32_t h, int64_t begin, int64_t end, int64_t kv_len, state *x)
{
    static double s[4096];
    *x = (state){.m = bug == SENTINEL ? -5e4 * log(2.0) : -HUGE_VAL};
    for (int64_t j = end - 1; j >= begin; j--) {
        s[j] = bug == KEY_5_DROPPED && j == 5 ? -HUGE_VAL : logit(p, b, h, j);
        x->m = fmax(x->m, s[j]);
    }
    for (int64_t j = end - 1; j >= begin; j--) {
        float v[FD_HEAD_DIM_MAX];
        const int32_t h_kv = bug == V_WRONG_HEAD ? h % p->heads_kv : h / fd_group(p);
        const double weight = exp(s[j] - x->m);
        fd_load_v(p, b, bug == V_OF_NEXT_KEY && j + 1 < kv_len ? j + 1 : j, h_kv, v);
        x->l += weight;
        x->l = bug == L_IN_BF16 ? (double)fd_float_from_bf16(fd_bf16_from_float((float)x->l)) : x->l;
        for (int32_t i = 0; i < p->head_dim_v; i++) {
            x->o[i] += weight * (double)v[i];
        }
    }
    for (int32_t i = 0; i < p->head_dim_v && x->l > 0.0; i++) {
        x->o[i] /= x->l;
    }
    if (bug == EMPTY_SPLIT_COUNTS && begin >= end) {
        x->m = 0.0;
        x->l = 1.0;
    }
}

static void merge(const fd_problem *p, int32_t b, int32_t h, const state *splits, int32_t num_splits)
{
    const bool drop = bug == LAST_SPLIT_DROPPED && num_splits > 1;
    const int32_t first = bug == FIRST_SPLIT_TWICE ? -1 : 0, last = num_splits - 1 - drop;
    double m = -HUGE_VAL, l = 0.0, sum[FD_HEAD_DIM_MAX] = {0.0};
    float o[FD_HEAD_DIM_MAX];
    for (int32_t s = last; s >= 0; s--) {
        m = fmax(m, splits[s].m);
    }
    for (int32_t s = last; s >= first; s--) {
        const state *x = &splits[s < 0 ? 0 : s];
        const double alpha = bug == ALPHA_INVERTED ? exp(m - x->m) : exp(x->m - m);
        const double weight = bug == EQUAL_WEIGHTS ? 1.0 : bug == L_FORGOTTEN ? alpha : alpha * x->l;
        l += weight;
        for (int32_t i = 0; i < p->head_dim_v; i++) {
            sum[i] += weight * x->o[i];
        }
    }
    for (int32_t i = 0; i < p->head_dim_v; i++) {
        o[i] = (float)(sum[i] / l);
    }
    fd_store_row(p, b, 0, h, o, (float)((m + log(l)) * (bug == LSE_BASE_2 ? 1.0 / log(2.0) : 1.0)));
}

static fd_status foreign_run(const fd_problem *p, const fd_context *c)
{
    static state splits[64];
    const int64_t size = c->plan->split_size;
    for (int32_t b = 0; b < p->batch; b++) {
        int64_t kv_len = fd_kv_len(p, bug == KV_LEN_OF_0 ? 0 : b);
        kv_len = bug == TAIL_DROPPED ? kv_len / 8 * 8 : kv_len;
        for (int32_t h = 0; h < p->heads_q; h++) {
            if (fd_kv_len(p, b) == 0) {
                if (bug != EMPTY_ROW_UNWRITTEN) {
                    fd_store_empty(p, b, 0, h);
                }
                continue;
            }
            for (int32_t s = 0; s < c->plan->num_splits; s++) {
                const int64_t begin = s * size, end = begin + size - (bug == GAP);
                attend(p, b, h, begin, end < kv_len ? end : kv_len, kv_len, &splits[s]);
            }
            merge(p, b, h, splits, c->plan->num_splits);
        }
    }
    return FD_OK;
}

/* ---- Cases ----------------------------------------------------------------------------------------------------- */

static fd_case a_case(const char *family, const char *argument, int32_t batch, const int32_t *kv_lens)
{
    fd_case c = {.batch = batch, .heads_q = 4, .heads_kv = 2, .head_dim = 16, .head_dim_v = 16, .split_size = 64};
    for (int32_t b = 0; b < batch; b++) {
        c.kv_lens[b] = kv_lens[b];
        c.kv_len = kv_lens[b] > c.kv_len ? kv_lens[b] : c.kv_len;
    }
    c.seed = 21;
    snprintf(c.name, sizeof c.name, "test %s %s %d", family, argument, batch);
    snprintf(c.family, sizeof c.family, "%s", family);
    snprintf(c.argument, sizeof c.argument, "%s", argument);
    return c;
}

enum { NUM_CASES = 5 };

static fd_case the_case(int k)
{
    const int32_t one[] = {300}, ragged[] = {203, 0, 17, 130}, peaked[] = {125, 200}, low[] = {70};
    const fd_case cases[NUM_CASES] = {a_case("gaussian", "", 1, one), a_case("ragged-spike", "", 4, ragged),
                                      a_case("peaky", "8", 2, peaked), a_case("negative", "-120", 1, low),
                                      a_case("negative", "-46000", 1, low)};
    return cases[k];
}

/* Judges the foreign kernel with that bug; suspects of the failing cases, or of all. *failed counts the former. */
static fd_suspects suspects_of(enum bug which, bool failing_only, int *failed)
{
    const fd_libm_error libm = fd_libm_error_get("/nonexistent/libm_error.csv"); /* assumed, the same everywhere */
    const fd_rounding rounding = fd_host_rounding(&libm);
    fd_rung rung = *fd_ladder_find(5);
    const fd_rung *rungs[] = {&rung};
    fd_suspects suspects = FD_ALL_SUSPECTS;
    rung.run = foreign_run;
    bug = which;
    *failed = 0;
    for (int k = 0; k < NUM_CASES; k++) {
        char why[200] = "";
        fd_instance x;
        fd_outcome out;
        const fd_case c = the_case(k);
        cr_assert_eq(fd_instance_create(&x, &c, why, sizeof why), FD_OK, "%s", why);
        cr_assert_eq(fd_judge(&x, rungs, 1, &rounding, &out, why, sizeof why), FD_OK, "%s", why);
        *failed += out.verdict == FD_FAIL;
        if (out.verdict == FD_FAIL || !failing_only) {
            suspects = fd_diagnose(&x, &out, suspects);
        }
        fd_outcomes_free(&out, 1);
        fd_instance_free(&x);
    }
    return suspects;
}

static void expect_name(enum bug which, const char *name)
{
    char text[200];
    int failed;
    fd_diagnosis_text(suspects_of(which, false, &failed), text, sizeof text);
    cr_expect(failed > 0, "'%s' fails on no case", name);
    cr_expect(strcmp(text + strlen("looks like: "), name) == 0, "'%s' is called '%s'", name, text);
}

/* ---- Names ----------------------------------------------------------------------------------------------------- */

Test(diagnose, the_foreign_kernel_is_right_without_a_bug)
{
    int failed;
    suspects_of(NO_BUG, true, &failed);
    cr_assert_eq(failed, 0);
}

Test(diagnose, bugs_of_the_combine_are_named)
{
    expect_name(EQUAL_WEIGHTS, "plain average of the splits");
    expect_name(L_FORGOTTEN, "partials weighed without l");
    expect_name(ALPHA_INVERTED, "rescale factor inverted");
    expect_name(LAST_SPLIT_DROPPED, "last split dropped");
    expect_name(FIRST_SPLIT_TWICE, "first split merged twice");
    expect_name(LSE_BASE_2, "lse returned in base 2");
}

Test(diagnose, bugs_of_the_index_are_named)
{
    expect_name(GAP, "key lost between splits");
    expect_name(TAIL_DROPPED, "tail dropped");
    expect_name(KV_LEN_OF_0, "kv_len of sequence 0");
    expect_name(K_OF_0, "K of sequence 0");
    expect_name(V_WRONG_HEAD, "V of another KV head");
    expect_name(SCALE_MISSING, "sm_scale missing");
}

Test(diagnose, bugs_of_empty_caches_and_splits_are_named)
{
    expect_name(EMPTY_SPLIT_COUNTS, "empty split has weight 1");
    expect_name(EMPTY_ROW_UNWRITTEN, "empty row not written");
}

/* Logits of -46000 alone do not tell a maximum that starts at -34657 from one that starts at 0; the right answers at -120
 * do. */
Test(diagnose, a_case_that_passes_excludes_names_too)
{
    char text[200];
    int failed;
    fd_diagnosis_text(suspects_of(SENTINEL, true, &failed), text, sizeof text);
    cr_expect(failed == 1 && strstr(text, "maximum started at 0 or finite minus infinity") != NULL, "%s", text);
    expect_name(SENTINEL, "finite minus infinity");
}

Test(diagnose, other_bugs_stay_unknown)
{
    expect_name(SCALE_DOUBLED, "unknown");
    expect_name(KEY_5_DROPPED, "unknown");
    expect_name(V_OF_NEXT_KEY, "unknown");
}

/* A loss of precision depends on the order of summation. Another order may get no name, but must not get a wrong one. */
Test(diagnose, lost_precision_in_another_order_gets_no_wrong_name)
{
    char text[200];
    int failed;
    fd_diagnosis_text(suspects_of(L_IN_BF16, false, &failed), text, sizeof text);
    cr_expect(failed > 0);
    cr_expect(strcmp(text, "looks like: unknown") == 0 || strcmp(text, "looks like: l summed in bf16") == 0, "%s",
              text);
}

/* ---- The gallery ----------------------------------------------------------------------------------------------- */

static int calls;

static fd_status counted_run(const fd_problem *p, const fd_context *c)
{
    calls++;
    return foreign_run(p, c);
}

/* What the judge has seen is not computed again, unless stale memory showed: then it is, under the second poison. */
Test(diagnose, a_judged_rung_is_not_run_again)
{
    const fd_libm_error libm = fd_libm_error_get("/nonexistent/libm_error.csv");
    const fd_rounding rounding = fd_host_rounding(&libm);
    const struct {
        enum bug bug;
        int runs;
    } expected[] = {{NO_BUG, 0}, {EQUAL_WEIGHTS, 0}, {EMPTY_ROW_UNWRITTEN, 1}};
    fd_rung rung = *fd_ladder_find(5);
    const fd_rung *rungs[] = {&rung};
    rung.run = counted_run;
    for (size_t k = 0; k < sizeof expected / sizeof *expected; k++) {
        char why[200] = "";
        fd_instance x;
        fd_outcome out;
        const fd_case c = the_case(1);
        bug = expected[k].bug;
        cr_assert_eq(fd_instance_create(&x, &c, why, sizeof why), FD_OK, "%s", why);
        cr_assert_eq(fd_judge(&x, rungs, 1, &rounding, &out, why, sizeof why), FD_OK, "%s", why);
        calls = 0;
        fd_diagnose(&x, &out, FD_ALL_SUSPECTS);
        cr_expect_eq(calls, expected[k].runs, "bug %d runs %d times", (int)bug, calls);
        fd_outcomes_free(&out, 1);
        fd_instance_free(&x);
    }
}

Test(diagnose, a_text_does_not_list_everybody)
{
    char text[200];
    fd_diagnosis_text(fd_suspects_without(FD_ALL_SUSPECTS, FD_MUTANTS_MAX), text, sizeof text);
    cr_expect(strlen(text) < 190 && strstr(text, " more") != NULL, "%s", text);
    fd_diagnosis_text((fd_suspects){{0, 0}}, text, sizeof text);
    cr_expect_str_eq(text, "looks like: unknown");
    fd_diagnosis_text(FD_ALL_SUSPECTS, text, sizeof text); /* nothing was diagnosed */
    cr_expect_str_eq(text, "looks like: unknown");
}

Test(diagnose, who_explains_most_is_named_if_nobody_explains_all)
{
    const fd_suspects none = {{0, 0}}, first = {{1, 0}}, second = {{2, 0}};
    char text[200], says[200];
    fd_votes votes = {0};
    fd_votes_add(&votes, fd_suspects_either(first, second));
    fd_votes_add(&votes, second);
    fd_votes_add(&votes, second);
    fd_votes_add(&votes, none);
    fd_votes_text(&votes, none, text, sizeof text);
    snprintf(says, sizeof says, "looks like: unknown; %s in 3 of 4", fd_mutants[1]->name);
    cr_expect_str_eq(text, says);
    fd_votes_text(&votes, first, text, sizeof text); /* explains all that was asked: the votes are not needed */
    snprintf(says, sizeof says, "looks like: %s", fd_mutants[0]->name);
    cr_expect_str_eq(text, says);
    fd_votes_add(&votes, none);
    fd_votes_add(&votes, none);
    fd_votes_text(&votes, none, text, sizeof text); /* 3 of 6 are not most */
    cr_expect_str_eq(text, "looks like: unknown");
}

/* ---- No bug at all --------------------------------------------------------------------------------------------- */

static float epsilon;

/* Rung 02 with a guarded denominator. */
static fd_status guarded_run(const fd_problem *p, const fd_context *c)
{
    float *s = (float *)c->workspace, q[FD_HEAD_DIM_MAX], row[FD_HEAD_DIM_MAX];
    for (int32_t h = 0; h < p->heads_q; h++) {
        float m = -INFINITY, l = 0.0f, o[FD_HEAD_DIM_MAX] = {0.0f};
        fd_load_q(p, 0, 0, h, q);
        for (int64_t j = 0; j < fd_kv_len(p, 0); j++) {
            fd_load_k(p, 0, j, h / fd_group(p), row);
            s[j] = p->sm_scale * fd_dot(q, row, p->head_dim);
            m = fmaxf(m, s[j]);
        }
        for (int64_t j = 0; j < fd_kv_len(p, 0); j++) {
            const float weight = expf(s[j] - m);
            l += weight;
            fd_load_v(p, 0, j, h / fd_group(p), row);
            for (int32_t i = 0; i < p->head_dim_v; i++) {
                o[i] += weight * row[i];
            }
        }
        for (int32_t i = 0; i < p->head_dim_v; i++) {
            o[i] /= l + epsilon;
        }
        fd_store_row(p, 0, 0, h, o, m + logf(l));
    }
    return FD_OK;
}

/* The largest weight is exactly 1, so l >= 1, and 1e-8, less than half a unit, is lost: the same bits in every case.
 * This is why there is a mutant with 1e-6, and none with the 1e-8 of the guide. */
Test(diagnose, a_denominator_guard_of_1e_8_is_no_bug)
{
    const int32_t lengths[] = {1, 2, 65, 300};
    fd_rung rung = *fd_ladder_find(2);
    rung.run = guarded_run;
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        const fd_case c = a_case("gaussian", "", 1, &lengths[k]);
        const float guards[] = {0.0f, 1e-8f, 1e-6f};
        float o[3][64], lse[3][4];
        char why[200] = "";
        fd_instance x;
        cr_assert_eq(fd_instance_create(&x, &c, why, sizeof why), FD_OK, "%s", why);
        for (int g = 0; g < 3; g++) {
            epsilon = guards[g];
            cr_assert_eq(fd_execute(&rung, NULL, &x, true, FD_POISON_NAN, o[g], lse[g], why, sizeof why), FD_OK);
        }
        cr_expect(memcmp(o[0], o[1], sizeof o[0]) == 0, "1e-8 changes bits at kv_len %d", lengths[k]);
        cr_expect(lengths[k] > 2 || memcmp(o[0], o[2], sizeof o[0]) != 0, "1e-6 changes nothing");
        fd_instance_free(&x);
    }
}
