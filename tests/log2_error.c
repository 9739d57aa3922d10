/* log2_error.c: see log2_error.h. */
#include "log2_error.h"

#include <math.h>
#include <mpfr.h>

#define REFERENCE_SLACK 0x1p-50

static bool is_absolute(int range)
{
    return range == FD_LOG2_NEAR_1;
}

static double exact_error(float x, double y, int range)
{
    mpfr_t exact, difference;
    mpfr_inits2(256, exact, difference, (mpfr_ptr)NULL);
    mpfr_set_flt(exact, x, MPFR_RNDN);
    mpfr_log2(exact, exact, MPFR_RNDN);
    mpfr_d_sub(difference, y, exact, MPFR_RNDN);
    if (!is_absolute(range)) {
        mpfr_div(difference, difference, exact, MPFR_RNDN);
    }
    mpfr_abs(difference, difference, MPFR_RNDN);
    const double error = mpfr_get_d(difference, MPFR_RNDU);
    mpfr_clears(exact, difference, (mpfr_ptr)NULL);
    return error;
}

/* The floats with the bits begin .. end - 1. */
static void scan(float (*log2_of)(float), uint32_t begin, uint32_t end, uint32_t stride, int range, fd_log2_report *r)
{
    const int64_t count = ((int64_t)end - begin + stride - 1) / stride;
    uint64_t misrounded = 0;
    double worst = r->error[range];
    float at = r->at[range];
#pragma omp parallel
    {
        double my_worst = 0.0;
        float my_at = 0.0f;
        uint64_t my_misrounded = 0;
#pragma omp for schedule(static)
        for (int64_t k = 0; k < count; k++) {
            const float x = fd_float_from_bits(begin + (uint32_t)k * stride), y = log2_of(x);
            const double reference = log2((double)x), size = fabs(reference);
            const double error = fabs((double)y - reference) / (is_absolute(range) ? 1.0 : size);
            my_misrounded += y != (float)reference;
            if (!(error <= my_worst)) {
                my_worst = isnan(error) ? (double)INFINITY : error;
                my_at = x;
            }
        }
#pragma omp critical
        {
            misrounded += my_misrounded;
            if (my_worst > worst || (my_worst == worst && my_at > at)) {
                worst = my_worst;
                at = my_at;
            }
        }
    }
    r->tested[range] += (uint64_t)count;
    r->misrounded[range] += misrounded;
    r->error[range] = worst;
    r->at[range] = at;
}

void fd_log2_measure(float (*log2_of)(float), uint32_t stride, fd_log2_report *r)
{
    *r = (fd_log2_report){.reference_good = true};
    const uint32_t half = fd_bits_from_float(0.5f), two = fd_bits_from_float(2.0f) + 1;
    scan(log2_of, half, two, stride, FD_LOG2_NEAR_1, r);
    scan(log2_of, 0x00800000u, half, stride, FD_LOG2_NORMAL, r);
    scan(log2_of, two, 0x7f800000u, stride, FD_LOG2_NORMAL, r);
    scan(log2_of, 1, 0x00800000u, stride, FD_LOG2_SUBNORMAL, r);
    for (int range = 0; range < FD_LOG2_RANGES; range++) {
        r->error_exact[range] = r->error[range];
        if (isfinite(r->error[range]) && r->error[range] > 0.0) {
            r->error_exact[range] = exact_error(r->at[range], (double)log2_of(r->at[range]), range);
            r->reference_good &=
                fabs(r->error_exact[range] - r->error[range]) <= REFERENCE_SLACK * (1.0 + r->error[range]);
        }
    }
}
