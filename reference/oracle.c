/* oracle.c: attention with MPFR, to be held against the formula of fd.h. For one row, n = kv_len:
 *
 *   s_j = sm_scale sum_i q_i k_ji     gap_j = max s - s_j                  no rounding at all
 *   w_j = exp(-gap_j)    l = sum_j w_j    lse = max s + ln l               p_j = w_j / l
 *   up_i = sum_j w_j v_ji over v_ji > 0    down_i = sum_j w_j |v_ji| over v_ji < 0
 *   o_i = (up_i - down_i) / l    gauge_i = (up_i + down_i) / l             only sums of positive numbers are rounded
 *
 * Radius. Let eps = 2^-bits; every MPFR operation is correctly rounded: a relative error of at most eps. w_j carries 1
 * error, l carries n, up_i and down_i n + 1 (exp, product, n - 1 additions), and none can cancel. The difference adds
 * 1, the quotient 1, and the divisor turns its n around. So x = o_i, before it becomes two doubles, has
 *
 *   |x - o_i| <= ((1 + eps)^(n+3) (1 - eps)^-n - 1) gauge_i <= (2n + 4) eps gauge_i
 *
 * (n < 2^31 and eps <= 2^-128: the second order is below eps). Two doubles keep x to 2^-106 |x|, and |o_i| <= gauge_i.
 * Hence ((2n + 8) eps + 2^-105) gauge_i; its slack, 4 eps + 2^-106, is more than 2^-50 of it and pays for rounding the
 * gauge and the radius themselves. In ln l the n eps of l are absolute, and ln adds eps ln l <= n eps.
 *
 * Range. Products of floats, logits, gaps and a lie within 2^-447 .. 2^416: as doubles they neither underflow nor
 * overflow, so nothing below is infinite or NaN. A weight below 2^-(2^30), the end of MPFR's default exponent range,
 * becomes 0 or that end; this, and doubles that underflow, change any result by less than the 2^-1000 in the radius. */
#include "oracle.h"

#include <float.h>
#include <math.h>
#include <mpfr.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "row.h"

/* fd_supports refuses, by name, what this description of the oracle does not list. */
static const fd_caps caps = {
    .size = sizeof(fd_caps),
    .features = FD_LSE | FD_RAGGED | FD_HEAD_DIM_V | FD_STRIDED_DIM | FD_MULTI_QUERY | FD_WINDOW,
    .dtypes_q = 1u << FD_F32 | 1u << FD_F16 | 1u << FD_BF16,
    .dtypes_kv = 1u << FD_F32 | 1u << FD_F16 | 1u << FD_BF16,
    .dtypes_o = UINT32_MAX, /* o is not touched */
    .spaces = 1u << FD_HOST,
};
static const fd_rung description = {
    .size = sizeof(fd_rung), .abi = FD_ABI, .name = "the oracle", .caps = &caps, .supports = fd_readable_supports};

/* One row's work: which row, and the numbers on the way. */
typedef struct job {
    const fd_problem *p;
    int32_t b, t, h, h_kv;
    fd_oracle_row *row;
    char *why;
    size_t why_bytes;
    double *q, *k, *v;     /* [head_dim], [head_dim], [head_dim_v] */
    mpfr_t *s, *gap, *lse; /* exact: [kv_len] logits, and one each */
    mpfr_t *w, *up, *down; /* in `bits` bits: [kv_len] weights, [head_dim_v], [head_dim_v] */
    mpfr_t *l, *x;         /* in `bits` bits: sum of the weights, anything */
    mpfr_t *term;          /* [head_dim] products q_i k_ji */
    mpfr_ptr *terms;       /* [head_dim] their addresses, as mpfr_sum wants them */
    int64_t top;           /* key with the largest logit */
} job;

/* n zeros of `bits` bits in one block, for free(). MPFR's own allocation would end the program where this is NULL. */
static mpfr_t *new_numbers(int64_t n, mpfr_prec_t bits)
{
    const size_t bytes = mpfr_custom_get_size(bits), each = sizeof(mpfr_t) + bytes;
    mpfr_t *x = (uint64_t)n < SIZE_MAX / each ? malloc((size_t)n * each) : NULL;
    for (int64_t j = 0; x != NULL && j < n; j++) {
        mpfr_custom_init_set(x[j], MPFR_ZERO_KIND, 0, bits, (char *)(x + n) + (size_t)j * bytes);
    }
    return x;
}

