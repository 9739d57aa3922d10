/* libm_reference.h: exp x and log x of floats to 2^-50 relative, fast enough for all of them, and exactly with MPFR. */
#ifndef FD_LIBM_REFERENCE_H
#define FD_LIBM_REFERENCE_H

#include <math.h>
#include <stdbool.h>

#include "fd.h"

#define FD_EXP_TINY 0x1p-27f
#define FD_EXP_TINY_BITS 0x32000000u

/* exp x for floats: 1 + x is nearer than 2^-52 while |x| <= FD_EXP_TINY, and three quarters of all floats are there. */
static inline double fd_exp_reference(float x)
{
    return fabsf(x) <= FD_EXP_TINY ? 1.0 + (double)x : exp((double)x);
}

/* log x for floats. log(f 2^k) = log f + k log 2 spares most exponents of a fraction the double log: log_f is log f,
 * 1 <= f < 2. It does not do for k = -1, where the sum cancels, and for subnormal x. */
static inline double fd_log_scaled(double log_f, int k)
{
    const double log2_high = 0x1.62e42fefa38p-1, log2_low = 0x1.ef35793c7673p-45; /* k log2_high is exact */
    return k * log2_high + (log_f + k * log2_low);
}

static inline double fd_log_reference(float x)
{
    const uint32_t bits = fd_bits_from_float(x);
    const int exponent = (int)(bits >> 23);
    const bool direct = exponent == 0 || exponent == 126;
    return direct ? log((double)x) : fd_log_scaled(log(1.0 + (bits & 0x7fffffu) * 0x1p-23), exponent - 127);
}

/* |y - exact| / unit with exact = exp x, or log x if is_log; unit 0 stands for |exact|. */
double fd_libm_exact_error(bool is_log, float x, double y, double unit);

#endif /* FD_LIBM_REFERENCE_H */
