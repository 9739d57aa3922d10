/* bound.h: the pass line of tier 2, a theorem evaluated per element. proofs/README.md derives it and names every
 * hypothesis; the symbols here are the ones used there. */
#ifndef FD_BOUND_H
#define FD_BOUND_H

#include <math.h>
#include <stdbool.h>

#include "fd.h"
#include "oracle.h"

#define FD_BOUND_VERSION 2

/* What an arithmetic can do wrong in one operation. */
typedef struct fd_rounding {
    double u;                /* unit roundoff: 2^-24 for fp32, round to nearest */
    double eta;              /* largest absolute error of a product or quotient that underflows: 2^-150 */
    double largest;          /* largest finite number */
    double exp_rel, exp_abs; /* |fl(exp x) - exp x| <= exp_rel exp x + exp_abs for x <= 0 */
    double exp_rel_positive; /* the same for 0 < x (rungs without a shift) */
    double log_rel;          /* |fl(log x) - log x| <= log_rel |log x| for 1 <= x <= 2^20 */
    double log_rel_anywhere; /* the same for any other normal x */

    /* What the claims add; fd_bound_rounding() fills it in, and 0 means that nothing of the kind is rounded. A weight w
     * becomes w (1 + d) + e, |d| <= u_p, |e| <= eta_p, e = 0 unless w < small_p; its parts together are at most
     * (1 + grow_p) w in size; w becomes 1 where it is at least 1 - near_1. */
    double u_p, grow_p, near_1, eta_p, small_p, largest_p;
    double u_partial, eta_partial, largest_partial; /* the same of partial_o */
    double mma, mma_l; /* kappa: error of one instruction over its sum of |addends|, for q.k and o; as much for l */
    int64_t mma_keys;  /* products of one instruction; 0: no tensor cores */
} fd_rounding;

/* Roundings on the longest way from a key to the root of the merge tree that the claims describe, and how many rescaled
 * parts there are. R_j of a level with a running maximum depends on the data: see fd_bound_raises(). */
typedef struct fd_counts {
    bool known;             /* the claims describe a tree this theorem covers */
    int64_t additions;      /* A */
    int64_t rescales;       /* R, the exp of the key's own weight included, running levels at their fewest */
    int64_t normalised;     /* levels whose parts were divided by their own l */
    int64_t parts;          /* X, products with a rescaling factor, in the whole row, at most */
    int64_t parts_norm;     /* of these, on normalised levels */
    int64_t lse_merges;     /* S, merges of (o, lse) on a key's way */
    int64_t mmas_n, mmas_d; /* instructions of a tensor core on a key's way, in o and (as good as) in l */
    int64_t extra;          /* additions to o alone: of the second and later parts of a rounded weight */
    int64_t stores;         /* times that a partial_o with the key is stored */
    int64_t stores_plain;   /* stores of a partial_o not divided by its l, in the whole row; 0: all are divided */
    double
        log_parts; /* sum over them of ln (keys that a part can hold, or 2 further up a tree): ln l is at most that */
    bool merged;   /* while counting: a level below has given its parts maxima of their own */
    bool divided;  /* and a level's parts were divided by their own l */
    int64_t running_part, running_group; /* keys a part and a group of the running level; 0, 0: no such level */
    int64_t running_most;                /* most rescales that level can add to a key */
    bool running_in_order;
} fd_counts;

/* Known kinds, 0 .. FD_MAX_LEVELS levels of at least one way, errors that are numbers in [0, 1)? */
bool fd_claims_make_sense(const fd_arith *arith);

/* Do the levels, if there are any, join all keys of a row? If not, they describe another computation. */
bool fd_claims_join(const fd_arith *arith, int64_t kv_len);

#define FD_CLAIMS_TEXT 1024 /* bytes: the longest text of any claims, and what is proof open behind it */

/* The claims in words, for the hypotheses of a verdict: "shift: maximum; keys: added, in sequence". */
void fd_claims_text(const fd_arith *arith, char *text, size_t n);

fd_counts fd_bound_counts(const fd_arith *arith, int64_t kv_len);

/* h_N and h_D: roundings by u that a key's term meets in the numerator and in the denominator, with R_j rescales.
 * Those of tensor cores and of 16-bit numbers are counted apart. */
static inline int64_t fd_bound_h_n(const fd_counts *c, int64_t r_j)
{
    return r_j + c->additions + 2 * c->normalised + c->lse_merges + c->extra;
}

