/* oracle_dd.h: arithmetic of unevaluated sums hi + lo of two doubles, for the fast oracle. Round to nearest, no
 * contraction into fma, no x87 registers (oracle_fast.c asks FLT_EVAL_METHOD). In every result |lo| <= 2^-53 |hi|, and x y
 * below means the exact value. u = 2^-53; an addition or subtraction that is subnormal is exact, and the callers keep
 * products within 2^-960 .. 2^960, or do not mind 2^-1074.
 *
 * Source of two_sum, two_product and their like: Knuth, Dekker and Veltkamp, as told by Muller et al., Handbook of
 * Floating-Point Arithmetic, chapter 4. The bounds are counted again beside each function. */
#ifndef FD_ORACLE_DD_H
#define FD_ORACLE_DD_H

#include <math.h>

typedef struct fd_dd {
    double hi, lo;
} fd_dd;

/* a + b, exactly. */
static inline fd_dd fd_two_sum(double a, double b)
{
    const double sum = a + b, c = sum - a;
    return (fd_dd){sum, (a - (sum - c)) + (b - c)};
}

/* a b, exactly: halves of 26 bits, whose products fit 53. |a|, |b| < 2^960. */
static inline fd_dd fd_two_product(double a, double b)
{
    const double c = 0x8000001p0 * a, a_hi = c - (c - a), a_lo = a - a_hi;
    const double d = 0x8000001p0 * b, b_hi = d - (d - b), b_lo = b - b_hi;
    const double product = a * b;
    return (fd_dd){product, ((a_hi * b_hi - product) + a_hi * b_lo + a_lo * b_hi) + a_lo * b_lo};
}

/* a + x where |x| <= 0.6 |a|, or a = 0. The exact low parts e and x.lo are at most u |a + x| and 1.5 u |a + x|; adding
 * them rounds once: relative error 2.5 u^2 < 2^-104. */
static inline fd_dd fd_dd_above(double a, fd_dd x)
{
    const fd_dd sum = fd_two_sum(a, x.hi);
    return fd_two_sum(sum.hi, sum.lo + x.lo);
}

/* x + y where |y| <= |x| / 16. Beside the exact sum of the high parts, low parts of at most (1 + 1 + 1/16) u |x| are
 * added with two roundings: relative error 4 u^2 = 2^-104. */
static inline fd_dd fd_dd_add_small(fd_dd x, fd_dd y)
{
    const fd_dd sum = fd_two_sum(x.hi, y.hi);
    return fd_two_sum(sum.hi, sum.lo + (x.lo + y.lo));
}

/* x y. x.lo y rounds by u^2 |x y|, its sum with the product's own low part, at most 2 u |x y|, by 2 u^2: 2^-104. */
static inline fd_dd fd_dd_scale(fd_dd x, double y)
{
    const fd_dd product = fd_two_product(x.hi, y);
    return fd_two_sum(product.hi, product.lo + x.lo * y);
}

/* x y. Left out: u^2. Rounded: two products u^2 each, their sum 2 u^2, the last sum 3 u^2. Together 8 u^2 = 2^-103. */
static inline fd_dd fd_dd_times(fd_dd x, fd_dd y)
{
    const fd_dd product = fd_two_product(x.hi, y.hi);
    return fd_two_sum(product.hi, product.lo + (x.hi * y.lo + x.lo * y.hi));
}

/* x / y. The remainder x.hi - q y.hi is a double (at most u |x|) and is computed exactly; x.lo - q y.lo, at most 2 u |x|,
 * takes 3 u^2, adding the two 3 u^2, dividing 3 u^2 and by y.hi instead of y 3 u^2. Together 12 u^2 < 2^-102. */
static inline fd_dd fd_dd_over(fd_dd x, fd_dd y)
{
    const double q = x.hi / y.hi;
    const fd_dd product = fd_two_product(q, y.hi);
    const double rest = ((x.hi - product.hi) - product.lo) + (x.lo - q * y.lo);
    return fd_two_sum(q, rest / y.hi);
}

#endif /* FD_ORACLE_DD_H */