static bool allocate(job *m, int bits)
{
    const int64_t kv_len = m->row->kv_len, d = m->p->head_dim, d_v = m->p->head_dim_v;
    m->s = new_numbers(kv_len + 2, FD_ORACLE_EXACT_BITS);
    m->w = new_numbers(kv_len + 2 * d_v + 2, bits);
    m->term = new_numbers(d, DBL_MANT_DIG);
    m->terms = malloc((size_t)d * sizeof *m->terms);
    m->q = malloc((size_t)(2 * d + d_v) * sizeof *m->q);
    if (m->s == NULL || m->w == NULL || m->term == NULL || m->terms == NULL || m->q == NULL) {
        return false;
    }
    m->gap = m->s + kv_len;
    m->lse = m->gap + 1;
    m->up = m->w + kv_len;
    m->down = m->up + d_v;
    m->l = m->down + d_v;
    m->x = m->l + 1;
    m->k = m->q + d;
    m->v = m->k + d;
    for (int64_t i = 0; i < d; i++) {
        m->terms[i] = m->term[i];
    }
    return true;
}

/* Row y of q (y is t), k or v (y is j) as doubles; false, with a line in why, if an element is not finite. */
static bool load(job *m, char name, int64_t y)
{
    const fd_problem *p = m->p;
    const fd_tensor *x = name == 'q' ? &p->q : name == 'k' ? &p->k : &p->v;
    const int32_t h = name == 'q' ? m->h : m->h_kv, n = name == 'v' ? p->head_dim_v : p->head_dim;
    const int64_t at = name == 'q' ? fd_row_at(x, m->b, m->t, h) : fd_kv_at(p, x, m->b, y, h);
    double *row = name == 'q' ? m->q : name == 'k' ? m->k : m->v;

    for (int32_t i = 0; i < n; i++) {
        row[i] = (double)fd_load(x, at + i * x->stride[3]);
        if (!isfinite(row[i])) {
            fd_oracle_refuse(name, m->b, y, h, i, row[i], m->why, m->why_bytes);
            return false;
        }
    }
    return true;
}

/* x to 106 bits, high + low; x - high is exact in the bits of `rest`, which has no fewer than x. */
static void split(double *high, double *low, mpfr_t x, mpfr_t rest)
{
    *high = mpfr_get_d(x, MPFR_RNDN);
    mpfr_sub_d(rest, x, *high, MPFR_RNDN);
    *low = mpfr_get_d(rest, MPFR_RNDN);
}

/* s_j and a_j, from q and k as loaded. Returns 0 if s_j is exact. A product of two floats has 24 + 24 bits and is exact
 * in double; mpfr_sum rounds the exact sum once, to FD_ORACLE_EXACT_BITS, and its return value says whether it had to.
 * a_j is summed in double: at most head_dim + 1 roundings of 2^-53 each, which the last factor outweighs. */
static int logit(job *m, int64_t j)
{
    const int32_t d = m->p->head_dim;
    const double sm_scale = (double)m->p->sm_scale;
    double a = 0.0;
    for (int32_t i = 0; i < d; i++) {
        const double product = m->q[i] * m->k[i];
        mpfr_set_d(m->term[i], product, MPFR_RNDN);
        a += fabs(product);
    }
    m->row->a[j] = a * fabs(sm_scale) * (1.0 + (d + 8.0) * DBL_EPSILON);
    const int sum_inexact = mpfr_sum(m->s[j], m->terms, (unsigned long)d, MPFR_RNDN);
    const int scale_inexact = mpfr_mul_d(m->s[j], m->s[j], sm_scale, MPFR_RNDN);
    return sum_inexact | scale_inexact;
}

