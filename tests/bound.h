/* bound.h: the pass line of tier 2, a theorem evaluated per element. proofs/README.md derives it and names every
 * hypothesis; the symbols here are the ones used there. */
#ifndef FD_BOUND_H
#define FD_BOUND_H

#include <math.h>
#include <stdbool.h>

#include "fd.h"
#include "oracle.h"

#define FD_BOUND_VERSION 1

/* What an arithmetic can do wrong in one operation. */
typedef struct fd_rounding {
    double u;                /* unit roundoff: 2^-24 for fp32, round to nearest */
    double eta;              /* largest absolute error of a product or quotient that underflows: 2^-150 */
    double largest;          /* largest finite number */
    double exp_rel, exp_abs; /* |fl(exp x) - exp x| <= exp_rel exp x + exp_abs for x <= 0 */
    double exp_rel_positive; /* the same for 0 < x (rungs without a shift) */
    double log_rel;          /* |fl(log x) - log x| <= log_rel |log x| for 1 <= x <= 2^20 */
    double log_rel_anywhere; /* the same for any other normal x */
} fd_rounding;

/* Roundings on the longest way from a key to the root of the merge tree that the claims describe, and how many rescaled
 * parts there are. R_j of a level with a running maximum depends on the data: see fd_bound_raises(). */
typedef struct fd_counts {
    bool known;         /* the claims describe a tree this theorem covers */
    int64_t additions;  /* A */
    int64_t rescales;   /* R, the exp of the key's own weight included, running levels at their fewest */
    int64_t normalised; /* levels whose parts were divided by their own l */
    int64_t parts;      /* X, products with a rescaling factor, in the whole row, at most */
    int64_t parts_norm; /* of these, on normalised levels */
    int64_t lse_merges; /* S, merges of (o, lse) on a key's way */
    double
        log_parts; /* sum over them of ln (keys that a part can hold, or 2 further up a tree): ln l is at most that */
    bool merged;   /* while counting: a level below has given its parts maxima of their own */
    int64_t running_part, running_group; /* keys a part and a group of the running level; 0, 0: no such level */
    int64_t running_most;                /* most rescales that level can add to a key */
    bool running_in_order;
} fd_counts;

/* Known kinds, 0 .. FD_MAX_LEVELS levels of at least one way, errors that are numbers in [0, 1)? */
bool fd_claims_make_sense(const fd_arith *arith);

/* The claims in words, for the hypotheses of a verdict: "shift: maximum; keys: added, in sequence". */
void fd_claims_text(const fd_arith *arith, char *text, size_t n);

fd_counts fd_bound_counts(const fd_arith *arith, int64_t kv_len);

/* h_N and h_D: roundings that a key's term meets in the numerator and in the denominator, with R_j rescales. */
static inline int64_t fd_bound_h_n(const fd_counts *c, int64_t r_j)
{
    return r_j + c->additions + 2 * c->normalised + c->lse_merges;
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

/* The host's arithmetic, with what the rung claims of its own in place of what was measured here. */
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

/* The bound of a row of query head h of sequence b, given its oracle row (whose keys are the first of the cache), for an implementation with these claims. `host` is
 * how operations round where the claims do not say otherwise. kv_len >= 1. Doubles, inflated by 2^-20, which covers every rounding made here. */
void fd_bound_row(const fd_arith *arith, const fd_rounding *host, const fd_problem *problem, int32_t b, int32_t h,
                  const fd_oracle_row *row, fd_bound *bound);

/* The same after o is rounded to dtype_o: adds u_o (|o| + bound), and the absolute error of a subnormal. */
double fd_bound_stored(double bound, double o, int32_t dtype_o);

#endif /* FD_BOUND_H */
