/* judge_parts.h: what the files of the judge share. A verdict is made of four runs of a rung (judge_exact.c), of each
 * row held against the oracle (judge_row.c), and of the sum over the rows (judge.c). Everyone else includes judge.h. */
#ifndef FD_JUDGE_PARTS_H
#define FD_JUDGE_PARTS_H

#include "judge.h"
#include "sigma.h"

typedef struct fd_row_verdict {
    bool failed, declared, declared_wrongly; /* declared: fails, as the rung says it does on such a row */
    fd_witness worst;
    double worst_ratio;
    double bound, ratio, lse_err, lse_bound, lse_ratio, max_abs;
    int64_t h_n, h_d, rescales, vacuous, undecided;
    double z, z_lse, z_squares; /* tier 3 */
    fd_witness z_worst;
    int64_t z_judged, z_no_model, z_above[FD_Z_LEVELS];
} fd_row_verdict;

/* The first failure decides tier and reason. */
void fd_judge_fail(fd_outcome *out, enum fd_tier tier, const char *reason);

/* ---- judge_exact.c: tier 1 ---- */

/* Runs the rung four times. The first result is kept; the others, with other poison in every byte that is no visible
 * token, and without lse, must have the same bits. FD_NO_MEMORY is the only status that is not a verdict. */
fd_status fd_judge_runs(fd_instance *instance, fd_outcome *out);

/* Exact answers of every row; rows that a rung declares to fail on are left to the declaration. expected: room for
 * [head_dim_v]. */
void fd_judge_known(const fd_instance *instance, fd_outcome *out, const fd_row_verdict *verdicts, float *expected);

/* ---- judge_row.c: tiers 2 and 3 ---- */

/* Row [b, t, h] of one rung. proved: hold it against the bound, else only measure. bound: of that row and those claims.
 * scaled, ulps: [head_dim_v] errors in units of u gauge and of the last place of dtype_o. */
void fd_judge_row(const fd_instance *instance, const fd_arith *claims, const fd_rounding *rounding,
                  const fd_oracle_row *row, int32_t b, int32_t t, int32_t h, bool proved, const fd_bound *bound,
                  fd_outcome *out, double *scaled, double *ulps, fd_row_verdict *v);

/* lines: [batch, q_len, heads_q, head_dim_v], then lse; left alone where the model says nothing. */
void fd_weigh_row(const fd_problem *p, const fd_oracle_row *row, const fd_sigma *sigma, int32_t b, int32_t t, int32_t h,
                  const fd_outcome *out, double *lines, fd_row_verdict *v);

#endif /* FD_JUDGE_PARTS_H */