/* The formula: o, gauge, lse and their radii. */
static fd_status attend(job *m)
{
    fd_oracle_row *row = m->row;
    mpfr_ptr l = *m->l, x = *m->x, gap = *m->gap, lse = *m->lse;
    int inexact = 0;

    if (!load(m, 'q', m->t)) {
        return FD_INVALID;
    }
    for (int64_t j = 0; j < row->kv_len; j++) {
        if (!load(m, 'k', j)) {
            return FD_INVALID;
        }
        inexact |= logit(m, j);
        m->top = mpfr_greater_p(m->s[j], m->s[m->top]) ? j : m->top;
        row->a_max = fmax(row->a_max, row->a[j]);
    }
    for (int64_t j = 0; j < row->kv_len; j++) {
        if (!load(m, 'v', j)) {
            return FD_INVALID;
        }
        /* Before any rounding: logits of 2^100 may differ by 1. */
        inexact |= mpfr_sub(gap, m->s[m->top], m->s[j], MPFR_RNDN);
        row->gap[j] = mpfr_get_d(gap, MPFR_RNDN);
        row->gap_max = fmax(row->gap_max, row->gap[j]);
        mpfr_neg(gap, gap, MPFR_RNDN);
        mpfr_exp(m->w[j], gap, MPFR_RNDN);
        mpfr_add(l, l, m->w[j], MPFR_RNDN);
        for (int32_t i = 0; i < m->p->head_dim_v; i++) {
            mpfr_ptr sum = m->v[i] > 0.0 ? m->up[i] : m->down[i];
            mpfr_set_d(x, fabs(m->v[i]), MPFR_RNDN);
            mpfr_mul(x, m->w[j], x, MPFR_RNDN);
            mpfr_add(sum, sum, x, MPFR_RNDN);
        }
    }
    if (inexact != 0) { /* impossible, says oracle.h; but no answer may rest on that */
        snprintf(m->why, m->why_bytes, "a logit of row [%d, %d, %d] does not fit %d bits", m->b, m->t, m->h,
                 (int)FD_ORACLE_EXACT_BITS);
        return FD_UNSUPPORTED;
    }

    const double rounding = ldexp(2.0 * (double)row->kv_len + 8.0, -(int)mpfr_get_prec(x));
    for (int32_t i = 0; i < m->p->head_dim_v; i++) {
        mpfr_add(x, m->up[i], m->down[i], MPFR_RNDN);
        mpfr_div(x, x, l, MPFR_RNDN);
        row->gauge[i] = mpfr_get_d(x, MPFR_RNDN);
        row->radius[i] = (rounding + 0x1p-105) * row->gauge[i] + 0x1p-1000;
        mpfr_sub(x, m->up[i], m->down[i], MPFR_RNDN);
        mpfr_div(x, x, l, MPFR_RNDN);
        split(&row->o[i], &row->o_lo[i], x, gap);
    }
    mpfr_log(x, l, MPFR_RNDN);
    mpfr_add(lse, m->s[m->top], x, MPFR_RNDN); /* the two may cancel: in all the bits of a logit */
    split(&row->lse, &row->lse_lo, lse, gap);
    row->lse_radius = rounding + 0x1p-105 * fabs(row->lse);
    row->s_max = mpfr_get_d(m->s[m->top], MPFR_RNDN);
    return FD_OK;
}

/* p, and the moments in double, from the w and l of attend. p_up is p rounded up. v - (o + o_lo) is good to 2
 * roundings: where v and o cancel, v - o is exact (Sterbenz), elsewhere o_lo is less than 2^-51 of it. The radius
 * makes up for the distance from there to the exact o. A term has at most 8 roundings and its sum n - 1, which the last
 * factor outweighs; 2^-900 exceeds all that underflows on the way. */
static void moments(job *m)
{
    fd_oracle_row *row = m->row;
    const double inflate = 1.0 + ((double)row->kv_len + 16.0) * DBL_EPSILON;
    for (int64_t j = 0; j < row->kv_len; j++) {
        mpfr_div(*m->x, m->w[j], *m->l, MPFR_RNDN);
        row->p[j] = mpfr_get_d(*m->x, MPFR_RNDN);
        const double p_up = mpfr_get_d(*m->x, MPFR_RNDU), p_a = p_up * row->a[j], p_gap = p_up * row->gap[j];
        load(m, 'v', j);
        for (int32_t i = 0; i < m->p->head_dim_v; i++) {
            const double distance = fabs(m->v[i] - row->o[i] - row->o_lo[i]) + row->radius[i];
            row->spread[i] += p_up * distance;
            row->spread_a[i] += p_a * distance;
            row->spread_gap[i] += p_gap * distance;
            row->v_max[i] = fmax(row->v_max[i], fabs(m->v[i]));
        }
    }
    for (int32_t i = 0; i < m->p->head_dim_v; i++) {
        row->spread[i] = row->spread[i] * inflate + 0x1p-900;
        row->spread_a[i] = row->spread_a[i] * inflate + 0x1p-900;
        row->spread_gap[i] = row->spread_gap[i] * inflate + 0x1p-900;
    }
}

