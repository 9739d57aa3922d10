/* test_bound_types.c: claims of 16-bit weights, 16-bit partials, tensor cores and fp16 sums. Counts, the formula
 * against MPFR, inputs that reach it, wrong rungs that it tells apart, and where a bound of fp16 sums stops saying
 * anything. */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <math.h>
#include <string.h>

#include "bound_check.h"
#include "commands.h"
#include "judge.h"
#include "ladder.h"
#include "mutants.h"
#include "proof_status.h"

static const fd_check_counts unchanged = {0, 0, 0};

#define LEVEL(ways, merge, order)                                                                                      \
    {                                                                                                                  \
        ways, FD_MERGE_##merge, FD_##order, .in_order = 1                                                              \
    }

/* ---- Counts ------------------------------------------------------------------------------------ */

/* Instructions on a key's way in o and l, additions in u, stores of a partial_o; undivided ones in the row. */
typedef struct counted {
    const char *what;
    fd_arith claims;
    int64_t n, mmas_n, mmas_d, additions, extra, stores, stores_plain;
} counted;

#define TC .accumulator = FD_ACC_TENSOR_CORE

static const counted counts[] = {
    {"one key", {TC, .num_levels = 1, .level = {LEVEL(1, ADD, SEQUENTIAL)}}, 1, 1, 1, 0, 0, 0, 0},
    {"16 keys", {TC, .num_levels = 1, .level = {LEVEL(16, ADD, SEQUENTIAL)}}, 16, 1, 1, 0, 0, 0, 0},
    {"17 keys", {TC, .num_levels = 1, .level = {LEVEL(17, RUNNING, SEQUENTIAL)}}, 17, 2, 2, 0, 0, 0, 0},
    {"8 keys at a time",
     {TC, .mma_keys = 8, .num_levels = 1, .level = {LEVEL(17, ADD, SEQUENTIAL)}},
     17,
     3,
     3,
     0,
     0,
     0,
     0},
    {"a tree of 7 instructions", {TC, .num_levels = 1, .level = {LEVEL(100, ADD, TREE)}}, 100, 1, 1, 3, 0, 0, 0},
    {"weights in two parts",
     {TC, .dtype_p = FD_BF16, .p_parts = 2, .num_levels = 1, .level = {LEVEL(100, ADD, SEQUENTIAL)}},
     100,
     14,
     7,
     0,
     0,
     0,
     0},
    {"two parts in fp32",
     {.dtype_p = FD_F16, .p_parts = 2, .num_levels = 1, .level = {LEVEL(100, ADD, SEQUENTIAL)}},
     100,
     0,
     0,
     99,
     100,
     0,
     0},
    {"splits",
     {TC, .num_levels = 2, .level = {LEVEL(100, ADD, SEQUENTIAL), LEVEL(10, NORMALISED, SEQUENTIAL)}},
     1000,
     7,
     7,
     9,
     0,
     1,
     0},
    {"splits in a tree",
     {.num_levels = 2, .level = {LEVEL(100, ADD, SEQUENTIAL), LEVEL(10, LSE, TREE)}},
     1000,
     0,
     0,
     99 + 4,
     0,
     4,
     0},
    {"undivided",
     {.num_levels = 2, .level = {LEVEL(100, ADD, SEQUENTIAL), LEVEL(10, RESCALE, SEQUENTIAL)}},
     1000,
     0,
     0,
     99 + 9,
     0,
     1,
     10},
    {"lanes, then splits",
     {.num_levels = 3,
      .level = {LEVEL(10, RUNNING, SEQUENTIAL), LEVEL(10, RESCALE, SEQUENTIAL), LEVEL(10, NORMALISED, SEQUENTIAL)}},
     1000,
     0,
     0,
     27,
     0,
     1,
     0},
    {"order unknown", {TC, .num_levels = 0}, 1000, 63, 63, 0, 0, 1, 0},
    {"order unknown, few keys", {TC, .num_levels = 0}, 20, 16, 16, 0, 0, 1, 0},
};

Test(bound_types, counts)
{
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const counted *w = &counts[i];
        const fd_counts c = fd_bound_counts(&w->claims, w->n);
        cr_expect(c.known && c.mmas_n == w->mmas_n && c.mmas_d == w->mmas_d, "%s: %lld, %lld instructions", w->what,
                  (long long)c.mmas_n, (long long)c.mmas_d);
        cr_expect(c.additions == w->additions && c.extra == w->extra, "%s: %lld, %lld additions", w->what,
                  (long long)c.additions, (long long)c.extra);
        cr_expect(c.stores == w->stores && c.stores_plain == w->stores_plain, "%s: %lld, %lld stores", w->what,
                  (long long)c.stores, (long long)c.stores_plain);
    }
}

