/* bound.c: the sharp bound of proofs/README.md. Symbols: u, eta, a_j, gap_j, Z_j, R_j, A, h_N, h_D, F, U as there.
 *
 * Every sum below has terms >= 0 and at most 2^31 of them, so double arithmetic errs by less than 2^-21 relative; the
 * argument of exp is at most a few hundred where its value matters, which adds less than 2^-40. INFLATE covers both. */
#include "bound.h"

#include <math.h>
#include <stdlib.h>

#include "row.h"

#define INFLATE (1.0 + 0x1p-20)

/* Per key, in struct-of-arrays order within fd_bound.keys. */
enum { SLACK, RESCALES, WEIGHT_N, WEIGHT_D, EXCESS, OMEGA, OMEGA_P, KEY_FIELDS };

/* ---- Rescales ----------------------------------------------------------------------------------- */

/* R_j: rescales of key j. On a running level, the later parts of its group that can raise the maximum: part t can if
 * some key's logit, taken high, exceeds every earlier logit of the group, taken low. A part that cannot raise it
 * multiplies by exp(0) = 1 or not at all, which rounds nothing. */
static void count_rescales(const fd_counts *c, const fd_oracle_row *row, const double *slack, double *rescales)
{
    const int64_t n = row->kv_len;
    for (int64_t j = 0; j < n; j++) {
        rescales[j] = (double)(c->rescales + (c->running_in_order ? 0 : c->running_most));
    }
    if (c->running_part == 0 || !c->running_in_order) {
        return;
    }
    for (int64_t group = 0; group < n; group += c->running_group) {
        const int64_t end = group + c->running_group < n ? group + c->running_group : n;
        double low = -HUGE_VAL; /* every maximum so far is at least this */
        for (int64_t part = group; part < end; part += c->running_part) {
            const int64_t part_end = part + c->running_part < end ? part + c->running_part : end;
            double high = -HUGE_VAL, part_low = -HUGE_VAL;
            for (int64_t j = part; j < part_end; j++) {
                high = fmax(high, -row->gap[j] + slack[j]);
                part_low = fmax(part_low, -row->gap[j] - slack[j]);
            }
            if (part > group && high > low) { /* this part can raise: one rescale for every earlier key of the group */
                rescales[part - 1] += 1.0;
            }
            low = fmax(low, part_low);
        }
        /* rescales[part - 1] now marks a raise after key part - 1; sum the marks from the end of the group. */
        const double base = (double)c->rescales;
        double after = 0.0;
        for (int64_t j = end - 1; j >= group; j--) {
            after += rescales[j] - base;
            rescales[j] = base + after;
        }
    }
}

/* ---- The bound --------------------------------------------------------------------------------- */

fd_status fd_bound_init(fd_bound *bound, int64_t kv_capacity, int32_t head_dim_v)
{
    *bound = (fd_bound){0};
    bound->keys = calloc((size_t)kv_capacity + 1, KEY_FIELDS * sizeof(double));
    bound->o = calloc((size_t)head_dim_v, sizeof(double));
    if (bound->keys == NULL || bound->o == NULL) {
        fd_bound_free(bound);
        return FD_NO_MEMORY;
    }
    return FD_OK;
}

void fd_bound_free(fd_bound *bound)
{
    free(bound->keys);
    free(bound->o);
    *bound = (fd_bound){0};
}

/* What the whole row contributes to every column's bound. */
typedef struct row_terms {
    double mass_low;    /* sum p e^-Z (1 - u)^h_D - Omega: the smallest denominator, over the exact sum of weights */
    double mass_high;   /* sum p e^Z (1 + u)^h_D + Omega */
    double max_excess;  /* E: how far the computed maximum can exceed the exact one */
    double denominator; /* the smallest computed denominator itself: absolute errors are divided by it */
    double least_sum; /* the same, or as much of it as the weights make: for absolute errors of weights and partial_o */
    double magnify;   /* (1 + u)^h_N / (1 - u)^h_D and what else can grow and shrink, the largest */
    double max_weight;       /* the largest that a weight can be as it meets v */
    double max_v, max_gauge; /* over the whole row, for the range precondition */
    /* Of merges of (o, lse), 0 without them: */
    double logs;      /* what the logarithms err by on a key's way, together */
    double lse_rise;  /* how far the last shift, an lse, can exceed the computed maximum */
    double lse_size;  /* the largest |lse| of a part that the largest key can be in */
    double lse_slop;  /* all roundings of lse on the way */
    double lse_below; /* and how far the last shift can be below the computed maximum */
} row_terms;

/* |fl(q.k sm_scale) - s_j|, products that underflow included (and additions, where subnormals are flushed: hence the
 * 2), plus the rounding of gap_j to a double. */