fd_status fd_oracle_refuse(char name, int32_t b, int64_t y, int32_t h, int32_t i, double value, char *why, size_t n)
{
    snprintf(why, n, "%c[%d, %lld, %d, %d] is %g: the oracle takes finite visible inputs only", name, b, (long long)y,
             h, i, value);
    return FD_INVALID;
}

fd_status fd_oracle_begin(const fd_problem *p, int32_t b, int32_t t, int32_t h, int bits, fd_oracle_row *row, char *why,
                          size_t n)
{
    const fd_status status = fd_supports(&description, p, why, n);
    if (status != FD_OK) {
        return status;
    }
    if (b < 0 || b >= p->batch || t < 0 || t >= p->q_len || h < 0 || h >= p->heads_q) {
        snprintf(why, n, "row [%d, %d, %d] is outside the problem's [%d, %d, %d]", b, t, h, p->batch, p->q_len,
                 p->heads_q);
        return FD_INVALID;
    }
    if (bits < FD_ORACLE_BITS || bits > FD_ORACLE_EXACT_BITS) {
        snprintf(why, n, "bits is %d, expected %d to %d", bits, (int)FD_ORACLE_BITS, (int)FD_ORACLE_EXACT_BITS);
        return FD_INVALID;
    }
    if (row->kv_capacity < fd_kv_len(p, b) || row->head_dim_v != p->head_dim_v) {
        snprintf(why, n, "the row holds %lld keys and head_dim_v %d, the problem needs %lld and %d",
                 (long long)row->kv_capacity, row->head_dim_v, (long long)fd_kv_len(p, b), p->head_dim_v);
        return FD_INVALID;
    }
    row->kv_len = fd_visible_end(p, b, t);
    row->a_max = row->gap_max = 0.0;
    row->lse = row->s_max = -HUGE_VAL; /* an empty row's answer: these, and zeros */
    row->lse_lo = row->lse_radius = 0.0;
    memset(row->o, 0, 8 * (size_t)row->head_dim_v * sizeof *row->o); /* o .. v_max, laid out one after another */
    return FD_OK;
}

fd_status fd_oracle_row_init(fd_oracle_row *row, int64_t kv_capacity, int32_t head_dim_v)
{
    *row = (fd_oracle_row){.head_dim_v = head_dim_v, .kv_capacity = kv_capacity};
    if (kv_capacity < 0 || head_dim_v < 1 || kv_capacity > INT64_MAX / 64 - head_dim_v) {
        return FD_NO_MEMORY;
    }
    const size_t keys = (size_t)kv_capacity, values = (size_t)head_dim_v;
    double *at = malloc((3 * keys + 8 * values) * sizeof *at);
    if (at == NULL) {
        return FD_NO_MEMORY;
    }
    row->storage = at;
    double **const per_key[] = {&row->gap, &row->a, &row->p};
    double **const per_value[] = {&row->o,      &row->o_lo,     &row->radius,     &row->gauge,
                                  &row->spread, &row->spread_a, &row->spread_gap, &row->v_max};
    for (size_t i = 0; i < sizeof per_key / sizeof *per_key; i++, at += keys) {
        *per_key[i] = at;
    }
    for (size_t i = 0; i < sizeof per_value / sizeof *per_value; i++, at += values) {
        *per_value[i] = at;
    }
    return FD_OK;
}

void fd_oracle_row_free(fd_oracle_row *row)
{
    free(row->storage);
    *row = (fd_oracle_row){0};
}

fd_status fd_oracle(const fd_problem *problem, int32_t b, int32_t t, int32_t h, int bits, fd_oracle_row *row, char *why,
                    size_t n)
{
    job m = {.p = problem, .b = b, .t = t, .h = h, .row = row, .why = why, .why_bytes = why != NULL ? n : 0};
    fd_status status = fd_oracle_begin(problem, b, t, h, bits, row, why, m.why_bytes);
    if (status != FD_OK || row->kv_len == 0) {
        return status;
    }
    m.h_kv = h / fd_group(problem);
    if (!allocate(&m, bits)) {
        snprintf(why, m.why_bytes, "no memory for the exact logits of %lld keys", (long long)row->kv_len);
        status = FD_NO_MEMORY;
    } else if ((status = attend(&m)) == FD_OK) {
        moments(&m);
    }
    free(m.s);
    free(m.w);
    free(m.term);
    free(m.terms);
    free(m.q);
    mpfr_free_cache2(MPFR_FREE_LOCAL_CACHE); /* ln 2 and its like, kept per thread and cheap to compute again */
    return status;
}
