/* bound_check_mpfr.c: the bound derived a second time. For key j with logit s_j, relative to the largest logit S:
 *
 *   slack_j = ((1+u)^(d+1) - 1) a_j + 2 |sigma| d eta (1+u)^(d+1) + 2 eta  (0 if a_j is 0)  d products, d - 1 sums, 1 scaling
 *   E       = max_j slack_j - (S - s_j)                                    computed maximum M <= S + E
 *   z_j     = slack_j + u (M - fl s_j) + R_j (eta - ln(1 - exp_rel))       differences to the final maximum telescope
 *             + S (u (B_j + slop) + eta) + log_rel logs + u (...)           of S merges of (o, lse): set_lse_terms()
 *   weight  = e^(s_j - M) e^(+-z_j) +- omega_j                             omega_j: exp's absolute errors
 *   N       = sum weight_j v_j (1+u)^(+-h_N) + absolute, D = sum weight_j (1+u)^(+-h_D) + absolute
 *   N - o D = sum w (e^z - 1)(v - o) + sum w e^z (theta v - theta' o) + absolute,  since sum w (v - o) = 0
 *
 * With L = sum e^(s_j - S): all terms are divided by the least D, the common e^(S - M) cancels. */
#include <math.h>
#include <mpfr.h>
#include <stdlib.h>

#include "bound_check.h"

enum { BITS = 320, EXACT_BITS = FD_ORACLE_EXACT_BITS };

typedef struct key {
    mpfr_t gap, a, slack, z, w, high; /* gap exact; w = e^-gap; high = w e^z */
    mpfr_t omega;
    double u_p;     /* relative error of the rounded weight */
    double omega_p; /* absolute error of the rounded weight: of one that may lie below the normal numbers of its type */
    int64_t rescales, h_n, h_d;
} key;

/* (1 + x)^h, h >= 0, rounded as asked. */
static void power(mpfr_t to, double x, int64_t h, mpfr_rnd_t rnd)
{
    mpfr_set_d(to, 1.0, rnd);
    mpfr_add_d(to, to, x, rnd);
    mpfr_pow_si(to, to, h, rnd);
}

/* The largest and the smallest factor that the roundings of a term can amount to. */
static void grow_n(mpfr_t to, const fd_rounding *r, const fd_counts *t, int64_t h_n)
{
    mpfr_t x;
    mpfr_init2(x, BITS);
    power(to, r->u, h_n, MPFR_RNDU);
    power(x, r->mma, t->mmas_n, MPFR_RNDU);
    mpfr_mul(to, to, x, MPFR_RNDU);
    power(x, r->u_partial, t->stores, MPFR_RNDU);
    mpfr_mul(to, to, x, MPFR_RNDU);
    mpfr_clear(x);
}

static void grow_d(mpfr_t to, const fd_rounding *r, const fd_counts *t, int64_t h_d)
{
    mpfr_t x;
    mpfr_init2(x, BITS);
    power(to, r->u, h_d, MPFR_RNDU);
    power(x, r->mma_l, t->mmas_d, MPFR_RNDU);
    mpfr_mul(to, to, x, MPFR_RNDU);
    mpfr_clear(x);
}

static void shrink_d(mpfr_t to, const fd_rounding *r, const fd_counts *t, int64_t h_d)
{
    mpfr_t x;
    mpfr_init2(x, BITS);
    power(to, -r->u, h_d, MPFR_RNDD);
    power(x, -r->mma_l, t->mmas_d, MPFR_RNDD);
    mpfr_mul(to, to, x, MPFR_RNDD);
    mpfr_clear(x);
}

/* g + 1 of the dot product with its scale. */
static void grow_dot(mpfr_t to, const fd_rounding *r, int32_t d)
{
    mpfr_t x;
    mpfr_init2(x, BITS);
    if (r->mma_keys == 0) {
        power(to, r->u, d + 1, MPFR_RNDU);
    } else {
        power(to, r->u, 1, MPFR_RNDU);
        power(x, r->mma, (d - 1) / r->mma_keys + 1, MPFR_RNDU);
        mpfr_mul(to, to, x, MPFR_RNDU);
    }
    mpfr_clear(x);
}

