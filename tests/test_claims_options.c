/* test_claims_options.c: hypotheses on the command line become the claims that they say, or are refused by name. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bound.h"
#include "claims_options.h"

typedef struct said {
    const char *name, *value;
} said;

static fd_arith claims_of(const said *options, int count)
{
    fd_arith a = fd_claims_none();
    char why[160];
    for (int i = 0; i < count; i++) {
        cr_assert_eq(fd_claims_option(options[i].name, options[i].value, &a, why, sizeof why), FD_OK, "%s", why);
    }
    return a;
}

static void expect_text(const said *options, int count, const char *text)
{
    char got[200], why[160];
    const fd_arith a = claims_of(options, count);
    fd_claims_text(&a, got, sizeof got);
    cr_expect_str_eq(got, text);
    cr_expect_eq(fd_claims_options_check(&a, why, sizeof why), FD_OK, "%s", why);
    cr_expect(fd_claims_make_sense(&a) && fd_claims_join(&a, 100000), "%s", text);
}

Test(claims_options, say_what_the_verdict_prints)
{
    expect_text(NULL, 0, "sums in fp32, shift maximum; order unknown: any merge tree");
    expect_text(
        (const said[]){{"accumulate", "bf16-p"}}, 1,
        "sums on tensor cores, 16 keys as 16 additions, shift maximum; weights bf16, not in l, partials fp32; order "
        "unknown: any merge tree");
    expect_text(
        (const said[]){{"accumulate", "tensor-core"}, {"mma-keys", "8"}, {"mma-error", "1.2e-6"}}, 3,
        "sums on tensor cores, 8 keys within 1.2e-06 of |addends|, shift maximum; order unknown: any merge tree");
    expect_text((const said[]){{"accumulate", "fp16"}, {"order", "sequential"}}, 2,
                "sums in fp16, shift maximum; keys added in sequence");
    expect_text(
        (const said[]){{"weights", "fp16x2"}, {"partials", "bf16"}, {"order", "split:512,online,lse,tree"}}, 3,
        "sums in fp32, shift maximum; weights 2 x fp16, not in l, partials bf16; keys with a running maximum in "
        "sequence; parts (o, lse) merged in a tree");
    expect_text(
        (const said[]){{"weights", "bf16"}, {"l", "rounded"}, {"order", "split:512,rescale"}}, 3,
        "sums in fp32, shift maximum; weights bf16 in l, too, partials fp32; keys added in sequence; parts rescaled "
        "once in sequence");
    expect_text(
        (const said[]){{"order", "online"}, {"exp-ulp", "2"}}, 2,
        "sums in fp32, shift maximum; exp within 2.38e-07 + 2.8e-45, log 2.38e-07, as it says; keys with a running "
        "maximum in sequence");
}

Test(claims_options, shorthands_and_later_options_win)
{
    const fd_arith a = claims_of((const said[]){{"weights", "bf16x2"}, {"accumulate", "fp16-p"}}, 2);
    cr_expect(a.accumulator == FD_ACC_TENSOR_CORE && a.dtype_p == FD_F16 && a.p_parts == 0);
    const fd_arith b = claims_of((const said[]){{"accumulate", "fp16-p"}, {"accumulate", "fp32"}}, 2);
    cr_expect(b.accumulator == FD_ACC_F32 && b.dtype_p == FD_F16, "the type of the weights stays");
    const fd_arith c = claims_of((const said[]){{"order", "split:64"}, {"order", "any"}}, 2);
    cr_expect_eq(c.num_levels, 0);
}

/* An ulp of a float is at most 2^-23 of it; the bound is told no less. */
Test(claims_options, ulps_of_exp_and_log)
{
    const said both[] = {{"exp-ulp", "2"}, {"log-ulp", "1.5"}}, turned[] = {{"log-ulp", "1.5"}, {"exp-ulp", "2"}};
    for (int i = 0; i < 2; i++) {
        const fd_arith a = claims_of(i == 0 ? both : turned, 2);
        cr_expect_eq(a.math, FD_MATH_CLAIMED);
        cr_expect((double)a.exp_rel >= 0x1p-22 && (double)a.exp_rel < 0x1.001p-22);
        cr_expect((double)a.exp_abs >= 0x1p-148);
        cr_expect((double)a.log_rel >= 1.5 * 0x1p-23 && (double)a.log_rel < 1.501 * 0x1p-23);
    }
    const said log_only = {"log-ulp", "4"};
    const fd_arith a = claims_of(&log_only, 1);
    cr_expect((double)a.exp_rel >= 0x1p-21 && (double)a.log_rel >= 0x1p-21, "one of them speaks for both");
}

