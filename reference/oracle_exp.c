/* oracle_exp.c: 2^512 e^-x. With u = 2^-53 and k the integer nearest to x 4096 / ln 2, to 2^-29, at most 5 081 982 < 2^23,
 *
 *   e^-x = 2^(-k/4096) e^r      r = k (ln 2 / 4096) - x      |r| <= (1/2 + 2^-29) ln 2 / 4096 < 2^-13.5
 *
 * r. ln 2 / 4096 is kept as three doubles, the first two of 29 bits: their products with k are exact, and two_sum adds
 * them to -x.hi exactly. What these sums leave (twice u 2^-13.5), x.lo (u x) and k step[2] (2^-59 x) are added with three
 * roundings and one in the product: r errs by at most 2.1 u^2 x + 3 u^2 2^-12.5 <= 2^-104 x + 2^-116. Where k = 0, r = -x
 * exactly.
 *
 * e^r - 1 = r + r^2 B,  B = 1/2 + r A,  A = 1/6 + r (1/24 + r (1/120 + r / 720)), but for r^7/5040 (1 + 2^-13) < 2^-106.8.
 * The innermost polynomial, in double, errs by 2 u / 24 < 2^-56.5; times r, with that product's rounding and r.lo, by
 * 2^-68 in A, which is kept in two doubles; by 2^-81 in B; and times r^2 by 2^-108. The double-double operations err by
 * 2^-102 of numbers below 2^-13: 2^-115. So e^r - 1 errs by less than 2^-106.
 *
 * 2^(-k/4096) = 2^-m coarse fine. Two entries, good to 2^-107 each, and their product make 2^-106 + 2^-103; adding e^r - 1
 * times this makes 2^-104 + 2^-115. Altogether, relative: 2^-103 + 2^-104 + 2 2^-106 + 2^-114 + 2^-104 x < 2^-102 + 2^-103 x. */
#include "oracle_exp.h"

#include <mpfr.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 160, SHORT_BITS = 29 };

/* The high part of x with `bits` bits; x keeps the rest. */
static double take(mpfr_t x, mpfr_prec_t bits)
{
    mpfr_t high;
    mpfr_init2(high, bits);
    mpfr_set(high, x, MPFR_RNDN);
    const double taken = mpfr_get_d(high, MPFR_RNDN);
    mpfr_sub(x, x, high, MPFR_RNDN);
    mpfr_clear(high);
    return taken;
}

/* 2^(-i/n) to 2^-107. */
static fd_dd root_of_half(mpfr_t x, int i, int n)
{
    mpfr_set_si(x, -i, MPFR_RNDN);
    mpfr_div_si(x, x, n, MPFR_RNDN);
    mpfr_exp2(x, x, MPFR_RNDN);
    const double hi = take(x, 53);
    return (fd_dd){hi, take(x, 53)};
}

static void fill(fd_exp_table *table)
{
    mpfr_t x;
    mpfr_init2(x, BITS);
    mpfr_const_log2(x, MPFR_RNDN);
    mpfr_div_2ui(x, x, 12, MPFR_RNDN);
    table->step[0] = take(x, SHORT_BITS);
    table->step[1] = take(x, SHORT_BITS);
    table->step[2] = take(x, 53);
    for (int i = 0; i < 64; i++) {
        table->coarse[i] = root_of_half(x, i, 64);
        table->fine[i] = root_of_half(x, i, 4096);
    }
    mpfr_clear(x);
    mpfr_free_cache2(MPFR_FREE_LOCAL_CACHE);
}

const fd_exp_table *fd_exp_make_table(void)
{
    static _Atomic(fd_exp_table *) ready;
    fd_exp_table *table = atomic_load(&ready), *other = NULL;
    if (table == NULL && (table = malloc(sizeof *table)) != NULL) {
        fill(table);
        if (!atomic_compare_exchange_strong(&ready, &other, table)) { /* another thread was first */
            free(table);
            table = other;
        }
    }
    return table;
}

/* 2^e for a normal exponent. */
static double power_of_two(int64_t e)
{
    const uint64_t bits = (uint64_t)(e + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

fd_dd fd_exp_minus(const fd_exp_table *table, fd_dd x)
{
    static const double to_integer = 0x1.8p52; /* added and subtracted: rounds to an integer */
    static const double sixth_lo = 0x1.5555555555555p-57;
    const double k = (x.hi * 0x1.71547652b82fep12 + to_integer) - to_integer; /* 4096 / ln 2 */
    const int64_t steps = (int64_t)k;

    const fd_dd first = fd_two_sum(k * table->step[0], -x.hi), second = fd_two_sum(first.hi, k * table->step[1]);
    const fd_dd r = fd_two_sum(second.hi, ((first.lo + second.lo) - x.lo) + k * table->step[2]);

    const fd_dd a = fd_two_sum(0x1.5555555555555p-3, r.hi * (1.0 / 24 + r.hi * (1.0 / 120 + r.hi * (1.0 / 720))));
    const fd_dd b = fd_dd_above(0.5, fd_dd_times(r, (fd_dd){a.hi, a.lo + sixth_lo}));
    const fd_dd e = fd_dd_add_small(r, fd_dd_times(fd_dd_times(r, r), b));

    const fd_dd root = fd_dd_times(table->coarse[steps >> 6 & 63], table->fine[steps & 63]);
    const fd_dd w = fd_dd_add_small(root, fd_dd_times(root, e));
    const double scale = power_of_two(512 - (steps >> 12));
    return (fd_dd){w.hi * scale, w.lo * scale};
}