static void init_key(key *k)
{
    mpfr_inits2(EXACT_BITS, k->gap, (mpfr_ptr)NULL);
    mpfr_inits2(BITS, k->a, k->slack, k->z, k->w, k->high, k->omega, (mpfr_ptr)NULL);
}

static void clear_key(key *k)
{
    mpfr_clears(k->gap, k->a, k->slack, k->z, k->w, k->high, k->omega, (mpfr_ptr)NULL);
}

/* gap and a from the inputs; s_max exact. */
static void logits(const fd_check_case *c, key *keys, mpfr_t s_max)
{
    const int64_t n = c->p.kv_capacity;
    const int32_t d = c->p.head_dim;
    mpfr_t x;
    mpfr_init2(x, EXACT_BITS);
    for (int64_t j = 0; j < n; j++) {
        mpfr_set_d(keys[j].gap, 0.0, MPFR_RNDN);
        mpfr_set_d(keys[j].a, 0.0, MPFR_RNDU);
        for (int32_t i = 0; i < d; i++) {
            mpfr_set_d(x, (double)c->q[i] * (double)c->k[j * d + i], MPFR_RNDN);
            mpfr_mul_d(x, x, (double)c->p.sm_scale, MPFR_RNDN);
            mpfr_add(keys[j].gap, keys[j].gap, x, MPFR_RNDN);
            mpfr_abs(x, x, MPFR_RNDN);
            mpfr_add(keys[j].a, keys[j].a, x, MPFR_RNDU);
        }
        if (j == 0 || mpfr_cmp(keys[j].gap, s_max) > 0) {
            mpfr_set(s_max, keys[j].gap, MPFR_RNDN);
        }
    }
    for (int64_t j = 0; j < n; j++) {
        mpfr_sub(keys[j].gap, s_max, keys[j].gap, MPFR_RNDN);
    }
    mpfr_clear(x);
}

/* The later parts of key j's group whose maximum, at most, exceeds the running one, at least. */
static int64_t raises(const fd_counts *t, const key *keys, int64_t n, int64_t j, mpfr_t high, mpfr_t low, mpfr_t x)
{
    if (t->running_part == 0 || !t->running_in_order) {
        return t->running_part == 0 ? 0 : t->running_most;
    }
    const int64_t group = j / t->running_group * t->running_group;
    int64_t count = 0;
    for (int64_t part = j / t->running_part * t->running_part + t->running_part;
         part < group + t->running_group && part < n; part += t->running_part) {
        mpfr_set_inf(low, -1);
        mpfr_set_inf(high, -1);
        for (int64_t i = group; i < part; i++) {
            mpfr_add(x, keys[i].gap, keys[i].slack, MPFR_RNDU);
            mpfr_neg(x, x, MPFR_RNDN);
            mpfr_max(low, low, x, MPFR_RNDD);
        }
        for (int64_t i = part; i < n && i < part + t->running_part; i++) {
            mpfr_sub(x, keys[i].slack, keys[i].gap, MPFR_RNDU);
            mpfr_max(high, high, x, MPFR_RNDU);
        }
        count += mpfr_cmp(high, low) > 0;
    }
    return count;
}

/* Everything of a row that no column changes; each is rounded towards the larger bound. */
typedef struct row_sums {
    mpfr_t s_max, excess, low, high, weight, magnify, denominator, x, y, z;
    mpfr_t least_sum;                     /* denominator, or as much of it as the weights make */
    mpfr_t logs, rise, size, slop, below; /* of merges of (o, lse); 0 without them */
    int64_t h_n, h_d;
} row_sums;

/* A merge replaces m by m + ln l, rounded twice: ln l lies between -h_D ln(1/(1-u)) and logs; |lse| <= size for the
 * parts that hold the largest key. slop: all these roundings; rise, below: how far the last shift can be from the
 * maximum. */