/* split:512 on 1300 keys: 512 in sequence, 3 parts; on 100 keys one part, as a rung of this project would claim. */
Test(claims_options, an_order_fits_any_length)
{
    const said split = {"order", "split:512"};
    const fd_arith a = claims_of(&split, 1);
    const fd_counts few = fd_bound_counts(&a, 100), many = fd_bound_counts(&a, 1300);
    cr_expect(few.known && few.additions == 99 && few.parts == 1, "%lld", (long long)few.additions);
    cr_expect(many.known && many.additions == 511 + 2 && many.parts == 3, "%lld", (long long)many.additions);
    const said tree = {"order", "split:512,tree"};
    const fd_arith b = claims_of(&tree, 1);
    const fd_counts paired = fd_bound_counts(&b, 1300);
    cr_expect(paired.known && paired.additions == 511 + 2 && paired.normalised == 2);
}

Test(claims_options, what_is_none_is_refused_by_name)
{
    const said bad[] = {{"accumulate", "bf16"},    {"accumulate", ""},          {"weights", "fp8"},
                        {"weights", "fp32x2"},     {"weights", "x2"},           {"l", "yes"},
                        {"partials", "fp64"},      {"mma-keys", "0"},           {"mma-keys", "16k"},
                        {"mma-error", "0"},        {"mma-error", "1"},          {"mma-error", "nan"},
                        {"mma-error", "1e-6x"},    {"exp-ulp", "-1"},           {"exp-ulp", "inf"},
                        {"log-ulp", ""},           {"order", "split"},          {"order", "split:0"},
                        {"order", "split:4,pair"}, {"order", "sequential,lse"}, {"order", "split:99999999999"},
                        {"order", "split:64,"},    {"order", "split:64,,tree"}, {"order", "split: 64"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fd_arith a = fd_claims_none();
        char why[200] = "";
        cr_expect_eq(fd_claims_option(bad[i].name, bad[i].value, &a, why, sizeof why), FD_INVALID, "--%s %s",
                     bad[i].name, bad[i].value);
        cr_expect(strstr(why, bad[i].name) != NULL && strchr(why, '\n') == NULL, "%s", why);
    }
    fd_arith a = fd_claims_none();
    char why[100];
    cr_expect_eq(fd_claims_option("acumulate", "fp32", &a, why, sizeof why), FD_UNSUPPORTED);
}

Test(claims_options, what_does_not_go_together_is_refused)
{
    const said alone[][2] = {{{"mma-keys", "8"}, {"accumulate", "fp32"}},
                             {{"mma-error", "1e-6"}, {"accumulate", "fp16"}},
                             {{"l", "rounded"}, {"weights", "fp32"}},
                             {{"l", "rounded"}, {"weights", "bf16x2"}},
                             {{"partials", "bf16"}, {"order", "sequential"}}};
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++) {
        const fd_arith a = claims_of(alone[i], 2);
        char why[160];
        cr_expect_eq(fd_claims_options_check(&a, why, sizeof why), FD_INVALID, "%zu", i);
        cr_expect(strstr(why, alone[i][0].name) != NULL, "%s", why);
    }
}

Test(claims_options, none_takes_just_anything)
{
    for (int i = 0; fd_claims_option_names[i] != NULL; i++) {
        fd_arith a = fd_claims_none();
        char why[160];
        cr_expect_eq(fd_claims_option(fd_claims_option_names[i], "?", &a, why, sizeof why), FD_INVALID, "%s",
                     fd_claims_option_names[i]);
    }
}
