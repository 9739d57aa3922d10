/* sigma.c: the sigma model of proofs/README.md. Every rounding that occurs on a key's way adds its variance, in
 * units of u^2/3, taken at the actual partial sum. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sigma_parts.h"

/* ---- Room -------------------------------------------------------------------------------------- */

fd_status fd_sigma_init(fd_sigma *sigma, int64_t kv_capacity, int32_t head_dim_v)
{
    memset(sigma, 0, sizeof *sigma);
    sigma->o = calloc((size_t)head_dim_v + 1, sizeof(double));
    sigma->var = calloc((size_t)head_dim_v + 1, sizeof(double));
    sigma->bias = calloc((size_t)head_dim_v + 1, sizeof(double));
    sigma->logit = calloc((size_t)kv_capacity + 1, sizeof(double));
    sigma->chain = calloc((size_t)kv_capacity + 1, sizeof(double));
    sigma->sums = calloc((size_t)head_dim_v + 1, FD_SIGMA_MAX_NODES * sizeof(double));
    if (sigma->o == NULL || sigma->var == NULL || sigma->bias == NULL || sigma->logit == NULL || sigma->chain == NULL ||
        sigma->sums == NULL) {
        fd_sigma_free(sigma);
        return FD_NO_MEMORY;
    }
    for (int x = 0; x < FD_SIGMA_MAX_NODES; x++) {
        sigma->node[x].q = sigma->sums + (size_t)x * (size_t)head_dim_v;
    }
    return FD_OK;
}

void fd_sigma_free(fd_sigma *sigma)
{
    free(sigma->o);
    free(sigma->var);
    free(sigma->bias);
    free(sigma->logit);
    free(sigma->chain);
    free(sigma->sums);
    memset(sigma, 0, sizeof *sigma);
}

/* ---- A row ------------------------------------------------------------------------------------- */

/* Weights that are rounded to few bits err alike where they are alike: their errors are independent only if the
 * logits differ by more than the spacing of the type, which is 2 u_p at most. A dominating key has a weight of 1 and
 * no error. */
static bool spread_out(const fd_oracle_row *row, double u_p)
{
    const double n = (double)row->kv_len;
    double sum = 0.0, squares = 0.0;
    for (int64_t j = 0; j < row->kv_len; j++) {
        sum += row->gap[j];
        squares += row->gap[j] * row->gap[j];
    }
    return row->kv_len == 1 || !(squares / n - sum / n * (sum / n) < 16.0 * u_p * u_p);
}

/* Is there a model for these claims on this row? Long sums in fp16 stand still, which is no independent rounding;
 * tensor cores are walked in sequence only. */
static bool has_model(const fd_arith *arith, const fd_rounding *r, const fd_oracle_row *row)
{
    const fd_level *keys = &arith->level[0];
    const bool sequence =
        keys->order == FD_SEQUENTIAL && (keys->merge == FD_MERGE_ADD || keys->merge == FD_MERGE_RUNNING);
    return arith->num_levels > 0 && arith->accumulator != FD_ACC_F16 && arith->p_parts <= 1 &&
           (r->mma_keys == 0 || sequence) && fd_bound_counts(arith, row->kv_len).known &&
           (r->u_p == 0.0 || spread_out(row, r->u_p));
}

/* Variance of rounding o to dtype, absolute. */
static double stored_variance(double o, int32_t dtype)
{
    const double u_o = dtype == FD_F16 ? 0x1p-11 : 0x1p-8, least = dtype == FD_F16 ? 0x1p-25 : 0x1p-134;
    const double half = fmax(u_o * fabs(o), least);
    return dtype == FD_F16 || dtype == FD_BF16 ? half * half / 3.0 : 0.0;
}

void fd_sigma_row(const fd_arith *arith, const fd_rounding *host, const fd_problem *p, int32_t b, int32_t h,
                  const fd_oracle_row *row, fd_sigma *sigma)
{
    const fd_rounding r = fd_bound_rounding(arith, host);
    const int32_t dims = row->head_dim_v;
    const bool shifted = arith->shift == FD_SHIFT_MAX;
    const double unit = r.u * r.u / 3.0, eps = shifted ? r.exp_rel : fmax(r.exp_rel, r.exp_rel_positive);
    const double c_lse = (row->lse - row->s_max) + row->lse_lo;
    const double tiny = (r.exp_abs + 2.0 * r.eta) * exp(shifted ? -c_lse : -row->lse) / r.u;
    fd_sigma_model x = {.row = row,
                        .out = sigma,
                        .dims = dims,
                        .eps2 = eps * eps / (r.u * r.u),
                        .log2 = r.log_rel * r.log_rel / (r.u * r.u),
                        .c_lse = c_lse,
                        .u_p = r.u_p / r.u,
                        .eta_p = r.eta_p / r.u,
                        .p_in_l = arith->p_in_l != 0,
                        .u_partial = r.u_partial / r.u,
                        .eta_partial = r.eta_partial / r.u,
                        .mma = r.mma,
                        .mma_l = r.mma_l,
                        .mma_keys = r.mma_keys};
    for (int32_t i = 0; i < arith->num_levels && i < FD_MAX_LEVELS; i++) {
        x.divided = x.divided || arith->level[i].merge == FD_MERGE_NORMALISED || arith->level[i].merge == FD_MERGE_LSE;
    }

    memset(sigma->var, 0, (size_t)dims * sizeof *sigma->var);
    memset(sigma->bias, 0, (size_t)dims * sizeof *sigma->bias);
    memset(sigma->o, 0, (size_t)dims * sizeof *sigma->o);
    sigma->lse = 0.0;
    sigma->known = has_model(arith, &r, row) && fd_sigma_set_levels(&x, arith);
    if (!sigma->known) {
        return;
    }
    fd_sigma_walk(&x, arith, p, b, h, r.u, tiny * tiny);

    for (int32_t i = 0; i < dims; i++) {
        const double o = row->o[i], var = unit * (sigma->var[i] + o * o * (x.sum_d + 1.0));
        const double bias = sigma->bias[i] + fabs(o) * x.bias_l;
        const double sd = sqrt(var + stored_variance(o, p->o.dtype)) + bias / FD_SIGMA_LIMIT;
        sigma->o[i] = sd <= FD_SIGMA_SMALL * row->gauge[i] ? sd : 0.0;
    }
    /* fl(m + fl(ln l)); without a shift there is no m to add. */
    const bool inside = shifted && row->kv_len <= 1 << 20;
    const double log_err = (inside ? r.log_rel : r.log_rel_anywhere) * (shifted ? c_lse - x.root : row->lse);
    const double sum_err = shifted ? r.u * row->lse : 0.0;
    const double lse = sqrt(unit * (x.sum_w + x.sum_d) + (log_err * log_err + sum_err * sum_err) / 3.0) +
                       (x.bias_logit + x.bias_l) / FD_SIGMA_LIMIT;
    sigma->lse = lse <= FD_SIGMA_SMALL ? lse : 0.0;
}
