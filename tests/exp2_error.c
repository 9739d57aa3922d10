/* exp2_error.c: see exp2_error.h. */
#include "exp2_error.h"

#include <math.h>
#include <mpfr.h>

#define REFERENCE_SLACK 0x1p-50 /* assumed relative error of the double exp2 */
#define SUBNORMAL_SLACK 0x1p-27 /* the same at 2^-126, in units of 2^-149 */
#define SAMPLES 4096            /* of the reference, against MPFR */
#define SIGN 0x80000000u

static double exact_error(float x, double y, double unit)
{
    mpfr_t exact, difference;
    mpfr_inits2(256, exact, difference, (mpfr_ptr)NULL);
    mpfr_set_flt(exact, x, MPFR_RNDN);
    mpfr_exp2(exact, exact, MPFR_RNDN);
    mpfr_d_sub(difference, y, exact, MPFR_RNDN);
    mpfr_abs(difference, difference, MPFR_RNDN);
    if (unit > 0.0) {
        mpfr_div_d(difference, difference, unit, MPFR_RNDU);
    } else {
        mpfr_div(difference, difference, exact, MPFR_RNDU);
    }
    const double error = mpfr_get_d(difference, MPFR_RNDU);
    mpfr_clears(exact, difference, (mpfr_ptr)NULL);
    return error;
}

/* One range: the negative floats whose magnitudes have the bits begin .. end - 1. unit 0: relative. */
static void scan(float (*exp2_of)(float), uint32_t begin, uint32_t end, uint32_t stride, int range, double unit,
                 fd_exp2_report *report)
{
    const int64_t count = ((int64_t)end - begin + stride - 1) / stride;
    uint64_t misrounded = 0;
    double worst = 0.0;
    float at = 0.0f;
    bool inside = true;
#pragma omp parallel
    {
        double my_worst = 0.0;
        float my_at = 0.0f;
        uint64_t my_misrounded = 0;
        bool my_inside = true;
#pragma omp for schedule(static)
        for (int64_t k = 0; k < count; k++) {
            const float x = fd_float_from_bits(SIGN | (begin + (uint32_t)k * stride)), y = exp2_of(x);
            const double reference = range == FD_EXP2_TAIL ? 0.0 : exp2((double)x);
            const double error = fabs((double)y - reference) / (unit > 0.0 ? unit : reference);
            my_misrounded += y != (float)reference;
            my_inside = my_inside && y >= 0.0f && y <= 1.0f;
            if (!(error <= my_worst)) {
                my_worst = isnan(error) ? (double)INFINITY : error;
                my_at = x;
            }
        }
#pragma omp critical
        {
            misrounded += my_misrounded;
            inside = inside && my_inside;
            if (my_worst > worst || (my_worst == worst && my_worst > 0.0 && my_at > at)) {
                worst = my_worst;
                at = my_at;
            }
        }
    }
    report->tested[range] = (uint64_t)count;
    report->misrounded[range] = misrounded;
    report->error[range] = worst;
    report->at[range] = at;
    report->at_most_one = report->at_most_one && inside;
}

static void check_reference(float (*exp2_of)(float), fd_exp2_report *r)
{
    r->reference_good = true;
    for (int range = 0; range < FD_EXP2_RANGES; range++) {
        const double unit = range == FD_EXP2_NORMAL ? 0.0 : 0x1p-149;
        const double slack = range == FD_EXP2_NORMAL ? REFERENCE_SLACK : SUBNORMAL_SLACK;
        r->error_exact[range] = r->error[range];
        if (range != FD_EXP2_TAIL && isfinite(r->error[range]) && r->error[range] > 0.0) {
            r->error_exact[range] = exact_error(r->at[range], (double)exp2_of(r->at[range]), unit);
            r->reference_good &= fabs(r->error_exact[range] - r->error[range]) <= slack * (1.0 + r->error[range]);
        }
    }
    for (int k = 0; k < SAMPLES; k++) {
        const float x = -126.0f * (float)k / (float)SAMPLES;
        r->reference_good &= exact_error(x, exp2((double)x), 0.0) <= REFERENCE_SLACK;
    }
}

/* 2^-48 covers the roundings of the measurement itself. */
static double safe(double error, double slack)
{
    return nextafter(error * (1.0 + 0x1p-48) + slack, (double)INFINITY);
}

void fd_exp2_measure(float (*exp2_of)(float), uint32_t stride, fd_exp2_report *r)
{
    *r = (fd_exp2_report){.at_most_one = true};
    const uint32_t subnormal = fd_bits_from_float(126.0f) + 1, tail = fd_bits_from_float(150.0f);
    scan(exp2_of, 0, subnormal, stride, FD_EXP2_NORMAL, 0.0, r);
    scan(exp2_of, subnormal, tail, stride, FD_EXP2_SUBNORMAL, 0x1p-149, r);
    scan(exp2_of, tail, fd_bits_from_float(1024.0f) + 1, stride, FD_EXP2_TAIL, 0x1p-149, r);
    r->zero_exact = exp2_of(0.0f) == 1.0f && exp2_of(-0.0f) == 1.0f;
    r->minus_inf_zero = exp2_of(-INFINITY) == 0.0f;
    check_reference(exp2_of, r);
    r->rel = safe(r->error[FD_EXP2_NORMAL], REFERENCE_SLACK);
    /* Below -150 the exact 2^x is at most half a step: 0 is that far off. */
    const double subnormal_error = fmax(r->error[FD_EXP2_SUBNORMAL], 0.5);
    r->abs = 0x1p-149 * safe(fmax(subnormal_error, r->error[FD_EXP2_TAIL] + 0.5), SUBNORMAL_SLACK);
}
