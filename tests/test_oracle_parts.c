/* test_oracle_parts.c: what the fast oracle is made of, each against MPFR and its proved error. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <mpfr.h>

#include "oracle_exp.h"
#include "oracle_logits.h"
#include "test_oracle.h"

enum { BITS = 1400 }; /* exact for sums of products of doubles of moderate size */

static double any_double(int low, int high)
{
    const double x =
        ldexp(1.0 + (double)uniform() * 0x1p-23 + 0.5 * (1.0 + (double)uniform()) * 0.999, low + below(high - low + 1));
    return uniform() < 0.0f ? -x : x;
}

/* A normalised double-double of about this size. */
static fd_dd any_dd(int low, int high)
{
    const double hi = any_double(low, high);
    return fd_two_sum(hi, hi * 0x1p-53 * (double)uniform());
}

/* |x - want| / |want|; 0 if both are 0, infinite if only want is. */
static double relative_error(fd_dd x, mpfr_t want)
{
    mpfr_t e;
    mpfr_init2(e, BITS);
    mpfr_sub_d(e, want, x.hi, MPFR_RNDN);
    mpfr_sub_d(e, e, x.lo, MPFR_RNDN);
    const bool same = mpfr_zero_p(e);
    mpfr_div(e, e, want, MPFR_RNDN);
    const double error = same ? 0.0 : mpfr_nan_p(e) ? HUGE_VAL : fabs(mpfr_get_d(e, MPFR_RNDN));
    mpfr_clear(e);
    return error;
}

static void set(mpfr_t x, fd_dd value)
{
    mpfr_set_d(x, value.hi, MPFR_RNDN);
    mpfr_add_d(x, x, value.lo, MPFR_RNDN);
}

Test(oracle_parts, sums_and_products_of_doubles_are_exact)
{
    mpfr_t want;
    mpfr_init2(want, BITS);
    for (int c = 0; c < 20000; c++) {
        const double a = any_double(-60, 60), b = c % 5 == 0 ? -a * (1.0 + 0x1p-50 * below(9)) : any_double(-60, 60);
        mpfr_set_d(want, a, MPFR_RNDN);
        mpfr_add_d(want, want, b, MPFR_RNDN);
        cr_assert_eq(relative_error(fd_two_sum(a, b), want), 0.0, "%a + %a", a, b);
        mpfr_set_d(want, a, MPFR_RNDN);
        mpfr_mul_d(want, want, b, MPFR_RNDN);
        cr_assert_eq(relative_error(fd_two_product(a, b), want), 0.0, "%a * %a", a, b);
    }
    mpfr_clear(want);
}

Test(oracle_parts, double_doubles_keep_their_bounds)
{
    mpfr_t x, y, want;
    mpfr_inits2(BITS, x, y, want, (mpfr_ptr)0);
    for (int c = 0; c < 20000; c++) {
        const fd_dd a = any_dd(-30, 30), b = any_dd(-30, 30), small_one = {a.hi * 0x1p-4 * (double)uniform(), 0.0};
        set(x, a);
        set(y, b);
        mpfr_mul(want, x, y, MPFR_RNDN);
        cr_assert(relative_error(fd_dd_times(a, b), want) <= 0x1p-103, "times");
        mpfr_div(want, x, y, MPFR_RNDN);
        cr_assert(relative_error(fd_dd_over(a, b), want) <= 0x1p-102, "over");
        mpfr_mul_d(want, x, b.hi, MPFR_RNDN);
        cr_assert(relative_error(fd_dd_scale(a, b.hi), want) <= 0x1p-104, "scale");
        set(y, small_one);
        mpfr_add(want, x, y, MPFR_RNDN);
        cr_assert(relative_error(fd_dd_add_small(a, small_one), want) <= 0x1p-104, "add_small");
        const double above = a.hi * (c % 2 == 0 ? 1.7 : -1.7) * (1.0 + (double)fabsf(uniform()));
        mpfr_add_d(want, x, above, MPFR_RNDN);
        cr_assert(relative_error(fd_dd_above(above, a), want) <= 0x1p-104, "above");
    }
    mpfr_clears(x, y, want, (mpfr_ptr)0);
}

