/* test_exp2_error.c: the measurement of 2^x against the host's exp2f, right and spoilt. */
#include <criterion/criterion.h>
#include <math.h>

#include "exp2_error.h"

#define STRIDE 4099 /* a prime: other floats of every binade */

Test(exp2_error, the_hosts_exp2f_is_good)
{
    fd_exp2_report r;
    fd_exp2_measure(exp2f, STRIDE, &r);
    cr_assert(r.reference_good && r.zero_exact && r.at_most_one && r.minus_inf_zero);
    cr_assert(r.rel >= 0x1p-25 && r.rel <= 0x1p-23, "%g", r.rel);
    cr_assert(r.abs >= 0x1p-150 && r.abs <= 0x1p-148, "%g", r.abs);
    cr_assert(r.error_exact[FD_EXP2_NORMAL] > 0.0 && r.tested[FD_EXP2_NORMAL] > 250000);
}

static float two_ulps_off(float x)
{
    const float y = exp2f(x);
    return x < -3.0f && x >= -3.001f ? y * (1.0f + 0x1p-22f) : y;
}

Test(exp2_error, two_ulps_in_a_narrow_place_are_found)
{
    fd_exp2_report r;
    fd_exp2_measure(two_ulps_off, 7, &r);
    cr_assert(r.rel > 1.4 * 0x1p-23 && r.rel < 2.6 * 0x1p-23, "%g", r.rel);
    cr_assert(r.at[FD_EXP2_NORMAL] < -3.0f && r.at[FD_EXP2_NORMAL] >= -3.001f);
    cr_assert(r.reference_good);
}

static float flushed(float x)
{
    const float y = exp2f(x);
    return y < 0x1p-126f ? 0.0f : y;
}

Test(exp2_error, flushing_is_an_absolute_error_of_almost_2_to_the_minus_126)
{
    fd_exp2_report r;
    fd_exp2_measure(flushed, STRIDE, &r);
    cr_assert(r.abs > 0.99 * 0x1p-126 && r.abs <= 0x1p-126 * (1.0 + 0x1p-20), "%g", r.abs);
    cr_assert(r.rel <= 0x1p-23 && r.reference_good);
}

static float above_one(float x)
{
    return x == -0x1p-30f ? 0x1.000002p0f : exp2f(x);
}

static float not_a_number(float x)
{
    return x < -20.0f && x > -21.0f ? NAN : exp2f(x);
}

Test(exp2_error, broken_promises_are_told)
{
    fd_exp2_report r;
    fd_exp2_measure(above_one, 1u << 16, &r); /* -2^-30 has all-zero fraction bits: it is among those */
    cr_assert(!r.at_most_one);
    fd_exp2_measure(not_a_number, STRIDE, &r);
    cr_assert(isinf(r.rel) && !r.at_most_one);
}
