/* mma_dot.c: three ways to add 16 products to an accumulator. A product of two fp16 or bf16 numbers is exact in double. */
#include <math.h>
#include <stdbool.h>

#include "mma.h"

enum { MAX_TERMS = 17 };

/* In the order of k, one rounding to nearest after each product: a chain of fmaf. A normal product of two 16-bit numbers,
 * and one with 0, is exact in fp32, where a product and a sum say the same in a tenth of the time. */
static float sequential(float c, const float *a, const float *b, int n)
{
    for (int k = 0; k < n; k++) {
        const float product = a[k] * b[k], size = fabsf(product);
        const bool exact = (size >= 0x1p-126f && size < INFINITY) || a[k] == 0.0f || b[k] == 0.0f;
        c = exact ? c + product : fmaf(a[k], b[k], c);
    }
    return c;
}

/* Adds x to a sum held exactly, as doubles that do not overlap, smallest first (Shewchuk 1997, "Adaptive precision
 * floating-point arithmetic", grow-expansion; zeros dropped). Returns how many there are now. */
static int grow(double *sum, int num, double x)
{
    int kept = 0;
    for (int i = 0; i < num; i++) {
        const double s = x + sum[i], back = s - x, error = (x - (s - back)) + (sum[i] - back);
        if (error != 0.0) {
            sum[kept++] = error;
        }
        x = s;
    }
    sum[kept++] = x;
    return kept;
}

/* The sum as a double rounded to odd: rounding that to float is rounding the exact sum once (Boldo, Melquiond 2008,
 * "Emulation of a FMA and correctly rounded sums"). */
static double rounded_to_odd(const double *sum, int num)
{
    double high = sum[num - 1], low = 0.0;
    for (int i = num - 2; i >= 0 && low == 0.0; i--) {
        const double s = high + sum[i];
        low = sum[i] - (s - high);
        high = s;
    }
    int exponent;
    const double fraction = frexp(high, &exponent) * 0x1p53; /* an integer */
    if (low != 0.0 && fmod(fraction, 2.0) == 0.0) {
        high = nextafter(high, low > 0.0 ? HUGE_VAL : -HUGE_VAL);
    }
    return high;
}

/* The exact sum, rounded once, to nearest. */
static float exact(const double *term, int n)
{
    double sum[MAX_TERMS + 1];
    int num = 0;
    for (int i = 0; i < n; i++) {
        num = grow(sum, num, term[i]);
    }
    return (float)rounded_to_odd(sum, num);
}

/* Fixed point: every term is cut, towards zero, at 25 bits below the leading bit of the largest one, before a product is
 * normalised; the sum is exact, and cut to a float, towards zero. With 23 + 2 bits and 16 products at a time this is what
 * Khattak and Mikaitis (arXiv 2512.07004) found on the H100 for fp16 and bf16; the A100 keeps 23 + 1 and adds 8 at a time,
 * the V100 23 and 4. Fasi, Higham, Mikaitis and Pranesh (PeerJ CS 2021, e330) describe the kind. What the chips do with
 * numbers below 2^-126 is not modelled. */
static float truncated(float c, const float *a, const float *b, const double *term, int n)
{
    int largest = -10000, exponent, other;
    if (c != 0.0f) {
        frexpf(c, &exponent);
        largest = exponent - 1;
    }
    for (int k = 0; k < n; k++) {
        if (term[k + 1] != 0.0) { /* 1 <= |fraction| < 2 each: the product's exponent may be one too small */
            frexpf(a[k], &exponent);
            frexpf(b[k], &other);
            largest = exponent + other - 2 > largest ? exponent + other - 2 : largest;
        }
    }
    double sum = 0.0; /* of integers below 2^27, 17 of them */
    for (int i = 0; i <= n; i++) {
        sum += trunc(ldexp(term[i], 25 - largest));
    }
    const float nearest = (float)sum;
    const bool too_large = fabs((double)nearest) > fabs(sum);
    return ldexpf(too_large ? nextafterf(nearest, 0.0f) : nearest, largest - 25);
}

float emu_mma_dot(int32_t model, float c, const float *a, const float *b, int n)
{
    if (model == FD_EMU_MMA_SEQUENTIAL) {
        return sequential(c, a, b, n);
    }
    double term[MAX_TERMS], plain = (double)c;
    term[0] = plain;
    for (int k = 0; k < n; k++) {
        term[k + 1] = (double)a[k] * (double)b[k];
        plain += term[k + 1];
    }
    if (!isfinite(plain) || plain == 0.0) { /* NaN and infinity; and the sign of a zero */
        bool all_zero = true;
        for (int i = 0; i <= n; i++) {
            all_zero = all_zero && term[i] == 0.0;
        }
        if (!isfinite(plain) || all_zero) {
            return (float)plain;
        }
    }
    return model == FD_EMU_MMA_EXACT ? exact(term, n + 1) : truncated(c, a, b, term, n);
}
