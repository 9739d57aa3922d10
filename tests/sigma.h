/* sigma.h: tier 3, the statistical tier. A model, not a theorem: how far a right rung is off in the mean, if its
 * roundings are independent. proofs/README.md, "The statistical tier", derives it; the symbols here are the ones used
 * there. It is asked only about seeded random families (fd_gen_random_family). */
#ifndef FD_SIGMA_H
#define FD_SIGMA_H

#include <stdbool.h>

#include "bound.h"
#include "fd.h"
#include "oracle.h"

#define FD_SIGMA_VERSION 2
#define FD_SIGMA_LIMIT 6.0     /* standard deviations: the line of tier 3 */
#define FD_SIGMA_SMALL 0x1p-6  /* of the gauge (for lse: this); above, first order is not enough and nothing is said */
#define FD_SIGMA_MAX_NODES 128 /* open sums at any moment: one a level, or one a height of a level's tree */

/* One sum that is not finished: of p and of p v over the keys it holds, in units of the whole row's sum of weights. */
typedef struct fd_sigma_node {
    double p, *q;        /* sum p_j; [head_dim_v] sum p_j v_ji */
    double m;            /* its largest logit, less the row's: <= 0 */
    int64_t first, size; /* first key; parts of its level that it holds */
} fd_sigma_node;

/* The standard deviations of one row. 0: the model says nothing about that element. */
typedef struct fd_sigma {
    bool known; /* false: no model for these claims, and all are 0 */
    double lse;
    double *o; /* [head_dim_v], after rounding to the problem's dtype_o */

    double *logit; /* [kv_len] variance of s_j, in units of u^2/3: fd_sigma_logits() */
    double *chain; /* [kv_len] |sm_scale| times the sum of |prefix sums| before every 16th product but the first */
    double *var;   /* [head_dim_v] scratch */
    double *bias;  /* [head_dim_v] scratch: errors that are no independent roundings, at their largest */
    double *sums;  /* storage of the nodes */
    fd_sigma_node node[FD_SIGMA_MAX_NODES];
} fd_sigma;

/* Room for rows of up to kv_capacity keys and head_dim_v values. FD_OK or FD_NO_MEMORY. */
fd_status fd_sigma_init(fd_sigma *sigma, int64_t kv_capacity, int32_t head_dim_v);
void fd_sigma_free(fd_sigma *sigma);

/* The part that is the same for all claims: the variance of the logits of row [b, t, h]. Call it once a row. */
void fd_sigma_logits(const fd_problem *problem, int32_t b, int32_t t, int32_t h, const fd_oracle_row *row,
                     fd_sigma *sigma);

/* Standard deviations of that row for an implementation with these claims, after fd_sigma_logits() of the same row.
 * kv_len >= 1. Nothing is known of claims that no theorem covers, and of an order that is not declared. */
void fd_sigma_row(const fd_arith *arith, const fd_rounding *host, const fd_problem *problem, int32_t b, int32_t h,
                  const fd_oracle_row *row, fd_sigma *sigma);

#endif /* FD_SIGMA_H */