static void fill_slack(const fd_rounding *r, const fd_oracle_row *row, int32_t head_dim, double sm_scale, double *slack)
{
    const double g_dot = fd_bound_g_dot(r, head_dim);
    const double floor = 2.0 * (fabs(sm_scale) * head_dim * r->eta * (1.0 + g_dot) + r->eta);
    for (int64_t j = 0; j < row->kv_len; j++) {
        slack[j] = (row->a[j] > 0.0 ? (g_dot * row->a[j] + floor) * INFLATE : 0.0) + 0x1p-50 * row->gap[j];
    }
}

/* Each merge replaces m by fl(m + fl(ln l)): its size is at most that of the maximum and of ln l, and so are its
 * errors. */
static void fill_lse_terms(const fd_rounding *r, const fd_counts *c, const fd_oracle_row *row, int64_t h_d,
                           row_terms *t)
{
    const double steps = (double)c->lse_merges, below = -fd_bound_down_d(r, c, h_d), top = fabs(row->s_max);
    const double log_rel = (double)row->kv_len * t->magnify <= 0x1p20 ? r->log_rel : r->log_rel_anywhere;
    t->logs = c->log_parts + steps * below;
    t->lse_slop =
        steps * r->u * (top + t->max_excess + t->logs * (1.0 + log_rel)) * exp(2.0 * steps * r->u) + steps * r->eta;
    t->lse_rise = t->logs * (1.0 + log_rel) + t->lse_slop;
    t->lse_size = steps > 0.0 ? top + t->max_excess + t->lse_rise : 0.0;
    t->lse_below = t->lse_slop + steps * below * (1.0 + log_rel);
    t->logs *= log_rel;
}

/* May key j's weight be so small, where it is rounded, that its error is an absolute one? It is taken to the shift
 * of its part, which is at most the last. */
static bool may_be_small(const fd_rounding *r, const fd_oracle_row *row, bool shifted, double slack, double excess,
                         int64_t j)
{
    const double path = row->gap[j] + slack + excess;
    const double exponent = shifted ? -path * (1.0 + r->u) : row->s_max - row->gap[j] - slack;
    return !(exp(exponent) * (1.0 - r->exp_rel) * (1.0 - 0x1p-30) - r->exp_abs >= r->small_p);
}

