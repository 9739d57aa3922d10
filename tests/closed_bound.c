/* closed_bound.c. With Z_j <= z = max Z, the sharp bound's sums become moments:
 *
 *   e^Z_j - 1 <= (z' / z) Z_j, z' = e^z - 1, and Z_j = alpha a_j + beta gap_j + gamma, so
 *   sum p (e^Z - 1) |v - o| <= (z' / z) (alpha spread_a + beta spread_gap + gamma spread)
 *   sum p e^Z (g_N |v| + g_D |o|) <= e^z (g_N gauge + g_D |o|)
 *   sum p e^-Z (1 - u)^h_D >= e^-z (1 - u)^h_D
 *
 * Merges of (o, lse) add to gamma the roundings of lse and ln l; an lse is at most |s_max| + ... in size, or, where a logit
 * is larger than that, |s_max| + gap_j + ...: then to alpha and beta as well. Counts are the largest of the row: on a
 * running level, as if every part could raise the maximum. Every weight that is rounded may be one of those below the
 * normal range. */
#include "closed_bound.h"

#define INFLATE (1.0 + 0x1p-20) /* bound.c says what it covers */

fd_closed_bound fd_closed_bound_row(const fd_arith *arith, const fd_rounding *host, int32_t head_dim, float sm_scale,
                                    const fd_oracle_row *row, double *o)
{
    const fd_rounding r = fd_bound_rounding(arith, host);
    const fd_counts c = fd_bound_counts(arith, row->kv_len);
    const bool shifted = arith->shift == FD_SHIFT_MAX;
    const double n = (double)row->kv_len, parts = (double)c.parts;
    const double c_lse = shifted ? (row->lse - row->s_max) + row->lse_lo : 0.0;

    const int64_t most = c.rescales + c.running_most;
    const int64_t h_n = fd_bound_h_n(&c, most), h_d = fd_bound_h_d(&c, most);
    const double g_n = fd_bound_g_n(&r, &c, h_n, arith->p_in_l ? 0.0 : r.u_p), g_d = fd_bound_g_d(&r, &c, h_d);
    const double down = fd_bound_down_d(&r, &c, h_d), low = exp(down);
    const double magnify = exp(fd_bound_up_n(&r, &c, h_n)) * (1.0 + r.grow_p) / low;

    /* Z_j = alpha a_j + beta gap_j + gamma */
    const double exp_rel = shifted ? r.exp_rel : fmax(r.exp_rel, r.exp_rel_positive);
    const double g_dot = fd_bound_g_dot(&r, head_dim);
    const double floor = 2.0 * (fabs((double)sm_scale) * head_dim * r.eta * (1.0 + g_dot) + r.eta);
    const double excess = g_dot * row->a_max + floor;
    const double merges = (double)c.lse_merges, logs = c.log_parts - merges * down;
    const double log_rel = n * magnify <= 0x1p20 ? r.log_rel : r.log_rel_anywhere, per_merge = merges * r.u;
    /* 1 + 4 (merges + 1) u: products of the small ones, which bound.c writes out */
    const double more = (1.0 + log_rel) * exp(4.0 * per_merge + 4.0 * r.u);
    const double lse_size = merges > 0.0 ? (fabs(row->s_max) + excess + logs) * more : 0.0;
    const double lse_err = per_merge * lse_size + log_rel * logs + 2.0 * merges * r.eta;
    /* No lse of a part is larger than the row's, unless a logit is. */
    const bool within = fmax(fabs(row->s_max), fabs(row->s_max - row->gap_max)) + excess <= lse_size;
    const double slant = within ? 0.0 : per_merge * more;
    const double alpha = g_dot * (shifted ? 1.0 + r.u + slant : 1.0);
    const double beta = shifted ? (r.u + slant) * (1.0 + 0x1p-20) : 0x1p-49;
    const double gamma = 2.0 * floor + per_merge * floor +
                         (shifted ? r.u * (excess + 2.0 * logs - c.log_parts + 4.0 * lse_err) : 0.0) + lse_err * more +
                         (double)most * (r.eta - log1p(-exp_rel)) - (arith->p_in_l ? log1p(-r.u_p) : 0.0);
    const double z = (alpha * row->a_max + beta * row->gap_max + gamma) * INFLATE;
    const double slope = z > 0.0 ? expm1(z) / z : 1.0;

    const double omega = n * r.exp_abs * (double)most * exp((double)(most - 1) * log1p(exp_rel));
    /* Of rounded weights: all may be small. They are over the sum of weights, which is at least `weights`. */
    const double omega_p = n * r.eta_p, shared = arith->p_in_l != 0 ? 1.0 : 0.0;
    const double lost =
        (omega + 2.0 * parts * r.eta + shared * omega_p) * exp(shifted ? excess - c_lse : -row->lse) * (1.0 + g_d);
    const double mass_low = exp(-z) * low - lost, mass_high = exp(z) * (1.0 + g_d) + lost;
    const double denominator = shifted ? exp((double)c.mmas_d * log1p(-r.mma_l))
                                       : fmax(low * (exp(row->s_max - z) - r.exp_abs), mass_low * exp(row->lse));

    const double weights =
        shifted ? fmax(denominator, mass_low * exp(c_lse - excess - (logs + lse_err) * more)) : denominator;
    const double terms = arith->p_parts > 1 ? (double)arith->p_parts : 1.0;

    fd_closed_bound closed = {.known = c.known && r.mma_l < 1.0, .inflation = exp(2.0 * z)};
    for (int32_t i = 0; i < row->head_dim_v; i++) {
        const double size = fabs(row->o[i]), v_max = row->v_max[i];
        const double sum = slope * (alpha * row->spread_a[i] + beta * row->spread_gap[i] + gamma * row->spread[i]) +
                           exp(z) * (g_n * row->gauge[i] + g_d * size);
        const double absolute =
            omega * (v_max + size) +
            2.0 * r.eta * (terms * n + parts * (1.0 + size) + 2.0 * (double)c.parts_norm * v_max * magnify);
        const double small = omega_p * (v_max + shared * size) + r.eta_partial * (double)c.stores_plain;
        const double averaged = c.stores_plain == 0 ? r.eta_partial * (double)c.stores : 0.0;
        const bool bounded = closed.known && mass_low > 0.0 && denominator > 0.0;
        o[i] = bounded ? ((1.0 + r.u) * sum / mass_low + r.u * size + magnify * magnify * absolute / denominator +
                          r.eta * magnify * magnify * (1.0 + (double)c.normalised + merges) +
                          magnify * magnify * (averaged + small / weights)) *
                             INFLATE
                       : HUGE_VAL;
    }

    closed.lse = HUGE_VAL;
    if (closed.known && mass_low > 0.0) {
        const double e0 = fmax(log(mass_high), -log(mass_low)) * INFLATE + n * 0x1p-52;
        const double log_size = (shifted ? c_lse + excess + lse_err + logs * r.u : fabs(row->lse)) + e0;
        const bool inside = shifted && n * magnify <= 0x1p20;
        const double e1 = e0 + (inside ? r.log_rel : r.log_rel_anywhere) * log_size +
                          (arith->accumulator == FD_ACC_F16 ? r.eta : 0.0);
        closed.lse = (e1 + (shifted ? r.u * (fabs(row->lse) + e1) : 0.0)) * INFLATE;
    }
    return closed;
}
