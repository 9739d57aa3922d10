/* test_rules.c: each published rule just inside and just outside its line, and what it makes of a NaN. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "commands.h"
#include "instance.h"
#include "oracle.h"
#include "rules.h"
#include "rules_inputs.h"

#define N 8 /* elements; 2 rows of 4 */

/* References and a result by hand: the truth is 1 everywhere (lse: 2), the yardstick and the result as each test says.
 */
typedef struct bench {
    double o[N], lse[2];
    float o_stored[N], lse_stored[2], o_low[N], lse_low[2], o_math[N], result[N], result_lse[2];
    fd_rule_references references;
    fd_rule_input input;
} bench;

static void setup(bench *x, int32_t dtype, double truth)
{
    memset(x, 0, sizeof *x);
    for (int i = 0; i < N; i++) {
        x->o[i] = truth;
        x->o_stored[i] = x->o_low[i] = x->o_math[i] = x->result[i] = (float)truth;
    }
    for (int i = 0; i < 2; i++) {
        x->lse[i] = 2.0;
        x->lse_stored[i] = x->lse_low[i] = x->result_lse[i] = 2.0f;
    }
    x->references =
        (fd_rule_references){2, N, x->o, x->lse, x->o_stored, x->lse_stored, x->o_low, x->lse_low, x->o_math, NULL};
    x->input = (fd_rule_input){x->result, x->result_lse, dtype, &x->references};
}

static const fd_rule *rule(const char *name)
{
    for (int k = 0; k < fd_rules_count; k++) {
        if (strcmp(fd_rules[k].name, name) == 0) {
            return &fd_rules[k];
        }
    }
    cr_assert_fail("no rule %s", name);
    return NULL;
}

static fd_rule_verdict judge(const char *name, const bench *x)
{
    return rule(name)->judge(&x->input);
}

/* One element of the result off by err: passes, and fails with a little more. */
static void line(const char *name, bench *x, double err)
{
    x->result[3] = (float)(x->o[3] + 0.999 * err);
    cr_assert_not(judge(name, x).caught, "%s: %g below its line", name, 0.999 * err);
    cr_assert_float_eq(judge(name, x).margin, 0.999, 1e-3, "%s: margin %g", name, judge(name, x).margin);
    x->result[3] = (float)(x->o[3] + 1.001 * err);
    cr_assert(judge(name, x).caught, "%s: %g above its line", name, 1.001 * err);
    cr_assert_gt(judge(name, x).margin, 1.0);
    x->result[3] = (float)x->o[3];
}

static void all_low(bench *x, float off)
{
    for (int i = 0; i < N; i++) {
        x->o_low[i] += off;
    }
}

static void all_results(bench *x, float off)
{
    for (int i = 0; i < N; i++) {
        x->result[i] = (float)x->o[i] + off;
    }
}

Test(rules, flash_attention_allows_twice_or_thrice_the_yardstick)
{
    bench x;
    setup(&x, FD_BF16, 0.0);
    x.o_low[0] = 1e-3f; /* anywhere: the largest counts for all */
    line("FlashAttention-2, 2x", &x, 2e-3 + 1e-5);
    line("FlashAttention-2, 3x", &x, 3e-3 + 1e-5);
    x.o_low[0] = 0.0f;
    line("FlashAttention-2, 2x", &x, 1e-5);
}

Test(rules, flash_attention_3_looks_at_the_mean_too)
{
    bench x;
    setup(&x, FD_BF16, 0.0);
    all_low(&x, 1e-3f);
    all_results(&x, 1.499e-3f);
    cr_assert_not(judge("FlashAttention-3", &x).caught);
    all_results(&x, 1.501e-3f); /* below 2e-3, the line for one element */
    cr_assert(judge("FlashAttention-3", &x).caught);
    cr_assert_not(judge("FlashAttention-2, 2x", &x).caught);
    all_results(&x, 0.0f);
    line("FlashAttention-3", &x, 2e-3 + 1e-5);
}

