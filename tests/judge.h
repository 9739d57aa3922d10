/* judge.h: the verdict on a rung for one case. Tier 1 is exact: poison, guards, repeatability, known answers. Tier 2 is
 * proved: every element of o and lse within the bound of bound.h around the oracle's answer. Tier 3 is statistical, on
 * random families only: within 6 standard deviations of the model in sigma.h, which is no theorem. */
#ifndef FD_JUDGE_H
#define FD_JUDGE_H

#include "bound.h"
#include "instance.h"

#define FD_JUDGE_VERSION 4

/* A bound above this share of the gauge (for lse: above this) proves nothing and is counted as vacuous. */
#define FD_VACUOUS 0x1p-4

enum fd_verdict { FD_PASS = 0, FD_FAIL, FD_EXPECTED_FAILURE, FD_SKIP };
enum fd_tier { FD_TIER_NONE = 0, FD_TIER_EXACT, FD_TIER_PROVED, FD_TIER_STATISTICAL, FD_TIER_METAMORPHIC };

#define FD_Z_FROM 3 /* fd_outcome.z_above counts from 3 standard deviations */
enum { FD_Z_LEVELS = 4 };

/* One element out of line. i is -1 for lse. */
typedef struct fd_witness {
    int32_t b, t, h, i;
    float got;
    double want, bound; /* absolute */
} fd_witness;

typedef struct fd_outcome {
    const fd_rung *rung;
    int32_t verdict, tier; /* fd_verdict; the first tier that failed */
    char reason[240];      /* of a failure or a skip, one line */
    fd_witness worst;      /* where a failed tier failed worst, else the element closest to its bound */

    char declared[FD_CLAIMS_TEXT]; /* the hypotheses of tier 2: fd_claims_text() of the rung, and what is proof open */
    int32_t num_splits;            /* of the plan; 0: none */
    int64_t h_n, h_d, rescales;    /* the largest over the rows */
    double err_max, err_p50;       /* scaled error |o - o*| / (u gauge) */
    double bound;                  /* smallest pass line of an element, in the same unit */
    double ratio;                  /* largest |o - o*| / bound over the elements that tier 2 decides */
    double lse_err, lse_bound;     /* largest |lse - lse*|, smallest bound; absolute */
    double lse_ratio;
    double ulp_p50, ulp_max; /* |o - o*| in units of the last place of dtype_o */
    double ulp_p90, ulp_p99;
    double max_abs;                       /* |o - o*| */
    int64_t elements, vacuous, undecided; /* of o and lse together */
    int64_t exact;                        /* elements that tier 1 decided against a known answer */
    int64_t rows, rows_declared;          /* rows that the rung declares to fail on */
    double z_max, z_lse;                  /* largest |o - o*| and |lse - lse*| in standard deviations of tier 3 */
    int64_t z_judged;                     /* elements that tier 3 judged, of o and lse together */
    int64_t z_no_model;                   /* elements of a random family that it has no model for */
    double z_squares;                     /* sum of their squares: about z_judged, if the model is right in the mean */
    int64_t z_above[FD_Z_LEVELS];         /* of these, above 3, 4, 5, 6 standard deviations */

    float *o, *lse; /* [batch, q_len, heads_q, head_dim_v], [batch, q_len, heads_q]: what the rung returned */
    double *
        pass_line; /* [batch, q_len, heads_q, head_dim_v], then lse [batch, q_len, heads_q]: bounds, infinite where there is none. After
                     * a failure of tier 3: its lines, where it judged */
} fd_outcome;

/* Judges every rung on the instance, which is generated once and whose oracle rows are computed once, a head at a time.
 * outcomes: one per rung, to be freed with fd_outcomes_free(). FD_OK whatever the verdicts are; otherwise the case
 * could not be judged, and why says the reason. */
fd_status fd_judge(fd_instance *instance, const fd_rung *const *rungs, int count, const fd_rounding *rounding,
                   fd_outcome *outcomes, char *why, size_t n);

/* The same, tiers up to `highest` only. A tier that is not asked fails nothing and leaves its numbers 0. */
fd_status fd_judge_tiers(fd_instance *instance, const fd_rung *const *rungs, int count, const fd_rounding *rounding,
                         enum fd_tier highest, fd_outcome *outcomes, char *why, size_t n);
void fd_outcomes_free(fd_outcome *outcomes, int count);

/* Does the case count as verified for this outcome: no failure, and decided by tier 1 or tier 2? */
bool fd_decided(const fd_outcome *outcome);

#endif /* FD_JUDGE_H */