Test(bound_types, claims_in_words)
{
    static const struct {
        fd_arith claims;
        const char *says;
    } texts[] = {
        {{TC, .dtype_p = FD_BF16},
         "sums on tensor cores, 16 keys as 16 additions, shift maximum; weights bf16, not "
         "in l, partials fp32; order unknown: any merge tree"},
        {{TC, .mma_rel = 0x1p-19f, .mma_keys = 8},
         "sums on tensor cores, 8 keys within 1.91e-06 of |addends|, "
         "shift maximum; order unknown: any merge tree"},
        {{.dtype_p = FD_F16, .p_parts = 2, .dtype_partial = FD_F16},
         "sums in fp32, shift maximum; weights 2 x fp16, not in l, partials fp16; order unknown: any merge tree"},
        {{.dtype_p = FD_F16, .p_in_l = 1, .accumulator = FD_ACC_F16},
         "sums in fp16, shift maximum; weights fp16 in l, too, partials fp32; order unknown: any merge tree"}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[200];
        fd_claims_text(&texts[i].claims, text, sizeof text);
        cr_expect_str_eq(text, texts[i].says);
    }
}

/* Eight levels, every type and error: the hypotheses of a verdict hold all of it. */
Test(bound_types, the_longest_claims_are_not_cut)
{
    fd_arith claims = {TC, .mma_keys = INT32_MIN, .mma_rel = 1.17549e-38f, .flushes = 1, .dtype_p = FD_BF16};
    char whole[2 * FD_CLAIMS_TEXT], open[200], open_whole[400];
    claims.p_parts = INT32_MIN;
    claims.dtype_partial = FD_BF16;
    claims.math = FD_MATH_CLAIMED;
    claims.exp_rel = claims.exp_abs = claims.log_rel = -1.17549e-38f;
    claims.num_levels = FD_MAX_LEVELS;
    for (int32_t i = 0; i < FD_MAX_LEVELS; i++) {
        claims.level[i] = (fd_level)LEVEL(2, LSE_NO_DIV, SEQUENTIAL);
    }
    fd_claims_text(&claims, whole, sizeof whole);
    claims.level[0].merge = FD_MERGE_LSE;
    claims.level[1].merge = claims.level[2].merge = FD_MERGE_NORMALISED;
    (void)fd_proof_closed(&claims, open, sizeof open);
    (void)fd_proof_closed(&claims, open_whole, sizeof open_whole);
    cr_expect_str_eq(open, open_whole);
    cr_expect(strlen(whole) + strlen("; ") + sizeof open <= FD_CLAIMS_TEXT, "%zu", strlen(whole));
}

/* ---- The formula ------------------------------------------------------------------------------- */

static void draw(fd_check_case *c, uint64_t *seed, double spread)
{
    const int32_t d = c->p.head_dim, d_v = c->p.head_dim_v;
    for (int32_t i = 0; i < d; i++) {
        c->q[i] = (float)(spread * fd_check_uniform(seed));
    }
    for (int64_t j = 0; j < c->p.kv_capacity * d; j++) {
        c->k[j] = (float)fd_check_uniform(seed);
    }
    for (int64_t j = 0; j < c->p.kv_capacity * d_v; j++) {
        c->v[j] = (float)fd_check_uniform(seed);
    }
}

/* Every claim at once, small and huge spreads: weights from 1 down to where fp16, bf16 and fp32 have no numbers.
 * Double is never below MPFR, and above by no more than its own inflation. */
Test(bound_types, formula_against_mpfr)
{
    uint64_t seed = 21;
    for (int run = 0; run < 1500; run++) {
        const int64_t n = 1 + fd_check_below(&seed, 12);
        fd_check_case c;
        cr_assert_eq(fd_check_init(&c, n, 1 + fd_check_below(&seed, 20), 2), FD_OK);
        draw(&c, &seed, (const double[]){0.0, 1.0, 8.0, 60.0}[fd_check_below(&seed, 4)]);
        fd_arith claims = fd_check_random_tree(n, &seed);
        fd_check_random_types(&claims, &seed);
        claims.accumulator = run % 10 == 0 ? FD_ACC_F16 : claims.accumulator;
        claims.num_levels = run % 7 == 0 ? 0 : claims.num_levels;
        double o[2], lse;
        cr_assert_eq(fd_check_judge(&c, &claims, &fd_check_fp32), FD_OK);
        cr_assert_eq(fd_check_bound(&c, &claims, &fd_check_fp32, unchanged, o, &lse), FD_OK);
        const double room = 1.0 + (run % 10 == 0 ? 0x1p-14 : 0x1p-17);
        for (int i = 0; i < 3; i++) {
            const double got = i < 2 ? c.bound.o[i] : c.bound.lse, want = i < 2 ? o[i] : lse;
            char text[200];
            fd_claims_text(&claims, text, sizeof text);
            cr_expect(got >= want && (isinf(want) || got <= want * room), "run %d: %.17g, not %.17g: %s", run, got,
                      want, text);
        }
        fd_check_free(&c);
    }
}