/* Random arguments of all sizes, and those at which the reduction is at its worst: half way between two steps. */
Test(oracle_parts, exp_keeps_its_bound)
{
    const fd_exp_table *table = fd_exp_make_table();
    const double ln2 = 0x1.62e42fefa39efp-1;
    mpfr_t want, arg;
    mpfr_inits2(320, want, arg, (mpfr_ptr)0);
    cr_assert_not_null(table, "no memory");
    cr_expect_eq(fd_exp_make_table(), table, "the table is made once");
    const fd_dd one = fd_exp_minus(table, (fd_dd){0.0, 0.0});
    cr_expect(one.hi == 0x1p512 && one.lo == 0.0, "e^0 is %a + %a", one.hi, one.lo);
    double worst = 0.0;
    for (int c = 0; c < 60000; c++) {
        const double size = 0.5 * (1.0 + (double)uniform());
        double hi = c % 3 == 0 ? fabs(any_double(-1000, 8)) : FD_EXP_CUT * size;
        if (c % 3 == 1) {
            hi = (floor(hi * 4096.0 / ln2) + 0.5) * (ln2 / 4096.0);
        }
        hi = fmin(hi, FD_EXP_CUT);
        const fd_dd x = c % 7 == 0 ? (fd_dd){hi, 0.0} : fd_two_sum(hi, hi * 0x1p-53 * (double)uniform());
        set(arg, x);
        mpfr_neg(arg, arg, MPFR_RNDN);
        mpfr_exp(want, arg, MPFR_RNDN);
        mpfr_mul_2ui(want, want, 512, MPFR_RNDN);
        const double error = relative_error(fd_exp_minus(table, x), want), bound = 0x1p-102 + 0x1p-103 * x.hi;
        cr_assert(error <= bound, "e^-%a: %.3g of the bound", x.hi, error / bound);
        worst = fmax(worst, error / bound);
    }
    cr_expect(worst > 0.01, "the bound is nowhere near: %g", worst);
    mpfr_clears(want, arg, (mpfr_ptr)0);
}

/* The constants are doubles beside ln 2 / 4096, and no more than they say. */
Test(oracle_parts, exp_steps_are_short_enough)
{
    const fd_exp_table *table = fd_exp_make_table();
    for (int i = 0; i < 2; i++) {
        const double x = table->step[i] * 0x1p23; /* times any k < 2^23: exact if times 2^23 - 1 is */
        const double most = table->step[i] * 8388607.0;
        cr_expect_eq(x - most, table->step[i], "step %d has more than 29 bits", i);
    }
}

static float wide_float(int c)
{
    const float x = ldexpf(1.0f + 0.5f * (1.0f + uniform()), c % 2 == 0 ? below(277) - 149 : below(24) - 20);
    return fminf(uniform() < 0.0f ? -x : x, FLT_MAX);
}

/* Dot products of any floats: the chunks add up to them exactly, differences are good to 2^-102.9 and 0 where equal. */
Test(oracle_parts, dot_products_are_exact)
{
    mpfr_t s[12], x;
    mpfr_init2(x, BITS);
    for (int j = 0; j < 12; j++) {
        mpfr_init2(s[j], BITS);
    }
    for (int c = 0; c < 400; c++) {
        const int32_t d = 1 + below(c % 10 == 0 ? 600 : 40), padded = fd_padded(d);
        double *q = calloc((size_t)padded, sizeof *q), q_max = 0.0, k_max = 0.0;
        float *k = calloc((size_t)padded * 12, sizeof *k);
        cr_assert(q != NULL && k != NULL);
        for (int32_t i = 0; i < d; i++) {
            q[i] = (double)wide_float(c / 2);
            q_max = fmax(q_max, fabs(q[i]));
            for (int j = 0; j < 12; j++) { /* some keys differ in one element, some in nothing */
                k[j * padded + i] = j == 0 || j % 3 != 0 || (j == 6 && i == d / 2) ? wide_float(c) : k[i];
                k_max = fmax(k_max, fabs((double)k[j * padded + i]));
            }
            if (i % 2 == 1 && c % 5 == 0) { /* cancels, but for the last */
                q[i] = -q[i - 1];
                k[i] = k[i - 1];
            }
        }
        fd_logits logits;
        cr_assert(fd_logits_init(&logits, 12, d, q_max * k_max), "no memory");
        for (int j = 0; j < 12; j++) {
            double a, chunks[FD_LOGIT_LEVELS];
            cr_assert(fd_logits_set(&logits, j, q, k + j * padded, &a), "no memory");
            mpfr_set_zero(s[j], 1);
            for (int32_t i = 0; i < d; i++) {
                mpfr_set_d(x, q[i] * (double)k[j * padded + i], MPFR_RNDN);
                mpfr_add(s[j], s[j], x, MPFR_RNDN);
            }
            fd_logits_get(&logits, j, chunks);
            mpfr_set(x, s[j], MPFR_RNDN);
            for (int l = 0; l < FD_LOGIT_LEVELS; l++) {
                mpfr_sub_d(x, x, chunks[l], MPFR_RNDN);
                cr_assert(fabs(chunks[l]) <= 0x1p51 * logits.grid[l], "chunk %d is %a grids", l,
                          chunks[l] / logits.grid[l]);
            }
            cr_assert(mpfr_zero_p(x), "problem %d, key %d of %d dimensions, %d levels", c, j, d, logits.levels);
        }
        for (int j = 0; j < 12; j++) {
            double chunks[FD_LOGIT_LEVELS];
            fd_logits_get(&logits, j, chunks);
            for (int other = 0; other < 12; other++) {
                mpfr_sub(x, s[j], s[other], MPFR_RNDN);
                const fd_dd got = fd_logits_minus(&logits, chunks, other);
                cr_assert(relative_error(got, x) <= 0x1.13p-103, "problem %d, keys %d and %d: %g", c, j, other,
                          relative_error(got, x));
            }
        }
        fd_logits_free(&logits);
        free(q);
        free(k);
    }
    for (int j = 0; j < 12; j++) {
        mpfr_clear(s[j]);
    }
    mpfr_clear(x);
}
