/* bound_check_arith.c: an arithmetic for the model: every rounding that claims allow a free factor, or a true
 * rounding. */
#include <math.h>

#include "bound_check.h"

/* The double x is exact, or its error is too small to move a tie (2 bits + 2 <= 53). */
double fd_check_nearest(int bits, int least, double x)
{
    if (x == 0.0 || !isfinite(x)) {
        return x;
    }
    const int shift = bits - 1 - ilogb(x), kept = least < 0 && shift > -least ? -least : shift;
    return ldexp(nearbyint(ldexp(x, kept)), -kept);
}

static double toward_zero(int bits, double x)
{
    const int shift = x == 0.0 ? 0 : bits - 1 - ilogb(x);
    return ldexp(trunc(ldexp(x, shift)), -shift);
}

static double delta(fd_check_arithmetic *m)
{
    return m->delta[m->used++ % FD_CHECK_DELTAS];
}

double fd_check_rounded(fd_check_arithmetic *m, double x)
{
    return m->bits > 0 ? fd_check_nearest(m->bits, m->least, x) : x * (1.0 + m->u * delta(m));
}

double fd_check_add(fd_check_arithmetic *m, double x, double y) /* a sum with 0 is exact */
{
    return x == 0.0 ? y : y == 0.0 ? x : fd_check_rounded(m, x + y);
}

double fd_check_exp(fd_check_arithmetic *m, double x)
{
    return m->bits > 0 ? fd_check_nearest(m->bits, m->least, exp(x)) : exp(x) * (1.0 + m->exp_rel * delta(m));
}

double fd_check_log(fd_check_arithmetic *m, double x)
{
    return m->bits > 0 ? fd_check_nearest(m->bits, m->least, log(x)) : log(x) * (1.0 + m->u * delta(m));
}

/* x in the 16-bit type whose half of a least subnormal is eta: 2^-25 or 2^-134. */
static double in_16_bits(fd_check_arithmetic *m, double x, double u, double eta)
{
    return m->bits > 0 ? fd_check_nearest(-ilogb(u), ilogb(eta) + 1, x) : x * (1.0 + u * delta(m));
}

int fd_check_weight(fd_check_arithmetic *m, double w, double part[FD_CHECK_PARTS])
{
    const fd_arith *a = m->claims;
    const int parts = a->p_parts > 1 ? a->p_parts : 1;
    const double u = a->dtype_p == FD_F16 ? 0x1p-11 : 0x1p-8;
    double rest = w;
    for (int x = 0; x < parts; x++) {
        part[x] = a->dtype_p == FD_F32 ? rest : in_16_bits(m, rest, u, m->extra.eta_p);
        rest -= part[x];
    }
    return parts;
}

double fd_check_stored(fd_check_arithmetic *m, double x)
{
    return m->extra.u_partial > 0.0 ? in_16_bits(m, x, m->extra.u_partial, m->extra.eta_partial) : x;
}

/* x on a grid of 2^-kept, unless it is one of the largest, which a real format holds whole. */
static double cut(double x, double largest, int kept)
{
    return fabs(x) == largest ? x : ldexp(trunc(ldexp(x, kept)), -kept);
}

/* One after another; the exact sum rounded once; or every addend cut a bit below the last place of the largest, and
 * the sum cut. (2 bits + a few binades of range stay within a double: sums are exact.) */
static double mma_rounded(const fd_check_arithmetic *m, double c, const double *term, int n)
{
    double sum = c, largest = fabs(c);
    for (int i = 0; i < n; i++) {
        sum = m->mma_model == 0 ? fd_check_nearest(m->bits, m->least, sum + term[i]) : sum + term[i];
        largest = fmax(largest, fabs(term[i]));
    }
    if (m->mma_model < 2 || largest == 0.0) {
        return fd_check_nearest(m->bits, m->least, sum);
    }
    const int kept = m->bits + 1 - ilogb(largest);
    sum = cut(c, largest, kept);
    for (int i = 0; i < n; i++) {
        sum += cut(term[i], largest, kept);
    }
    return toward_zero(m->bits, sum);
}

double fd_check_mma(fd_check_arithmetic *m, double c, const double *term, int n)
{
    if (m->bits > 0) {
        return mma_rounded(m, c, term, n);
    }
    double sum = c, size = fabs(c);
    for (int i = 0; i < n; i++) {
        sum += term[i];
        size += fabs(term[i]);
    }
    return sum + m->extra.mma * delta(m) * size;
}