static inline int64_t fd_bound_h_d(const fd_counts *c, int64_t r_j)
{
    return r_j - 1 + c->additions - c->lse_merges;
}

/* g(h) = (1 + u)^h - 1 */
static inline double fd_bound_g(double u, int64_t h)
{
    return expm1((double)h * log1p(u));
}

/* ln of the largest factor that the h roundings of a term can amount to, with those counted apart. */
static inline double fd_bound_up_n(const fd_rounding *r, const fd_counts *c, int64_t h_n)
{
    return (double)h_n * log1p(r->u) + (double)c->mmas_n * log1p(r->mma) + (double)c->stores * log1p(r->u_partial);
}

static inline double fd_bound_up_d(const fd_rounding *r, const fd_counts *c, int64_t h_d)
{
    return (double)h_d * log1p(r->u) + (double)c->mmas_d * log1p(r->mma_l);
}

/* ln of the smallest, <= 0. */
static inline double fd_bound_down_d(const fd_rounding *r, const fd_counts *c, int64_t h_d)
{
    return (double)h_d * log1p(-r->u) + (double)c->mmas_d * log1p(-r->mma_l);
}

/* g_N, the error of a key's term in the numerator over its exact size: u_p of its rounded weight, and of all that
 * follows. */
static inline double fd_bound_g_n(const fd_rounding *r, const fd_counts *c, int64_t h_n, double u_p)
{
    return u_p + (1.0 + r->grow_p) * expm1(fd_bound_up_n(r, c, h_n));
}

/* Of a weight that before rounding is at least exp(-exponent) and at most 1: |error| over its size. */
static inline double fd_bound_u_p(const fd_rounding *r, double exponent)
{
    const double below_1 = r->u_p > 0.0 ? expm1(exponent) : 0.0;
    return below_1 <= r->near_1 ? fmin(below_1, r->u_p) : r->u_p;
}

static inline double fd_bound_g_d(const fd_rounding *r, const fd_counts *c, int64_t h_d)
{
    return expm1(fd_bound_up_d(r, c, h_d));
}

/* |fl(q.k sm_scale) - s_j| over a_j: head_dim products and their sum, and the product with sm_scale. */
static inline double fd_bound_g_dot(const fd_rounding *r, int32_t head_dim)
{
    const int64_t mmas = r->mma_keys > 0 ? (head_dim + r->mma_keys - 1) / r->mma_keys : 0;
    return r->mma_keys > 0 ? expm1((double)mmas * log1p(r->mma) + log1p(r->u))
                           : fd_bound_g(r->u, (int64_t)head_dim + 1);
}

/* The host's arithmetic, with what the rung claims of its own in place of what was measured here, and what the claims
 * round besides. */
fd_rounding fd_bound_rounding(const fd_arith *arith, const fd_rounding *host);

/* The pass line of one row. */
typedef struct fd_bound {
    bool known;                 /* false: no theorem covers the claims, and every bound is infinite */
    bool admissible;            /* the row meets the preconditions on range (fd.h, semantics) */
    double lse;                 /* of |lse - exact| */
    double *o;                  /* [head_dim_v] of |o_i - exact|, before any rounding to a 16-bit output */
    int64_t h_n, h_d, rescales; /* the largest of the row, for the verdict's hypotheses */
    double *keys;               /* scratch of fd_bound_row() */
} fd_bound;

/* Room for rows of up to kv_capacity keys and head_dim_v values. FD_OK or FD_NO_MEMORY. */
fd_status fd_bound_init(fd_bound *bound, int64_t kv_capacity, int32_t head_dim_v);
void fd_bound_free(fd_bound *bound);

/* The bound of a row of query head h of sequence b, given its oracle row (whose keys are the first of the cache),
 * for an implementation with these claims. `host` is how operations round where the claims do not say otherwise.
 * kv_len >= 1. Doubles, inflated by 2^-20, which covers every rounding made here. */
void fd_bound_row(const fd_arith *arith, const fd_rounding *host, const fd_problem *problem, int32_t b, int32_t h,
                  const fd_oracle_row *row, fd_bound *bound);

/* The same after o is rounded to dtype_o: adds u_o (|o| + bound), and the absolute error of a subnormal. */
double fd_bound_stored(double bound, double o, int32_t dtype_o);

#endif /* FD_BOUND_H */
