/* oracle_fast.c: the oracle's row from doubles. What oracle.c does in 128 bits and more is done here without rounding
 * where that decides, and in two or three doubles elsewhere. The argument, in the order of the code; u = 2^-53, n = kv_len,
 * proofs/oracle.md tells it at length:
 *
 * 1. q . k_j and its difference from the largest are exact (oracle_logits.c); |sm_scale| times that, which is gap_j, has a
 *    relative error of at most 2^-102, whatever the size of the logits.
 * 2. w_j = 2^512 exp(-gap_j) by oracle_exp.c, to 2^-102 + 2^-103 gap_j; with the error of gap_j
 *
 *        eta = 2^-102 + 2^-101 min(gap_max, 860)   relative.
 *
 *    Beyond 860 a weight is taken for 0: n weights of 2^-1240, times 2^128, are below the least double. The factor 2^512
 *    keeps every product with a float, and its low parts, from underflow, or makes them matter less than 2^-1000.
 * 3. w = w1 + w2 + w3, of 29, 29 and 53 bits, to 2^-108: w1 v and w2 v are exact, at most 1 and 2^-28 of w |v|; w3 v, at
 *    most 2^-55 of it, rounds.
 *    A sum is three doubles s, c, t. Adding w1 v to s, and w2 v and what that left to c, by two_sum, loses nothing; what
 *    two_sum leaves of c, and w3 v, goes to t, which rounds. With S = sum w |v| and nu = n u,
 *
 *        |c| <= 1.01 (2^-28 + nu) S    |t| <= 1.01 (2 nu |c| + 2^-55 S)    error <= nu |t| + 4 u nu |c| + 2^-106 S
 *        delta = nu (7 nu (2^-28 + nu) + 2^-54) + 2^-104   relative to S, with the last step to two doubles.
 *
 *    It is relative to the sum of the column's own sizes: a column that the heavy keys do not enter keeps its precision.
 *    The sum of the weights is the column with v = 1, bit for bit: there o = 1.
 * 4. o_i = N / D, |N - exact| <= (eta + delta) S, D within eta + delta, a division to 2^-102:
 *
 *        radius_i = (2.001 (eta + delta) + 2^-101) gauge_i + 2^-1000
 *
 *    and ln D errs by eta + delta, in which MPFR's rounding disappears. For n < 2^31 it is below 2^-62 gauge_i. The excess
 *    over 2 pays for the second order and for rounding the gauge and this formula. */
#include "oracle_fast.h"

#include <float.h>
#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oracle_exp.h"
#include "oracle_logits.h"
#include "row.h"

#define NOT_FINITE 0x7f800000 /* bits of |x| from here on */

/* Sums over the keys, of FD_LANES columns i: see 3.; g + e is sum w |v| to 2^-53 and a little. */
typedef struct sums {
    double s[FD_LANES], c[FD_LANES], t[FD_LANES], g[FD_LANES], e[FD_LANES];
} sums;

typedef struct moments {
    double o[FD_LANES], o_lo[FD_LANES], radius[FD_LANES];
    double spread[FD_LANES], spread_a[FD_LANES], spread_gap[FD_LANES], v_max[FD_LANES];
} moments;

typedef struct job {
    const fd_problem *p;
    int32_t b, t, h, h_kv;
    fd_oracle_row *row;
    char *why;
    size_t why_bytes;
    int32_t groups; /* of FD_LANES columns: head_dim_v of them, and one of v = 1 */
    fd_logits logits;
    double *q;        /* [padded head_dim] */
    float *x;         /* a row of k or v, padded */
    fd_dd *w;         /* [kv_len] */
    sums *sums;       /* [groups] */
    moments *moments; /* [groups] */
    double top[FD_LOGIT_LEVELS];
    fd_dd l;         /* 2^512 sum w */
    double relative; /* the radius over the gauge */
} job;

/* ---- Reading ----------------------------------------------------------------------------------- */

static void load_row(const fd_tensor *x, int64_t at, int32_t n, float *row)
{
    const uint16_t *half = (const uint16_t *)x->data + at;
    if (x->dtype == FD_BF16 && x->stride[3] == 1) {
        int32_t i = 0;
        for (; i + FD_LANES <= n; i += FD_LANES) {
            uint32_t bits[FD_LANES];
            for (int32_t c = 0; c < FD_LANES; c++) {
                bits[c] = (uint32_t)half[i + c] << 16;
            }
            memcpy(row + i, bits, sizeof bits);
        }
        for (; i < n; i++) {
            row[i] = fd_float_from_bf16(half[i]);
        }
    } else if (x->dtype == FD_F16 && x->stride[3] == 1) {
        for (int32_t i = 0; i < n; i++) {
            row[i] = fd_float_from_f16(half[i]);
        }
    } else {
        fd_load_row(x, at, n, row);
    }
}