Test(rules, flash_attention_compares_with_the_truth_as_stored)
{
    bench x;
    setup(&x, FD_BF16, 1.0);
    x.o[0] = 1.003; /* rounds to 1 in bf16: an output of 1 has no error there */
    x.o_low[0] = x.o_math[0] = 1.003f;
    cr_assert_eq(judge("FlashAttention-2, 2x", &x).margin, 0.0);
    cr_assert_gt(judge("PyTorch SDPA", &x).margin, 1.0);
}

Test(rules, fixed_tolerances)
{
    bench x;
    setup(&x, FD_F32, 2.0);
    line("FlashInfer, 1e-3", &x, 3e-3);
    line("FlashInfer, 1e-2", &x, 3e-2);
    line("vLLM, flash", &x, 3.5e-2);
    line("vLLM, paged", &x, 1.02e-3);
    line("the guide", &x, 1e-4);
    setup(&x, FD_F32, 0.0);
    line("FlashInfer, 1e-3", &x, 1e-3);
}

Test(rules, llama_divides_by_the_result_of_the_whole_tensor)
{
    bench x;
    setup(&x, FD_F32, 1.0);
    const double e = sqrt(5e-4) / (1.0 - sqrt(5e-4)); /* e / (1 + e) = sqrt(5e-4) */
    all_results(&x, (float)(0.999 * e));
    cr_assert_not(judge("llama.cpp", &x).caught);
    all_results(&x, (float)(1.001 * e));
    cr_assert(judge("llama.cpp", &x).caught);
    all_results(&x, 0.0f);
    x.result[3] = 1.06f; /* 6 % off in one of eight: diluted below the line */
    cr_assert_not(judge("llama.cpp", &x).caught);

    setup(&x, FD_F32, 0.0);
    cr_assert_not(judge("llama.cpp", &x).caught, "0 / 0 is not above the line");
    x.result[0] = INFINITY;
    cr_assert(judge("llama.cpp", &x).caught);
}

Test(rules, sdpa_takes_the_larger_of_floor_and_yardstick)
{
    bench x;
    setup(&x, FD_F32, 0.0);
    line("PyTorch SDPA", &x, 1e-5);
    x.o_math[7] = -1e-3f;
    line("PyTorch SDPA", &x, 3e-3);
    x.o_low[7] = 1.0f; /* not what it compares with */
    line("PyTorch SDPA", &x, 3e-3);
}

Test(rules, flex_looks_at_means_and_gives_up_where_they_are_tiny)
{
    bench x;
    setup(&x, FD_BF16, 1.0);
    all_low(&x, 0x1p-10f);
    x.lse_low[0] += 1e-2f;
    x.lse_low[1] += 1e-2f;
    all_results(&x, 1.099f * 0x1p-10f);
    cr_assert_not(judge("FlexAttention", &x).caught);
    all_results(&x, 1.101f * 0x1p-10f);
    cr_assert(judge("FlexAttention", &x).caught);
    x.input.dtype_o = FD_F32; /* 10 times */
    cr_assert_not(judge("FlexAttention", &x).caught);
    all_results(&x, 10.01f * 0x1p-10f);
    cr_assert(judge("FlexAttention", &x).caught);
    all_results(&x, 0.0f);
    x.result_lse[1] += 0.201f; /* a mean of 0.1005 against ten times 0.01 */
    cr_assert(judge("FlexAttention", &x).caught);

    setup(&x, FD_F32, 1.0); /* a yardstick without error */
    line("FlexAttention", &x, 0.4);
}