static row_terms fill_keys(const fd_arith *arith, const fd_rounding *r, const fd_counts *c, const fd_oracle_row *row,
                           double *const field[KEY_FIELDS], fd_bound *bound)
{
    const int64_t n = row->kv_len;
    const bool shifted = arith->shift == FD_SHIFT_MAX, shared = arith->p_in_l != 0;
    const double c_lse = (row->lse - row->s_max) + row->lse_lo; /* ln sum exp(-gap) >= 0 */
    const double exp_rel = shifted ? r->exp_rel : fmax(r->exp_rel, r->exp_rel_positive);
    const double eps = -log1p(-exp_rel);

    row_terms t = {0};
    for (int64_t j = 0; j < n; j++) {
        t.max_excess = fmax(t.max_excess, field[SLACK][j] - row->gap[j]);
        bound->rescales = field[RESCALES][j] > (double)bound->rescales ? (int64_t)field[RESCALES][j] : bound->rescales;
    }
    bound->h_n = fd_bound_h_n(c, bound->rescales);
    bound->h_d = fd_bound_h_d(c, bound->rescales);
    t.magnify = exp(fd_bound_up_n(r, c, bound->h_n) - fd_bound_down_d(r, c, bound->h_d)) * (1.0 + r->grow_p);

    fill_lse_terms(r, c, row, bound->h_d, &t);

    const double steps = (double)c->lse_merges;
    double omega_sum = 2.0 * (double)c->parts * r->eta, least_weight = 0.0;
    for (int64_t j = 0; j < n; j++) {
        const double r_j = field[RESCALES][j];
        const int64_t h_n = fd_bound_h_n(c, (int64_t)r_j), h_d = fd_bound_h_d(c, (int64_t)r_j);
        /* The lse of a part that holds key j lies between s_j and the row's own. */
        const double lse_size = steps > 0.0 ? fmax(fabs(row->s_max - row->gap[j]) + field[SLACK][j], t.lse_size) : 0.0;
        const double lse_err = steps * r->u * (lse_size + t.lse_slop) + t.logs + steps * r->eta;
        const double path =
            shifted ? row->gap[j] + field[SLACK][j] + t.max_excess + t.lse_rise + t.lse_below + lse_err : 0.0;
        const double exponent = (row->gap[j] + field[SLACK][j] + t.max_excess) * (1.0 + r->u) + eps;
        const double u_p = fd_bound_u_p(r, shifted ? exponent * INFLATE : HUGE_VAL);
        const double z_p = shared ? -log1p(-u_p) : 0.0; /* where l sums the rounded weights, their errors are Z's */
        const double z = (field[SLACK][j] + r->u * path + r_j * (eps + r->eta) + lse_err + z_p) * INFLATE;
        const double p = exp(-row->gap[j] - c_lse), p_high = exp(z - row->gap[j] - c_lse);
        const double omega = r->exp_abs * r_j * exp((r_j - 1.0) * log1p(exp_rel));

        field[WEIGHT_N][j] = p_high * fd_bound_g_n(r, c, h_n, shared ? 0.0 : u_p);
        field[WEIGHT_D][j] = p_high * fd_bound_g_d(r, c, h_d);
        field[EXCESS][j] = z < 1.0 ? p * expm1(z) : p_high - p;
        field[OMEGA][j] = omega;
        field[OMEGA_P][j] =
            r->eta_p > 0.0 && may_be_small(r, row, shifted, field[SLACK][j], t.max_excess, j) ? r->eta_p : 0.0;
        omega_sum += omega + (shared ? field[OMEGA_P][j] : 0.0);
        t.max_weight = fmax(t.max_weight, shifted ? 1.0 : exp(row->s_max - row->gap[j] + z));
        t.mass_low += exp(-z - row->gap[j] - c_lse + fd_bound_down_d(r, c, h_d));
        t.mass_high += p_high * exp(fd_bound_up_d(r, c, h_d));
        if (!shifted) {
            least_weight = fmax(least_weight, exp(row->s_max - row->gap[j] - z) - omega);
        }
    }
    const double omega =
        omega_sum * exp((shifted ? t.max_excess - c_lse : -row->lse) + fd_bound_up_d(r, c, bound->h_d));
    t.mass_low -= omega;
    t.mass_high += omega;
    t.denominator = shifted ? exp((double)c->mmas_d * log1p(-r->mma_l))
                            : fmax(least_weight * exp(fd_bound_down_d(r, c, bound->h_d)), t.mass_low * exp(row->lse));
    t.least_sum = shifted ? fmax(t.denominator, t.mass_low * exp(c_lse - t.max_excess - t.lse_rise)) : t.denominator;
    return t;
}

static double lse_bound(const fd_arith *arith, const fd_rounding *r, const fd_oracle_row *row, const row_terms *t)
{
    const bool shifted = arith->shift == FD_SHIFT_MAX;
    const double c_lse = (row->lse - row->s_max) + row->lse_lo;
    /* The sums are near 1: evaluating them errs by n 2^-53 absolute in the logarithm. */
    const double e0 = fmax(log(t->mass_high), -log(t->mass_low)) * INFLATE + (double)row->kv_len * 0x1p-52;
    /* The logarithm is taken of the sum over exp(s - m), or of the raw sum. */
    const double log_size = (shifted ? c_lse + t->max_excess + t->lse_below : fabs(row->lse)) + e0;
    const bool inside = shifted && (double)row->kv_len * t->magnify <= 0x1p20;
    const double e1 = e0 + (inside ? r->log_rel : r->log_rel_anywhere) * log_size +
                      (arith->accumulator == FD_ACC_F16 ? r->eta : 0.0); /* a logarithm can be subnormal in fp16 */
    const double add = shifted ? r->u * (fabs(row->lse) + e1) : 0.0;
    return (e1 + add) * INFLATE;
}