/* The largest |x_i| of n padded elements, as bits, which order as the numbers do: NaN is the largest. */
static int32_t largest_bits(const float *x, int32_t n)
{
    int32_t most[FD_LANES] = {0};
    for (int32_t i = 0; i < n; i += FD_LANES) {
        int32_t bits[FD_LANES];
        memcpy(bits, x + i, sizeof bits);
        for (int32_t c = 0; c < FD_LANES; c++) {
            const int32_t size = bits[c] & 0x7fffffff;
            most[c] = size > most[c] ? size : most[c];
        }
    }
    for (int32_t c = 1; c < FD_LANES; c++) {
        most[0] = most[c] > most[0] ? most[c] : most[0];
    }
    return most[0];
}

/* Row y of q (y is t), k or v (y is j) into x, and zeros behind it. */
static void load(job *m, char name, int64_t y)
{
    const fd_problem *p = m->p;
    const fd_tensor *from = name == 'q' ? &p->q : name == 'k' ? &p->k : &p->v;
    const int32_t h = name == 'q' ? m->h : m->h_kv, n = name == 'v' ? p->head_dim_v : p->head_dim;
    load_row(from, name == 'q' ? fd_row_at(from, m->b, m->t, h) : fd_kv_at(p, from, m->b, y, h), n, m->x);
    memset(m->x + n, 0, (size_t)(fd_padded(n + 1) - n) * sizeof *m->x);
}

/* The same for a row that nobody has looked at; *largest is raised to its largest size. FD_INVALID, with a line in why,
 * if an element is not finite. */
static fd_status load_new(job *m, char name, int64_t y, int32_t *largest)
{
    const int32_t n = name == 'v' ? m->p->head_dim_v : m->p->head_dim;
    load(m, name, y);
    const int32_t bits = largest_bits(m->x, fd_padded(n));
    *largest = bits > *largest ? bits : *largest;
    for (int32_t i = 0; bits >= NOT_FINITE && i < n; i++) {
        if (!isfinite(m->x[i])) {
            return fd_oracle_refuse(name, m->b, y, name == 'q' ? m->h : m->h_kv, i, (double)m->x[i], m->why,
                                    m->why_bytes);
        }
    }
    return FD_OK;
}

/* ---- 1. Logits --------------------------------------------------------------------------------- */

static fd_status no_memory(job *m)
{
    snprintf(m->why, m->why_bytes, "no memory for the exact logits of %lld keys", (long long)m->row->kv_len);
    return FD_NO_MEMORY;
}

static fd_status fill_logits(job *m)
{
    fd_oracle_row *row = m->row;
    const double scale = fabs((double)m->p->sm_scale);
    int32_t q_max = 0, k_max = 0;
    fd_status status = load_new(m, 'q', m->t, &q_max);
    for (int32_t i = 0; i < fd_padded(m->p->head_dim); i++) {
        m->q[i] = (double)m->x[i];
    }
    for (int64_t j = 0; j < row->kv_len && status == FD_OK; j++) {
        status = load_new(m, 'k', j, &k_max);
    }
    if (status != FD_OK) {
        return status;
    }
    const double largest = (double)fd_float_from_bits((uint32_t)q_max) * (double)fd_float_from_bits((uint32_t)k_max);
    if (!fd_logits_init(&m->logits, row->kv_len, m->p->head_dim, largest)) {
        return no_memory(m);
    }
    for (int64_t j = 0; j < row->kv_len; j++) {
        double a;
        load(m, 'k', j);
        if (!fd_logits_set(&m->logits, j, m->q, m->x, &a)) {
            return no_memory(m);
        }
        row->a[j] = a * scale * (1.0 + (m->p->head_dim + 8.0) * DBL_EPSILON);
        row->a_max = fmax(row->a_max, row->a[j]);
    }
    fd_logits_get(&m->logits, 0, m->top);
    for (int64_t j = 1; j < row->kv_len; j++) {
        const fd_dd above = fd_logits_minus(&m->logits, m->top, j);
        if (m->p->sm_scale < 0.0f ? above.hi > 0.0 : above.hi < 0.0) {
            fd_logits_get(&m->logits, j, m->top);
        }
    }
    return FD_OK;
}

static fd_dd gap_of(const job *m, int64_t j)
{
    fd_dd x = fd_logits_minus(&m->logits, m->top, j);
    if (m->p->sm_scale < 0.0f) {
        x = (fd_dd){-x.hi, -x.lo};
    }
    return x.hi == 0.0 ? (fd_dd){0.0, 0.0} : fd_dd_scale(x, fabs((double)m->p->sm_scale));
}