static void set_lse_terms(const fd_rounding *r, const fd_counts *t, row_sums *s)
{
    const double merges = (double)t->lse_merges;
    mpfr_ptr x = s->x, below = s->below;
    mpfr_ptr const all[] = {s->logs, s->rise, s->size, s->slop, below};
    for (int i = 0; i < 5; i++) {
        mpfr_set_zero(all[i], 1);
    }
    if (merges == 0.0) {
        return;
    }
    shrink_d(x, r, t, s->h_d);
    mpfr_log(x, x, MPFR_RNDD);
    mpfr_mul_d(below, x, -merges, MPFR_RNDU);
    mpfr_add_d(s->logs, below, t->log_parts, MPFR_RNDU);
    mpfr_set_d(x, 1.0 + r->log_rel, MPFR_RNDU);
    mpfr_mul(s->rise, s->logs, x, MPFR_RNDU);
    mpfr_mul(below, below, x, MPFR_RNDU);
    mpfr_abs(s->size, s->s_max, MPFR_RNDU);
    mpfr_add(s->size, s->size, s->excess, MPFR_RNDU);
    mpfr_add(s->slop, s->size, s->rise, MPFR_RNDU);
    mpfr_set_d(x, 2.0 * merges * r->u, MPFR_RNDU);
    mpfr_exp(x, x, MPFR_RNDU);
    mpfr_mul_d(x, x, merges * r->u, MPFR_RNDU);
    mpfr_mul(s->slop, s->slop, x, MPFR_RNDU);
    mpfr_add_d(s->slop, s->slop, merges * r->eta, MPFR_RNDU);
    mpfr_add(s->rise, s->rise, s->slop, MPFR_RNDU);
    mpfr_add(s->size, s->size, s->rise, MPFR_RNDU);
    mpfr_add(below, below, s->slop, MPFR_RNDU);
}

/* What merges of (o, lse) add to z_j: to = S (u (max(|s_j| + slack_j, size) + slop) + eta) + log_rel logs. */
static void lse_error(const fd_rounding *r, const fd_counts *t, const row_sums *s, const key *k, mpfr_t to)
{
    const double merges = (double)t->lse_merges;
    mpfr_sub(to, s->s_max, k->gap, MPFR_RNDN);
    mpfr_abs(to, to, MPFR_RNDU);
    mpfr_add(to, to, k->slack, MPFR_RNDU);
    mpfr_max(to, to, s->size, MPFR_RNDU);
    mpfr_add(to, to, s->slop, MPFR_RNDU);
    mpfr_mul_d(to, to, merges * r->u, MPFR_RNDU);
    mpfr_add_d(to, to, merges * r->eta, MPFR_RNDU);
    mpfr_t log_error;
    mpfr_init2(log_error, BITS);
    mpfr_mul_d(log_error, s->logs, r->log_rel, MPFR_RNDU);
    mpfr_add(to, to, log_error, MPFR_RNDU);
    mpfr_clear(log_error);
}

