/* The measurement of a float log2: the host's own is good, and planted errors are found where they are. */
#include <criterion/criterion.h>
#include <math.h>

#include "log2_error.h"

#define STRIDE 4099

static float near_1(float x) /* off by 2^-20 in [1/2, 2] */
{
    return log2f(x) + (x >= 0.5f && x <= 2.0f ? 0x1p-20f : 0.0f);
}

static float flushed(float x)
{
    return x < 0x1p-126f ? -INFINITY : log2f(x);
}

Test(log2_error, the_hosts_own_is_good_to_an_ulp)
{
    fd_log2_report r;
    fd_log2_measure(log2f, STRIDE, &r);
    cr_expect(r.reference_good);
    cr_expect_lt(r.error[FD_LOG2_NEAR_1], 0x1p-23);
    cr_expect_lt(r.error[FD_LOG2_NORMAL], 0x1p-23);
    cr_expect_lt(r.error[FD_LOG2_SUBNORMAL], 0x1p-23);
    for (int k = 0; k < FD_LOG2_RANGES; k++) {
        cr_expect_gt(r.tested[k], 1000);
    }
}

Test(log2_error, a_planted_error_is_found_in_its_range)
{
    fd_log2_report r;
    fd_log2_measure(near_1, STRIDE, &r);
    cr_expect_gt(r.error[FD_LOG2_NEAR_1], 0x1.ep-21);
    cr_expect_gt(r.misrounded[FD_LOG2_NEAR_1], r.tested[FD_LOG2_NEAR_1] / 2);
    cr_expect_lt(r.error[FD_LOG2_NORMAL], 0x1p-23);
    fd_log2_measure(flushed, STRIDE, &r);
    cr_expect_eq(r.error[FD_LOG2_SUBNORMAL], (double)INFINITY);
    cr_expect_eq(r.misrounded[FD_LOG2_SUBNORMAL], r.tested[FD_LOG2_SUBNORMAL]);
    cr_expect_lt(r.error[FD_LOG2_NORMAL], 0x1p-23);
}