Test(rules, flash_mla_wants_the_absolute_or_the_relative_line_and_the_direction)
{
    bench x;
    setup(&x, FD_BF16, 1e-3); /* small: the absolute line; the cosine is far */
    x.o[0] = 1.0;
    x.o_stored[0] = x.result[0] = 1.0f;
    line("FlashMLA", &x, 8e-4);
    setup(&x, FD_BF16, 0.0);
    for (int i = 1; i < N; i++) {
        x.o[i] = 1.0;
        x.o_stored[i] = x.result[i] = 1.0f;
    }
    x.o[3] = 0.1;
    x.o_stored[3] = x.result[3] = 0.1f;
    line("FlashMLA", &x, 2.01 / 128.0 * (0.1 + 1e-6));

    setup(&x, FD_BF16, 1.0); /* every element within its line, and yet the cosine is not: 1 - 2ab/(a^2 + b^2) */
    all_results(&x, 3.1e-3f);
    cr_assert_not(judge("FlashMLA", &x).caught);
    all_results(&x, 3.3e-3f);
    cr_assert(judge("FlashMLA", &x).caught);

    setup(&x, FD_BF16, 1.0);
    x.result_lse[1] = (float)(2.0 + 0.999 * 2.0 * 8.01 / 65536.0);
    cr_assert_not(judge("FlashMLA", &x).caught);
    x.result_lse[1] = (float)(2.0 + 1.01 * 2.0 * 8.01 / 65536.0);
    cr_assert(judge("FlashMLA", &x).caught);
    x.result_lse[1] = -INFINITY; /* stands alone */
    cr_assert(judge("FlashMLA", &x).caught);
    x.lse_stored[1] = -INFINITY; /* stands in the same place */
    cr_assert_not(judge("FlashMLA", &x).caught);
}

Test(rules, right_results_pass_and_nan_never_does)
{
    for (int k = 0; k < fd_rules_count; k++) {
        bench x;
        setup(&x, FD_BF16, 1.0);
        cr_assert_not(fd_rules[k].judge(&x.input).caught, "%s", fd_rules[k].name);
        cr_assert_eq(fd_rules[k].judge(&x.input).margin, 0.0, "%s", fd_rules[k].name);
        x.result[N - 1] = NAN;
        cr_assert(fd_rules[k].judge(&x.input).caught, "%s", fd_rules[k].name);
        cr_assert_eq(fd_rules[k].judge(&x.input).margin, HUGE_VAL, "%s", fd_rules[k].name);
        x.result[N - 1] = 1.0f;
        x.result[0] = INFINITY;
        cr_assert(fd_rules[k].judge(&x.input).caught, "%s", fd_rules[k].name);
    }
}

/* As the originals: PyTorch forgives a NaN that its yardstick has as well; FlashAttention's comparison fails on it. */
Test(rules, nan_in_the_yardstick)
{
    bench x;
    setup(&x, FD_BF16, 1.0);
    x.result[1] = x.o_low[1] = x.o_math[1] = NAN;
    cr_assert_not(judge("PyTorch SDPA", &x).caught);
    cr_assert_not(judge("FlexAttention", &x).caught);
    cr_assert(judge("FlashAttention-2, 3x", &x).caught);
    cr_assert(judge("FlashAttention-3", &x).caught);
    x.result[1] = 1.0f;
    cr_assert(judge("FlashAttention-2, 3x", &x).caught);
}

Test(rules, nan_in_lse_is_seen_only_by_those_that_look)
{
    for (int k = 0; k < fd_rules_count; k++) {
        bench x;
        setup(&x, FD_BF16, 1.0);
        x.result_lse[0] = NAN;
        const bool looks = strcmp(fd_rules[k].name, "FlashMLA") == 0 || strcmp(fd_rules[k].name, "FlexAttention") == 0;
        cr_assert_eq(fd_rules[k].judge(&x.input).caught, looks, "%s", fd_rules[k].name);
    }
}

/* ---- References -------------------------------------------------------------------------------- */

static fd_case a_case(int32_t dtype)
{
    return (fd_case){.name = "rules",
                     .family = "gaussian",
                     .dtype_q = dtype,
                     .dtype_kv = dtype,
                     .dtype_o = dtype,
                     .batch = 2,
                     .heads_q = 4,
                     .heads_kv = 2,
                     .head_dim = 24,
                     .head_dim_v = 24,
                     .kv_lens = {0, 61},
                     .kv_len = 61,
                     .seed = 5};
}