Test(bound_types, what_no_theorem_covers)
{
    const fd_arith outside[] = {{.dtype_p = FD_F8E4M3},
                                {.dtype_partial = FD_I8},
                                {.p_parts = 2},
                                {.dtype_p = FD_BF16, .p_parts = 2, .p_in_l = 1},
                                {TC, .level[0].merge = FD_MERGE_LSE_NO_DIV}};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        fd_arith a = outside[i];
        a.num_levels = 1;
        a.level[0] = (fd_level)LEVEL(1000, ADD, SEQUENTIAL);
        a.level[0].merge = outside[i].level[0].merge > 0 ? outside[i].level[0].merge : FD_MERGE_ADD;
        cr_expect(!fd_bound_counts(&a, 1000).known, "%zu", i);
    }
    cr_expect(!fd_claims_make_sense(&(fd_arith){.mma_rel = NAN}) && !fd_claims_make_sense(&(fd_arith){.mma_keys = -1}));
    cr_expect(!fd_claims_make_sense(&(fd_arith){.p_parts = 4}) && !fd_claims_make_sense(&(fd_arith){.p_in_l = 2}));
}

/* ---- Inputs that reach it ---------------------------------------------------------------------- */

static fd_check_case from_logits(int64_t n, const float *s, const float *v)
{
    fd_check_case c;
    cr_assert_eq(fd_check_from_logits(&c, n, s, v), FD_OK, "out of memory");
    return c;
}

/* A rung in fp32, exact but for its claims: weights or partial_o in a type. Returns its error over the bound of
 * claims. */
static double ratio_of(fd_check_case *c, const fd_arith *claims, double computed)
{
    cr_assert_eq(fd_check_judge(c, claims, &fd_check_fp32), FD_OK);
    return fd_check_error(c, 0, computed) / c->bound.o[0];
}

/* The float whose exponential, as expf gives it, is nearest to w. */
static float logit_of(double w)
{
    return (float)log(w);
}

/* A weight halfway between two numbers of the type, where it is all of the answer: key 0 has v = 0. Two parts: what
 * the first leaves is at most half a unit, and errs by half of what u_p^2 allows. */
Test(bound_types, attained_by_weights)
{
    const struct {
        int32_t dtype, parts;
        double w, least;
    } t[] = {{FD_BF16, 1, 0x1p-1 * (1.0 + 0x1p-8), 0.99},
             {FD_F16, 1, 0x1p-1 * (1.0 + 0x1p-11), 0.98},
             {FD_F16, 1, 0x1.8p-24,
              0.7}, /* between two subnormals: an absolute error, and the relative one is charged, too */
             {FD_BF16, 2, 0x1p-1 + 0x1p-9 - 0x1p-18, 0.4}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        const fd_arith claims = {
            .dtype_p = t[i].dtype, .p_parts = t[i].parts, .num_levels = 1, .level = {LEVEL(2, ADD, SEQUENTIAL)}};
        fd_check_case c = from_logits(2, (const float[]){0.0f, logit_of(t[i].w)}, (const float[]){0.0f, 1.0f});
        const float w = expf(c.k[1]);
        fd_tensor place = {.data = &(float){0.0f}, .dtype = t[i].dtype};
        float sum = 0.0f, rest = w;
        for (int part = 0; part < t[i].parts; part++) {
            fd_store(&place, 0, rest);
            sum += fd_load(&place, 0);
            rest -= fd_load(&place, 0);
        }
        const double ratio = ratio_of(&c, &claims, (double)(sum / (1.0f + w)));
        cr_log_info("weights, %s x %d near %g: %.4f of the bound", fd_dtype_name(t[i].dtype), t[i].parts, t[i].w,
                    ratio);
        cr_expect(ratio <= 1.0 && ratio > t[i].least, "%zu: %g", i, ratio);
        fd_check_free(&c);
    }
}