static void fill_row(const fd_check_case *c, const fd_arith *arith, const fd_rounding *r, const fd_counts *t,
                     fd_check_counts change, key *keys, row_sums *s)
{
    const int64_t n = c->p.kv_capacity;
    const int32_t d = c->p.head_dim;
    const bool shifted = arith->shift == FD_SHIFT_MAX;
    const double exp_rel = shifted ? r->exp_rel : fmax(r->exp_rel, r->exp_rel_positive);
    mpfr_ptr x = s->x, y = s->y, z = s->z;

    logits(c, keys, s->s_max);
    mpfr_set_d(s->excess, 0.0, MPFR_RNDU);
    for (int64_t j = 0; j < n; j++) {
        grow_dot(x, r, d);
        mpfr_sub_d(y, x, 1.0, MPFR_RNDU);
        mpfr_mul(keys[j].slack, y, keys[j].a, MPFR_RNDU);
        mpfr_mul_d(x, x, 2.0 * fabs((double)c->p.sm_scale) * d * r->eta, MPFR_RNDU);
        mpfr_add(keys[j].slack, keys[j].slack, x, MPFR_RNDU);
        mpfr_add_d(keys[j].slack, keys[j].slack, 2.0 * r->eta, MPFR_RNDU);
        if (mpfr_zero_p(keys[j].a)) { /* every product is 0, exactly */
            mpfr_set_zero(keys[j].slack, 1);
        }
        mpfr_sub(x, keys[j].slack, keys[j].gap, MPFR_RNDU);
        mpfr_max(s->excess, s->excess, x, MPFR_RNDU);
    }
    s->h_n = s->h_d = 0;
    for (int64_t j = 0; j < n; j++) {
        key *k = &keys[j];
        k->rescales = t->rescales + raises(t, keys, n, j, x, y, z) + change.rescales;
        k->h_n = k->rescales + t->additions + t->extra + 2 * t->normalised + t->lse_merges + change.h_n;
        k->h_d = k->rescales - 1 + t->additions - t->lse_merges + change.h_d;
        s->h_n = k->h_n > s->h_n ? k->h_n : s->h_n;
        s->h_d = k->h_d > s->h_d ? k->h_d : s->h_d;
    }

    set_lse_terms(r, t, s);

    /* omega: absolute errors of the weights, all told, then in units of e^-S. */
    mpfr_t omega, least;
    mpfr_inits2(BITS, omega, least, (mpfr_ptr)NULL);
    mpfr_set_d(omega, 2.0 * (double)t->parts * r->eta, MPFR_RNDU);
    mpfr_set_d(least, 0.0, MPFR_RNDD);
    mpfr_set_d(s->low, 0.0, MPFR_RNDD);
    mpfr_set_d(s->high, 0.0, MPFR_RNDU);
    mpfr_set_d(s->weight, 0.0, MPFR_RNDN);
    for (int64_t j = 0; j < n; j++) {
        key *k = &keys[j];
        mpfr_set_d(x, -exp_rel, MPFR_RNDN);
        mpfr_log1p(x, x, MPFR_RNDD);
        mpfr_d_sub(x, r->eta, x, MPFR_RNDU);
        mpfr_mul_si(x, x, (long)k->rescales, MPFR_RNDU);
        mpfr_add(k->z, k->slack, x, MPFR_RNDU);
        mpfr_add(y, k->gap, k->slack, MPFR_RNDU);
        mpfr_add(y, y, s->excess, MPFR_RNDU);
        lse_error(r, t, s, k, x);
        mpfr_add(k->z, k->z, x, MPFR_RNDU);
        mpfr_add(y, y, x, MPFR_RNDU);
        mpfr_add(y, y, s->rise, MPFR_RNDU);
        mpfr_add(y, y, s->below, MPFR_RNDU);
        mpfr_mul_d(y, y, shifted ? r->u : 0.0, MPFR_RNDU);
        mpfr_add(k->z, k->z, y, MPFR_RNDU);

        /* The weight before it is rounded is at least e^-(gap + slack + E)(1 + u) (1 - exp_rel) - exp_abs. It
         * becomes 1, and errs by 1 - w, if it is less than half a unit below. */
        mpfr_set_d(y, -exp_rel, MPFR_RNDN);
        mpfr_log1p(y, y, MPFR_RNDD);
        mpfr_add(x, k->gap, k->slack, MPFR_RNDU);
        mpfr_add(x, x, s->excess, MPFR_RNDU);
        mpfr_mul_d(x, x, 1.0 + r->u, MPFR_RNDU);
        mpfr_sub(x, x, y, MPFR_RNDU);
        mpfr_expm1(x, x, MPFR_RNDU);
        const double below_1 = shifted ? mpfr_get_d(x, MPFR_RNDU) : HUGE_VAL;
        k->u_p = below_1 <= r->near_1 && below_1 < r->u_p ? below_1 : r->u_p;
        mpfr_set_d(y, arith->p_in_l ? -k->u_p : 0.0, MPFR_RNDN);
        mpfr_log1p(y, y, MPFR_RNDD);
        mpfr_sub(k->z, k->z, y, MPFR_RNDU);
        mpfr_add(y, k->gap, k->slack, MPFR_RNDU);
        mpfr_add(x, y, s->excess, MPFR_RNDU);
        mpfr_mul_d(x, x, 1.0 + r->u, MPFR_RNDU);
        mpfr_sub(y, s->s_max, y, MPFR_RNDD);
        mpfr_neg(x, x, MPFR_RNDD);
        mpfr_exp(x, shifted ? x : y, MPFR_RNDD);
        mpfr_mul_d(x, x, 1.0 - r->exp_rel, MPFR_RNDD);
        mpfr_sub_d(x, x, r->exp_abs, MPFR_RNDD);
        k->omega_p = mpfr_cmp_d(x, r->small_p) >= 0 ? 0.0 : r->eta_p;

        power(k->omega, exp_rel, k->rescales - 1,
              MPFR_RNDU); /* a computed exp is at most 1, an exact one 1 + exp_rel */
        mpfr_mul_d(k->omega, k->omega, (double)k->rescales * r->exp_abs, MPFR_RNDU);
        mpfr_add(omega, omega, k->omega, MPFR_RNDU);
        mpfr_add_d(omega, omega, arith->p_in_l ? k->omega_p : 0.0, MPFR_RNDU);

        mpfr_neg(x, k->gap, MPFR_RNDN);
        mpfr_exp(k->w, x, MPFR_RNDN);
        mpfr_add(s->weight, s->weight, k->w, MPFR_RNDN);
        mpfr_sub(x, k->z, k->gap, MPFR_RNDU);
        mpfr_exp(k->high, x, MPFR_RNDU);
        grow_d(x, r, t, k->h_d);
        mpfr_fma(s->high, k->high, x, s->high, MPFR_RNDU);
        mpfr_add(x, k->gap, k->z, MPFR_RNDU);
        mpfr_neg(x, x, MPFR_RNDN);
        mpfr_exp(x, x, MPFR_RNDD);
        if (!shifted) { /* the largest raw weight that is certain */
            mpfr_exp(y, s->s_max, MPFR_RNDD);
            mpfr_mul(y, y, x, MPFR_RNDD);
            mpfr_sub(y, y, k->omega, MPFR_RNDD);
            mpfr_max(least, least, y, MPFR_RNDD);
        }
        shrink_d(y, r, t, k->h_d);
        mpfr_fma(s->low, x, y, s->low, MPFR_RNDD);
    }
    grow_n(x, r, t, s->h_n);
    mpfr_mul_d(x, x, 1.0 + r->grow_p, MPFR_RNDU);
    shrink_d(y, r, t, s->h_d);
    mpfr_div(s->magnify, x, y, MPFR_RNDU);
    mpfr_mul(s->denominator, least, y, MPFR_RNDD);
    if (shifted) { /* the largest logit weighs exp(0) = 1, and sums of numbers >= 0 round monotonically */
        power(s->denominator, -r->mma_l, t->mmas_d, MPFR_RNDD); /* an instruction need not be monotone */
    }

    mpfr_neg(x, s->s_max, MPFR_RNDN);
    mpfr_exp(x, shifted ? s->excess : x, MPFR_RNDU);
    mpfr_mul(omega, omega, x, MPFR_RNDU);
    grow_d(x, r, t, s->h_d); /* an absolute error meets at most as many roundings */
    mpfr_mul(omega, omega, x, MPFR_RNDU);
    mpfr_sub(s->low, s->low, omega, MPFR_RNDD);
    if (!shifted) { /* or all of them together */
        mpfr_exp(y, s->s_max, MPFR_RNDD);
        mpfr_mul(y, y, s->low, MPFR_RNDD);
        mpfr_max(s->denominator, s->denominator, y, MPFR_RNDD);
    }
    mpfr_add(s->high, s->high, omega, MPFR_RNDU);
    mpfr_set(s->least_sum, s->denominator, MPFR_RNDD);
    if (shifted) { /* in units of e^-S; the last shift is at most S + E, and with merges of (o, lse) higher by `rise` */
        mpfr_add(x, s->excess, s->rise, MPFR_RNDU);
        mpfr_neg(x, x, MPFR_RNDD);
        mpfr_exp(x, x, MPFR_RNDD);
        mpfr_mul(x, x, s->low, MPFR_RNDD);
        mpfr_max(s->least_sum, s->least_sum, x, MPFR_RNDD);
    }
    mpfr_clears(omega, least, (mpfr_ptr)NULL);
}