/* Truth within 2^-40 of the oracle; the yardstick off by roundings of its type, at least once and not by many. */
Test(rules, references_are_the_truth_and_a_yardstick_of_the_type)
{
    static const double unit[] = {0x1p-24, 0x1p-11, 0x1p-8};
    for (int32_t dtype = FD_F32; dtype <= FD_BF16; dtype++) {
        char why[200] = "";
        fd_instance x;
        fd_rule_references r;
        fd_oracle_row row;
        const fd_case c = a_case(dtype);
        cr_assert_eq(fd_instance_create(&x, &c, why, sizeof why), FD_OK, "%s", why);
        cr_assert_eq(fd_rule_references_create(&x.problem, &r, why, sizeof why), FD_OK, "%s", why);
        cr_assert_eq(fd_oracle_row_init(&row, x.problem.kv_capacity, 24), FD_OK);
        double largest = 0.0, rounding = -1.0;
        for (int32_t h = 0; h < 4; h++) {
            cr_assert_eq(fd_oracle(&x.problem, 1, 0, h, FD_ORACLE_BITS, &row, why, sizeof why), FD_OK, "%s", why);
            cr_assert_float_eq(r.lse[4 + h], row.lse, 0x1p-40);
            cr_assert_float_eq((double)r.lse_low[4 + h], row.lse, 20.0 * unit[dtype]);
            for (int i = 0; i < 24; i++) {
                const int64_t at = (int64_t)(4 + h) * 24 + i;
                cr_assert_float_eq(r.o[at], row.o[i], 0x1p-40);
                cr_assert_float_eq((double)r.o_stored[at], row.o[i], unit[dtype] * fabs(row.o[i]) + 1e-7);
                largest = fmax(largest, fabs((double)r.o_low[at] - row.o[i]));
                rounding = fmax(rounding, fabs((double)r.o_math[at] - row.o[i]) - unit[dtype] * fabs(row.o[i]));
            }
            cr_assert_eq(r.o[h * 24], 0.0);
            cr_assert_eq(r.lse[h], -INFINITY);
            cr_assert_eq(r.lse_low[h], -INFINITY);
        }
        cr_assert_gt(largest, 0.25 * unit[dtype], "%g", largest);
        cr_assert_lt(largest, 20.0 * unit[dtype], "%g", largest);
        cr_assert_lt(rounding, 20.0 * unit[FD_F32], "math: %g beside the rounding of its output", rounding);
        fd_oracle_row_free(&row);
        fd_rule_references_free(&r);
        fd_instance_free(&x);
    }
}

Test(rules, inputs_are_there_in_every_type)
{
    char why[256] = "", path[512];
    fd_case_table table;
    fd_rule_case cases[64];
    int count = 0, seen[FD_NUM_INPUTS][3] = {{0}};
    cr_assert_eq(fd_cases_read(fd_data_path("cases.csv", path, sizeof path), &table, why, sizeof why), FD_OK, "%s",
                 why);
    cr_assert_eq(fd_rule_cases(&table, cases, 64, &count, why, sizeof why), FD_OK, "%s", why);
    for (int x = 0; x < count; x++) {
        seen[cases[x].inputs][cases[x].c.dtype_o]++;
    }
    cr_assert_eq(seen[FD_INPUTS_GAUSSIAN][FD_F32], 2);
    cr_assert_eq(seen[FD_INPUTS_GAUSSIAN][FD_F16], 1);
    cr_assert_eq(seen[FD_INPUTS_GAUSSIAN][FD_BF16], 2);
    cr_assert_geq(seen[FD_INPUTS_DIRECTED][FD_F32], 8);
    cr_assert_geq(seen[FD_INPUTS_DIRECTED][FD_BF16], 8);
    fd_cases_free(&table);
}