/* One split whose average is halfway between two numbers. */
Test(bound_types, attained_by_partials)
{
    const int32_t dtypes[] = {FD_BF16, FD_F16};
    for (int i = 0; i < 2; i++) {
        const fd_arith claims = {.dtype_partial = dtypes[i],
                                 .num_levels = 2,
                                 .level = {LEVEL(1, ADD, SEQUENTIAL), LEVEL(1, NORMALISED, SEQUENTIAL)}};
        const float v = 1.0f + (dtypes[i] == FD_BF16 ? 0x1p-8f : 0x1p-11f);
        fd_check_case c = from_logits(1, (const float[]){0.0f}, &v);
        const double ratio = ratio_of(&c, &claims, 1.0);
        cr_log_info("partials, %s: %.4f of the bound", fd_dtype_name(dtypes[i]), ratio);
        cr_expect(ratio <= 1.0 && ratio > 0.98, "%g", ratio);
        fd_check_free(&c);
    }
}

/* A rung that claims fp16 weights and has bf16 ones: halfway between two bf16 numbers lies an fp16 number. */
Test(bound_types, bf16_weights_are_no_fp16_weights)
{
    const fd_arith claims = {.dtype_p = FD_F16, .num_levels = 1, .level = {LEVEL(2, ADD, SEQUENTIAL)}};
    fd_check_case c =
        from_logits(2, (const float[]){0.0f, logit_of(0x1p-1 * (1.0 + 0x1p-8))}, (const float[]){0.0f, 1.0f});
    const float w = expf(c.k[1]);
    const double right = ratio_of(&c, &claims, (double)(fd_float_from_f16(fd_f16_from_float(w)) / (1.0f + w)));
    const double wrong = ratio_of(&c, &claims, (double)(fd_float_from_bf16(fd_bf16_from_float(w)) / (1.0f + w)));
    cr_log_info("fp16 weights at %.3f, bf16 weights at %.3f of the bound of fp16 weights", right, wrong);
    cr_expect(right <= 1.0 && wrong > 4.0, "%g, %g", right, wrong);
    fd_check_free(&c);
}

/* A weight of exactly 1, or a tie for the maximum, is no rounded number: flat inputs owe nothing to bf16. */
Test(bound_types, weights_of_1_are_exact)
{
    enum { N = 64 };
    float s[N] = {0.0f}, v[N];
    for (int j = 0; j < N; j++) {
        v[j] = 1.0f + (float)(j % 7);
    }
    fd_arith claims = {.num_levels = 1, .level = {LEVEL(N, ADD, SEQUENTIAL)}};
    fd_check_case c = from_logits(N, s, v);
    ratio_of(&c, &claims, 0.0);
    const double fp32 = c.bound.o[0];
    claims.dtype_p = FD_BF16;
    ratio_of(&c, &claims, 0.0);
    cr_expect(c.bound.o[0] < 1.1 * fp32, "%g, not %g", c.bound.o[0], fp32);
    fd_check_free(&c);
}

/* ---- Wrong rungs ------------------------------------------------------------------------------- */

static fd_arith extra; /* what the rung at hand claims besides rung 05's levels */

static void claims_of_05_and_more(const fd_problem *p, const fd_plan *plan, int64_t kv_len, fd_arith *a)
{
    fd_ladder_find(5)->arith(p, plan, kv_len, a);
    a->dtype_p = extra.dtype_p;
    a->dtype_partial = extra.dtype_partial;
    a->accumulator = extra.accumulator;
}

static int32_t verdict_of(const char *mutant, const char *family, fd_arith more, fd_outcome *out)
{
    const fd_libm_error libm = fd_libm_error_get("/nonexistent/libm_error.csv");
    const fd_rounding host = fd_host_rounding(&libm);
    fd_case c = {.batch = 1,
                 .heads_q = 2,
                 .heads_kv = 1,
                 .head_dim = 64,
                 .head_dim_v = 64,
                 .kv_lens = {1500},
                 .kv_len = 1500,
                 .split_size = 512,
                 .seed = 5};
    fd_instance x;
    char why[200];
    fd_rung rung = *fd_ladder_find(5);
    for (int i = 0; i < fd_mutants_count; i++) {
        rung = strstr(fd_mutant_files[i], mutant) != NULL ? *fd_mutants[i] : rung;
    }
    const fd_rung *list = &rung;
    extra = more;
    rung.arith = claims_of_05_and_more;
    snprintf(c.name, sizeof c.name, "types %s", family);
    snprintf(c.family, sizeof c.family, "%s", family);
    cr_assert_eq(fd_instance_create(&x, &c, why, sizeof why), FD_OK, "%s", why);
    cr_assert_eq(fd_judge(&x, &list, 1, &host, out, why, sizeof why), FD_OK, "%s", why);
    fd_instance_free(&x);
    return out->verdict;
}