static double column(const fd_check_case *c, const fd_arith *arith, const fd_rounding *r, const fd_counts *t,
                     const key *keys, row_sums *s, int32_t i)
{
    const int64_t n = c->p.kv_capacity;
    const int32_t d_v = c->p.head_dim_v;
    mpfr_ptr x = s->x, y = s->y;
    mpfr_t o, f, absolute, rounded;
    double max_v = 0.0, result;
    mpfr_inits2(BITS, o, f, absolute, rounded, (mpfr_ptr)NULL);
    mpfr_set_d(rounded, r->eta_partial * (double)t->stores_plain, MPFR_RNDU);
    mpfr_set_d(o, 0.0, MPFR_RNDN);
    mpfr_set_d(f, 0.0, MPFR_RNDN);
    mpfr_set_d(absolute, 0.0, MPFR_RNDN);
    for (int64_t j = 0; j < n; j++) {
        mpfr_mul_d(x, keys[j].w, (double)c->v[j * d_v + i], MPFR_RNDN);
        mpfr_add(o, o, x, MPFR_RNDN);
        max_v = fmax(max_v, fabs((double)c->v[j * d_v + i]));
    }
    mpfr_div(o, o, s->weight, MPFR_RNDN);
    for (int64_t j = 0; j < n; j++) {
        const key *k = &keys[j];
        const double v = (double)c->v[j * d_v + i];
        mpfr_d_sub(x, v, o, MPFR_RNDN);
        mpfr_abs(x, x, MPFR_RNDN);
        mpfr_neg(y, k->z, MPFR_RNDN); /* w (e^z - 1) = w e^z (1 - e^-z): no infinity where z is huge */
        mpfr_expm1(y, y, MPFR_RNDD);
        mpfr_neg(y, y, MPFR_RNDN);
        mpfr_mul(y, y, k->high, MPFR_RNDU);
        mpfr_fma(f, x, y, f, MPFR_RNDU);
        grow_n(x, r, t, k->h_n); /* of the weight (1 + u_p), and what (1 + grow_p) of it meets */
        mpfr_sub_d(x, x, 1.0, MPFR_RNDU);
        mpfr_mul_d(x, x, 1.0 + r->grow_p, MPFR_RNDU);
        mpfr_add_d(x, x, arith->p_in_l ? 0.0 : k->u_p, MPFR_RNDU);
        mpfr_mul_d(x, x, fabs(v), MPFR_RNDU);
        mpfr_fma(f, x, k->high, f, MPFR_RNDU);
        grow_d(x, r, t, k->h_d);
        mpfr_sub_d(x, x, 1.0, MPFR_RNDU);
        mpfr_abs(y, o, MPFR_RNDN);
        mpfr_mul(x, x, y, MPFR_RNDU);
        mpfr_fma(f, x, k->high, f, MPFR_RNDU);
        mpfr_add_d(y, y, fabs(v), MPFR_RNDU);
        mpfr_fma(absolute, y, k->omega, absolute, MPFR_RNDU);
        mpfr_mul_d(y, y, arith->p_in_l ? k->omega_p : 0.0, MPFR_RNDU);
        mpfr_add(rounded, rounded, y, MPFR_RNDU);
        mpfr_add_d(rounded, rounded, arith->p_in_l ? 0.0 : fabs(v) * k->omega_p, MPFR_RNDU);
    }
    mpfr_abs(o, o, MPFR_RNDN);
    /* eta for every product p v, every rescaled o and (times o) l, and a part's weight times what it averages */
    mpfr_add_d(x, o, 1.0, MPFR_RNDU);
    mpfr_mul_d(x, x, (double)t->parts, MPFR_RNDU);
    mpfr_add_d(x, x, (double)(n * (arith->p_parts > 1 ? arith->p_parts : 1)), MPFR_RNDU);
    mpfr_mul_d(y, s->magnify, 2.0 * (double)t->parts_norm * max_v, MPFR_RNDU);
    mpfr_add(x, x, y, MPFR_RNDU);
    mpfr_mul_d(x, x, 2.0 * r->eta, MPFR_RNDU); /* twice: additions lose as much where subnormals are flushed */
    mpfr_add(absolute, absolute, x, MPFR_RNDU);

    if (mpfr_sgn(s->low) <= 0 || mpfr_sgn(s->denominator) <= 0) {
        result = HUGE_VAL;
    } else {
        mpfr_div(f, f, s->low, MPFR_RNDU);
        mpfr_set_d(x, r->u, MPFR_RNDU);
        mpfr_fma(f, f, x, f, MPFR_RNDU);
        mpfr_fma(f, o, x, f, MPFR_RNDU);
        mpfr_div(absolute, absolute, s->denominator, MPFR_RNDU);
        mpfr_div(rounded, rounded, s->least_sum, MPFR_RNDU);
        mpfr_add(absolute, absolute, rounded, MPFR_RNDU);
        mpfr_add_d(absolute, absolute, t->stores_plain == 0 ? (double)t->stores * r->eta_partial : 0.0, MPFR_RNDU);
        mpfr_add_d(absolute, absolute, (1.0 + (double)(t->normalised + t->lse_merges)) * r->eta,
                   MPFR_RNDU); /* the quotients */
        mpfr_sqr(x, s->magnify, MPFR_RNDU);
        mpfr_fma(f, absolute, x, f, MPFR_RNDU);
        result = mpfr_get_d(f, MPFR_RNDU);
    }
    mpfr_clears(o, f, absolute, rounded, (mpfr_ptr)NULL);
    return result;
}