/* ---- 2. and 3. Weights and sums ---------------------------------------------------------------- */

/* x without its last 24 bits: 29 are left. */
static double leading(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= ~(uint64_t)0xffffff;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline double add(double *sum, double x)
{
    const fd_dd exact = fd_two_sum(*sum, x);
    *sum = exact.hi;
    return exact.lo;
}

static void add_key(job *m, fd_dd w)
{
    const double w1 = leading(w.hi), below = w.hi - w1;
    const fd_dd rest = fd_two_sum(below, w.lo);
    const double w2 = leading(rest.hi), w3 = (rest.hi - w2) + rest.lo;
    for (int32_t g = 0; g < m->groups; g++) {
        sums *x = &m->sums[g];
        const float *v = m->x + g * FD_LANES;
        for (int32_t c = 0; c < FD_LANES; c++) {
            const double at = (double)v[c], first = w1 * at;
            const double s_left = add(&x->s[c], first);
            const double left = add(&x->c[c], w2 * at), more = add(&x->c[c], s_left);
            x->t[c] += (left + more) + w3 * at;
            x->e[c] += add(&x->g[c], fabs(first)) + fabs(rest.hi * at);
        }
    }
}

static fd_status add_values(job *m)
{
    const fd_exp_table *table = fd_exp_make_table();
    fd_oracle_row *row = m->row;
    if (table == NULL) {
        return no_memory(m);
    }
    for (int64_t j = 0; j < row->kv_len; j++) {
        int32_t v_max = 0;
        const fd_status status = load_new(m, 'v', j, &v_max);
        if (status != FD_OK) {
            return status;
        }
        m->x[m->p->head_dim_v] = 1.0f; /* the last column is the sum of the weights */
        const fd_dd gap = gap_of(m, j);
        row->gap[j] = gap.hi;
        row->gap_max = fmax(row->gap_max, gap.hi);
        m->w[j] = gap.hi <= FD_EXP_CUT ? fd_exp_minus(table, gap) : (fd_dd){0.0, 0.0};
        add_key(m, m->w[j]);
    }
    return FD_OK;
}

/* ---- 4. Quotients ------------------------------------------------------------------------------ */

static fd_dd total(const sums *x, int32_t c)
{
    const fd_dd sum = fd_two_sum(x->s[c], x->c[c]);
    return fd_two_sum(sum.hi, sum.lo + x->t[c]);
}

/* lse = s_max + ln l, exact but for the logarithm: the two may cancel, and s_max may be 2^416. */
static void fill_lse(job *m)
{
    fd_oracle_row *row = m->row;
    mpfr_t s, x;
    mpfr_init2(s, FD_ORACLE_EXACT_BITS);
    mpfr_init2(x, FD_ORACLE_BITS);
    mpfr_set_zero(s, 1);
    for (int l = 0; l < m->logits.levels; l++) {
        mpfr_add_d(s, s, m->top[l], MPFR_RNDN);
    }
    mpfr_mul_d(s, s, (double)m->p->sm_scale, MPFR_RNDN);
    row->s_max = mpfr_get_d(s, MPFR_RNDN);
    mpfr_set_d(x, m->l.hi, MPFR_RNDN);
    mpfr_add_d(x, x, m->l.lo, MPFR_RNDN);
    mpfr_div_2ui(x, x, 512, MPFR_RNDN);
    mpfr_log(x, x, MPFR_RNDN);
    mpfr_add(s, s, x, MPFR_RNDN);
    row->lse = mpfr_get_d(s, MPFR_RNDN);
    mpfr_sub_d(s, s, row->lse, MPFR_RNDN);
    row->lse_lo = mpfr_get_d(s, MPFR_RNDN);
    row->lse_radius = m->relative + 0x1p-105 * fabs(row->lse);
    mpfr_clear(s);
    mpfr_clear(x);
    mpfr_free_cache2(MPFR_FREE_LOCAL_CACHE);
}

static void fill_outputs(job *m)
{
    fd_oracle_row *row = m->row;
    const int32_t d_v = m->p->head_dim_v;
    const double nu = (double)row->kv_len * 0x1p-53;
    const double eta = 0x1p-102 + 0x1p-101 * fmin(row->gap_max, FD_EXP_CUT);
    const double delta = nu * (7.0 * nu * (0x1p-28 + nu) + 0x1p-54) + 0x1p-104;
    m->relative = 2.001 * (eta + delta) + 0x1p-101;
    m->l = total(&m->sums[d_v / FD_LANES], d_v % FD_LANES);
    for (int32_t i = 0; i < d_v; i++) {
        const sums *x = &m->sums[i / FD_LANES];
        const int32_t c = i % FD_LANES;
        const fd_dd o = fd_dd_over(total(x, c), m->l);
        row->o[i] = o.hi;
        row->o_lo[i] = o.lo;
        row->gauge[i] = fd_dd_over(fd_two_sum(x->g[c], x->e[c]), m->l).hi;
        row->radius[i] = m->relative * row->gauge[i] + 0x1p-1000;
    }
}

/* ---- p and the moments ------------------------------------------------------------------------- */

/* As in oracle.c: p_up is above p, a term has at most 12 roundings and its sum n - 1, which the last factor outweighs;
 * 2^-900 exceeds all that underflows. */
static void fill_moments(job *m)
{
    fd_oracle_row *row = m->row;
    const int32_t d_v = m->p->head_dim_v;
    const double inflate = 1.0 + ((double)row->kv_len + 32.0) * DBL_EPSILON;
    for (int32_t i = 0; i < d_v; i++) {
        moments *x = &m->moments[i / FD_LANES];
        x->o[i % FD_LANES] = row->o[i];
        x->o_lo[i % FD_LANES] = row->o_lo[i];
        x->radius[i % FD_LANES] = row->radius[i];
    }
    for (int64_t j = 0; j < row->kv_len; j++) {
        load(m, 'v', j);
        row->p[j] = fd_dd_over(m->w[j], m->l).hi;
        const double p_up = row->p[j] * (1.0 + 0x1p-51) + 0x1p-1074;
        const double p_a = p_up * row->a[j], p_gap = p_up * row->gap[j];
        for (int32_t g = 0; g * FD_LANES < d_v; g++) {
            moments *x = &m->moments[g];
            const float *v = m->x + g * FD_LANES;
            for (int32_t c = 0; c < FD_LANES; c++) {
                const double at = (double)v[c], size = fabs(at);
                const double distance = fabs(at - x->o[c] - x->o_lo[c]) + x->radius[c];
                x->spread[c] += p_up * distance;
                x->spread_a[c] += p_a * distance;
                x->spread_gap[c] += p_gap * distance;
                x->v_max[c] = size > x->v_max[c] ? size : x->v_max[c];
            }
        }
    }
    for (int32_t i = 0; i < d_v; i++) {
        const moments *x = &m->moments[i / FD_LANES];
        const int32_t c = i % FD_LANES;
        row->spread[i] = x->spread[c] * inflate + 0x1p-900;
        row->spread_a[i] = x->spread_a[c] * inflate + 0x1p-900;
        row->spread_gap[i] = x->spread_gap[c] * inflate + 0x1p-900;
        row->v_max[i] = x->v_max[c];
    }
}

/* ---- A row ------------------------------------------------------------------------------------- */

static bool allocate(job *m)
{
    const int32_t d = fd_padded(m->p->head_dim + 1), d_v = fd_padded(m->p->head_dim_v + 1);
    m->groups = d_v / FD_LANES;
    m->q = malloc((size_t)d * sizeof *m->q);
    m->x = calloc((size_t)(d > d_v ? d : d_v), sizeof *m->x);
    m->w = malloc((size_t)m->row->kv_len * sizeof *m->w);
    m->sums = calloc((size_t)m->groups, sizeof *m->sums);
    m->moments = calloc((size_t)m->groups, sizeof *m->moments);
    return m->q != NULL && m->x != NULL && m->w != NULL && m->sums != NULL && m->moments != NULL;
}

fd_status fd_oracle_fast(const fd_problem *problem, int32_t b, int32_t t, int32_t h, fd_oracle_row *row, char *why,
                         size_t n)
{
    job m = {.p = problem, .b = b, .t = t, .h = h, .row = row, .why = why, .why_bytes = why != NULL ? n : 0};
    fd_status status = fd_oracle_begin(problem, b, t, h, FD_ORACLE_BITS, row, why, m.why_bytes);
    if (status != FD_OK || row->kv_len == 0) {
        return status;
    }
    if (FLT_EVAL_METHOD != 0 || row->kv_len > INT32_MAX) { /* the argument does not cover them */
        return fd_oracle(problem, b, t, h, FD_ORACLE_BITS, row, why, n);
    }
    m.h_kv = h / fd_group(problem);
    status = allocate(&m) ? fill_logits(&m) : no_memory(&m);
    if (status == FD_OK) {
        status = add_values(&m);
    }
    if (status == FD_OK) {
        fill_outputs(&m);
        fill_lse(&m);
        fill_moments(&m);
    }
    fd_logits_free(&m.logits);
    free(m.q);
    free(m.x);
    free(m.w);
    free(m.sums);
    free(m.moments);
    return status;
}