/* With the matching claim right, without it wrong; and tier 3 has a model of them. */
Test(bound_types, the_mutants_of_lost_precision_are_rungs_with_other_claims)
{
    const struct {
        const char *mutant;
        fd_arith claims;
        bool passes;
    } t[] = {{"weights_in_bf16", {.dtype_p = FD_F32}, false},     {"weights_in_bf16", {.dtype_p = FD_BF16}, true},
             {"weights_in_bf16", {.dtype_p = FD_BF16, TC}, true}, {"weights_in_bf16", {.dtype_p = FD_F16}, false},
             {"partial_o_bf16", {.dtype_p = FD_F32}, false},      {"partial_o_bf16", {.dtype_partial = FD_BF16}, true},
             {"partial_o_bf16", {.dtype_partial = FD_F16}, false}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        fd_outcome out;
        const int32_t verdict = verdict_of(t[i].mutant, "gaussian", t[i].claims, &out);
        cr_expect_eq(verdict, t[i].passes ? FD_PASS : FD_FAIL, "%s, %zu: verdict %d, o at %g of the bound, z %g: %s",
                     t[i].mutant, i, verdict, out.ratio, out.z_max, out.reason);
        cr_log_info("%s (%s): %s, tier %d, o at %.3g of the bound, z %.3g", t[i].mutant, out.declared,
                    verdict == FD_PASS ? "passes" : "fails", out.tier, out.ratio, out.z_max);
        fd_outcomes_free(&out, 1);
    }
}

/* What tier 3 has no model for is counted, not passed over. */
Test(bound_types, claims_without_a_sigma_model_are_counted)
{
    const fd_arith claims[] = {{.dtype_p = FD_BF16}, {.accumulator = FD_ACC_F16}};
    for (int i = 0; i < 2; i++) {
        fd_outcome out;
        verdict_of("weights_in_bf16", "gaussian", claims[i], &out);
        cr_expect_eq(out.z_judged, i == 0 ? 2 * 65 : 0);
        cr_expect_eq(out.z_no_model, i == 0 ? 0 : 2 * 65, "%lld", (long long)out.z_no_model);
        fd_outcomes_free(&out, 1);
    }
}

/* ---- Where fp16 sums say nothing --------------------------------------------------------------- */

/* The fewest keys, all alike and v = 1, for which the bound of o is above FD_VACUOUS of the gauge. */
static int64_t vacuous_from(fd_arith claims)
{
    for (int64_t n = 1;; n++) {
        float s[1024] = {0.0f}, v[1024];
        for (int j = 0; j < 1024; j++) {
            v[j] = 1.0f;
        }
        cr_assert_lt(n, 1024);
        claims.level[0].ways = n;
        fd_check_case c = from_logits(n, s, v);
        cr_assert_eq(fd_check_judge(&c, &claims, &fd_check_fp32), FD_OK);
        const double share = c.bound.o[0] / c.row.gauge[0];
        fd_check_free(&c);
        if (!(share <= FD_VACUOUS)) {
            return n;
        }
    }
}

/* n - 1 additions in o and in l, each 2^-11: 2^-4 is reached, whatever the values. */
Test(bound_types, fp16_sums_are_vacuous_from_a_few_dozen_keys_on)
{
    const fd_arith claims = {.accumulator = FD_ACC_F16, .num_levels = 1, .level = {LEVEL(1, ADD, SEQUENTIAL)}};
    const int64_t from = vacuous_from(claims);
    cr_log_info("fp16 sums in sequence: vacuous from %lld keys on", (long long)from);
    cr_expect_eq(from, 62);
}

/* On tensor cores every 16 keys cost 2^-20 in o and in l, if they are added in one sequence. */
Test(bound_types, tensor_cores_are_not_vacuous_below_half_a_million_keys_in_sequence)
{
    const fd_arith claims = {TC, .num_levels = 1};
    const fd_rounding r = fd_bound_rounding(&claims, &fd_check_fp32);
    int64_t n = 0;
    for (double share = 0.0; share <= FD_VACUOUS;) {
        n += 16;
        fd_arith a = claims;
        a.level[0] = (fd_level)LEVEL(n, ADD, SEQUENTIAL);
        const fd_counts c = fd_bound_counts(&a, n);
        share = fd_bound_g_n(&r, &c, 1, 0.0) + fd_bound_g_d(&r, &c, 0);
    }
    cr_log_info("tensor cores in sequence: vacuous from %lld keys on", (long long)n);
    cr_expect(n > 500000, "%lld", (long long)n);
}