static double lse_bound(const fd_check_case *c, const fd_arith *arith, const fd_rounding *r, row_sums *s)
{
    const bool shifted = arith->shift == FD_SHIFT_MAX;
    mpfr_ptr x = s->x, y = s->y, lse = s->z;
    if (mpfr_sgn(s->low) <= 0) {
        return HUGE_VAL;
    }
    mpfr_div(x, s->high, s->weight, MPFR_RNDU);
    mpfr_log(x, x, MPFR_RNDU);
    mpfr_div(y, s->low, s->weight, MPFR_RNDD);
    mpfr_log(y, y, MPFR_RNDD);
    mpfr_neg(y, y, MPFR_RNDN);
    mpfr_max(x, x, y, MPFR_RNDU); /* |ln D - exact| */
    mpfr_log(lse, s->weight, MPFR_RNDN);
    mpfr_add(y, lse, s->below, MPFR_RNDU);
    mpfr_add(y, y, s->excess, MPFR_RNDU); /* |ln| of the number whose logarithm is taken */
    mpfr_add(lse, lse, s->s_max, MPFR_RNDN);
    mpfr_abs(lse, lse, MPFR_RNDN);
    mpfr_add(y, shifted ? y : lse, x, MPFR_RNDU);
    mpfr_mul_d(y, y, shifted && c->p.kv_capacity <= 1 << 20 ? r->log_rel : r->log_rel_anywhere, MPFR_RNDU);
    mpfr_add(x, x, y, MPFR_RNDU);
    mpfr_add_d(x, x, arith->accumulator == FD_ACC_F16 ? r->eta : 0.0, MPFR_RNDU);
    if (shifted) {
        mpfr_add(y, lse, x, MPFR_RNDU);
        mpfr_mul_d(y, y, r->u, MPFR_RNDU);
        mpfr_add(x, x, y, MPFR_RNDU);
    }
    return mpfr_get_d(x, MPFR_RNDU);
}