void fd_bound_row(const fd_arith *arith, const fd_rounding *host, const fd_problem *p, int32_t b, int32_t h,
                  const fd_oracle_row *row, fd_bound *bound)
{
    const fd_rounding rounding = fd_bound_rounding(arith, host), *r = &rounding;
    const int64_t n = row->kv_len;
    const int32_t h_kv = h / fd_group(p), dims = row->head_dim_v;
    const fd_counts c = fd_bound_counts(arith, n);
    double *field[KEY_FIELDS];
    for (int i = 0; i < KEY_FIELDS; i++) {
        field[i] = bound->keys + i * n;
    }
    bound->known = c.known && dims <= FD_HEAD_DIM_MAX && fd_claims_make_sense(arith) && r->mma_l < 1.0;
    bound->rescales = bound->h_n = bound->h_d = 0;

    if (!bound->known) {
        bound->lse = HUGE_VAL;
        bound->admissible = true;
        for (int32_t i = 0; i < dims; i++) {
            bound->o[i] = HUGE_VAL;
        }
        return;
    }

    fill_slack(r, row, p->head_dim, (double)p->sm_scale, field[SLACK]);
    count_rescales(&c, row, field[SLACK], field[RESCALES]);
    row_terms t = fill_keys(arith, r, &c, row, field, bound);

    /* Column sums, a key at a time: F's numerator, the exp underflow term, the largest |v|. */
    double sum_f[FD_HEAD_DIM_MAX] = {0.0}, sum_omega[FD_HEAD_DIM_MAX] = {0.0}, max_v[FD_HEAD_DIM_MAX] = {0.0};
    double sum_p[FD_HEAD_DIM_MAX] = {0.0}; /* of the absolute errors of rounded weights */
    const double shared = arith->p_in_l != 0 ? 1.0 : 0.0;
    float v[FD_HEAD_DIM_MAX];
    for (int64_t j = 0; j < n; j++) {
        const double excess = field[EXCESS][j], w_n = field[WEIGHT_N][j], w_d = field[WEIGHT_D][j],
                     om = field[OMEGA][j], om_p = field[OMEGA_P][j];
        fd_load_v(p, b, j, h_kv, v);
        for (int32_t i = 0; i < dims; i++) {
            const double v_ji = (double)v[i], size = fabs(v_ji), o = row->o[i];
            sum_f[i] += excess * fabs(v_ji - o) + w_n * size + w_d * fabs(o);
            sum_omega[i] += om * (size + fabs(o));
            sum_p[i] += om_p * (size + shared * fabs(o));
            max_v[i] = size > max_v[i] ? size : max_v[i];
        }
    }

    const double magnify2 = t.magnify * t.magnify;
    const int64_t terms = arith->p_parts > 1 ? arith->p_parts : 1; /* of a weight: products with v */
    for (int32_t i = 0; i < dims; i++) {
        const double o = fabs(row->o[i]);
        const double f = t.mass_low > 0.0 ? sum_f[i] / t.mass_low : HUGE_VAL;
        const double absolute = sum_omega[i] + 2.0 * r->eta *
                                                   ((double)(n * terms) + (double)c.parts * (1.0 + o) +
                                                    2.0 * (double)c.parts_norm * max_v[i] * t.magnify);
        const double underflow = (t.denominator > 0.0 ? magnify2 * absolute / t.denominator : HUGE_VAL) +
                                 r->eta * magnify2 * (1.0 + (double)c.normalised + (double)c.lse_merges);
        const double small = sum_p[i] + r->eta_partial * (double)c.stores_plain;
        const double averaged = c.stores_plain == 0 ? r->eta_partial * (double)c.stores : 0.0;
        const double rounded = magnify2 * (averaged + (small == 0.0        ? 0.0
                                                       : t.least_sum > 0.0 ? small / t.least_sum
                                                                           : HUGE_VAL));
        bound->o[i] = ((1.0 + r->u) * f + r->u * o + underflow + rounded) * INFLATE;
        t.max_v = fmax(t.max_v, max_v[i]);
        t.max_gauge = fmax(t.max_gauge, row->gauge[i]);
    }
    bound->lse = t.mass_low > 0.0 ? lse_bound(arith, r, row, &t) : HUGE_VAL;

    const double scale = fabs((double)p->sm_scale), grow = 1.0 + fd_bound_g_dot(r, p->head_dim);
    /* The sums before the division: of weights of at most 1; without a shift, of exp(s) and exp(s) |v|. There the
     * row is not the rung's either where the sum may vanish. */
    const double sums = arith->shift == FD_SHIFT_MAX ? (double)n * fmax(t.max_v, 1.0)
                                                     : exp(row->lse) * fmax(t.max_gauge, 1.0) * t.magnify;
    const double partial = c.stores == 0 ? 0.0 : c.stores_plain > 0 ? sums : t.max_v;
    bound->admissible = 2.0 * row->a_max * grow < r->largest && sums * t.magnify < r->largest && t.denominator > 0.0 &&
                        (scale == 0.0 || row->a_max / scale * grow < r->largest) &&
                        (r->eta_p == 0.0 || t.max_weight * (1.0 + r->u_p) < r->largest_p) &&
                        (r->eta_partial == 0.0 || partial * t.magnify < r->largest_partial);
}

double fd_bound_stored(double bound, double o, int32_t dtype_o)
{
    if (!isfinite(bound)) {
        return HUGE_VAL;
    }
    const double u_o = dtype_o == FD_F16 ? 0x1p-11 : dtype_o == FD_BF16 ? 0x1p-8 : 0.0;
    const double subnormal = dtype_o == FD_F16 ? 0x1p-25 : dtype_o == FD_BF16 ? 0x1p-134 : 0.0;
    return bound + u_o * (fabs(o) + bound) + subnormal;
}