fd_status fd_check_bound(const fd_check_case *c, const fd_arith *arith, const fd_rounding *host, fd_check_counts change,
                         double *o, double *lse)
{
    const int64_t n = c->p.kv_capacity;
    const fd_rounding rounding = fd_bound_rounding(arith, host), *r = &rounding;
    const fd_counts t = fd_bound_counts(arith, n);
    key *keys = calloc((size_t)n, sizeof *keys);
    row_sums s;
    if (keys == NULL) {
        return FD_NO_MEMORY;
    }
    mpfr_init2(s.s_max, EXACT_BITS);
    mpfr_inits2(BITS, s.excess, s.low, s.high, s.weight, s.magnify, s.denominator, s.least_sum, s.x, s.y, s.z, s.logs,
                s.rise, s.size, s.slop, s.below, (mpfr_ptr)NULL);
    for (int64_t j = 0; j < n; j++) {
        init_key(&keys[j]);
    }
    fill_row(c, arith, r, &t, change, keys, &s);
    for (int32_t i = 0; i < c->p.head_dim_v; i++) {
        o[i] = column(c, arith, r, &t, keys, &s, i);
    }
    *lse = lse_bound(c, arith, r, &s);
    for (int64_t j = 0; j < n; j++) {
        clear_key(&keys[j]);
    }
    mpfr_clear(s.s_max);
    mpfr_clears(s.excess, s.low, s.high, s.weight, s.magnify, s.denominator, s.least_sum, s.x, s.y, s.z, s.logs, s.rise,
                s.size, s.slop, s.below, (mpfr_ptr)NULL);
    free(keys);
    return FD_OK;
}
