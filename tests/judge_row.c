/* judge_row.c: one row of one rung against the oracle: tier 2, the proved bound, and tier 3, the sigma model. */
#include <math.h>

#include "judge_parts.h"

#define LN_LARGEST 88.7228391   /* ln of the largest fp32 number, rounded up */
#define LN_VANISHED -103.972078 /* ln 2^-150, rounded down: fp32 exponentials below are 0 */
#define U32 0x1p-24             /* the unit of scaled errors, whatever the storage type */

/* ---- Tier 2: proved ---------------------------------------------------------------------------- */

/* The unit in the last place of dtype around x: the spacing of its numbers just above |x|, subnormals included. */
static double ulp(double x, int32_t dtype)
{
    const int bits = dtype == FD_F16 ? 11 : dtype == FD_BF16 ? 8 : 24;
    const int least = dtype == FD_F16 ? -14 : -126;
    const int exponent = x == 0.0 ? least : ilogb(x);
    return ldexp(1.0, (exponent < least ? least : exponent) - (bits - 1));
}

/* err against bound with the oracle's radius: the comparisons are false for NaN. A bound that is vacuous can fail an
 * element, but not pass it. */
static void decide(fd_row_verdict *v, fd_witness witness, double err, double radius, bool vacuous, bool is_lse)
{
    const bool fails = !(err - radius <= witness.bound);
    const double ratio = isnan(err) ? HUGE_VAL : witness.bound > 0.0 ? err / witness.bound : fails ? HUGE_VAL : 0.0;
    if (!fails && vacuous) {
        v->vacuous++;
        return;
    }
    if (!fails && !(err + radius <= witness.bound)) {
        v->undecided++;
    }
    if ((fails && !v->failed) || (fails == v->failed && ratio > v->worst_ratio)) {
        v->worst = witness;
        v->worst_ratio = ratio;
    }
    v->failed = v->failed || fails;
    if (is_lse) {
        v->lse_ratio = fmax(v->lse_ratio, ratio);
    } else {
        v->ratio = fmax(v->ratio, ratio);
    }
}

/* Does the rung declare to fail on this row, and must any sum of fp32 exponentials fail there: overflow, or vanish? */
static bool declares_failure(const fd_arith *claims, const fd_rounding *r, const fd_oracle_row *row, int32_t head_dim)
{
    const double slop = fd_bound_g(r->u, (int64_t)head_dim + 1) * row->a_max + 1e-3;
    const bool overflows = row->lse - slop > LN_LARGEST && row->lse > (double)claims->fails_above;
    const bool vanishes = row->s_max + slop < LN_VANISHED && row->s_max < (double)claims->fails_below;
    return claims->shift == FD_SHIFT_NONE && (overflows || vanishes);
}

/* Numbers of at least this size do not fit the type of o. */
static double output_limit(int32_t dtype)
{
    return dtype == FD_F16 ? 65520.0 : dtype == FD_BF16 ? 0x1.ffp127 : HUGE_VAL;
}

/* Is v[i] of every key that the row sees 0? Then so is o[i]. A gauge of 0 alone may be a product that a double cannot hold. */
static bool averages_zeros(const fd_problem *p, const fd_oracle_row *row, int32_t b, int32_t h, int32_t i)
{
    for (int64_t j = 0; j < row->kv_len; j++) {
        if (fd_load(&p->v, fd_kv_at(p, &p->v, b, j, h / fd_group(p)) + i * p->v.stride[3]) != 0.0f) {
            return false;
        }
    }
    return true;
}

void fd_judge_row(const fd_instance *instance, const fd_arith *claims, const fd_rounding *rounding,
                  const fd_oracle_row *row, int32_t b, int32_t t, int32_t h, bool proved, const fd_bound *bound,
                  fd_outcome *out, double *scaled, double *ulps, fd_row_verdict *v)
{
    const fd_problem *p = &instance->problem;
    const int32_t dims = p->head_dim_v;
    const int64_t at = fd_row_index(p, b, t, h);
    *v = (fd_row_verdict){.bound = HUGE_VAL, .h_n = bound->h_n, .h_d = bound->h_d, .rescales = bound->rescales};
    v->declared = declares_failure(claims, rounding, row, p->head_dim);
    v->lse_bound = bound->lse;
    v->lse_err = instance->lse_absent ? 0.0 : fabs(((double)out->lse[at] - row->lse) - row->lse_lo);
    bool wrong = !(v->lse_err <= FD_VACUOUS);
    for (int32_t i = 0; i < dims; i++) {
        const float got = out->o[at * dims + i];
        const double gauge = row->gauge[i];
        const double err = fabs(((double)got - row->o[i]) - row->o_lo[i]);
        const double line = fd_bound_stored(bound->o[i], row->o[i], p->o.dtype);
        const bool fits = fabs(row->o[i]) + line < output_limit(p->o.dtype) || !isfinite(line);

        wrong = wrong || !(err <= FD_VACUOUS * gauge);
        scaled[i] = err == 0.0 ? 0.0 : err / (U32 * gauge);
        ulps[i] = err / ulp(row->o[i], p->o.dtype);
        out->pass_line[at * dims + i] = line;
        v->max_abs = fmax(v->max_abs, isnan(err) ? HUGE_VAL : err);
        if (v->declared || !proved) {
            continue;
        }
        if (!bound->admissible || !fits) {
            v->vacuous++;
        } else if (gauge == 0.0 && averages_zeros(p, row, b, h, i)) {
            decide(v, (fd_witness){b, t, h, i, got, 0.0, 0.0}, err, 0.0, false, false);
        } else {
            const bool vacuous = !(line <= FD_VACUOUS * gauge);
            decide(v, (fd_witness){b, t, h, i, got, row->o[i], line}, err, row->radius[i], vacuous, false);
            v->bound = vacuous ? v->bound : fmin(v->bound, line / (U32 * gauge));
        }
    }

    out->pass_line[fd_row_count(p) * dims + at] = instance->lse_absent ? HUGE_VAL : bound->lse;
    if (!proved) {
        v->lse_err = 0.0;
    } else if (v->declared) {
        v->declared_wrongly = !wrong;
    } else if (instance->lse_absent) {
        v->lse_bound = 0.0;
    } else if (bound->admissible) {
        const bool vacuous = !(bound->lse <= FD_VACUOUS);
        decide(v, (fd_witness){b, t, h, -1, out->lse[at], row->lse, bound->lse}, v->lse_err, row->lse_radius, vacuous,
               true);
    } else {
        v->vacuous++;
    }
}

/* ---- Tier 3: statistical ----------------------------------------------------------------------- */

/* got against want in standard deviations: the comparison is false for NaN. *line receives the element's pass line. */
static void weigh(fd_row_verdict *v, fd_witness witness, double err, double sd, double *line)
{
    const double z = isnan(err) ? HUGE_VAL : err / sd;
    double *largest = witness.i < 0 ? &v->z_lse : &v->z;
    witness.bound = *line = FD_SIGMA_LIMIT * sd;
    if (!(z <= fmax(v->z, v->z_lse))) {
        v->z_worst = witness;
    }
    *largest = fmax(*largest, z);
    v->z_judged++;
    v->z_squares += z * z;
    for (int k = 0; k < FD_Z_LEVELS; k++) {
        v->z_above[k] += !(z <= FD_Z_FROM + k);
    }
}

void fd_weigh_row(const fd_problem *p, const fd_oracle_row *row, const fd_sigma *sigma, int32_t b, int32_t t, int32_t h,
                  const fd_outcome *out, double *lines, fd_row_verdict *v)
{
    const int32_t dims = p->head_dim_v;
    const int64_t at = fd_row_index(p, b, t, h), first_lse = fd_row_count(p) * dims;
    v->z_no_model += sigma->known ? 0 : dims + 1;
    for (int32_t i = 0; i < dims; i++) {
        const float got = out->o[at * dims + i];
        if (sigma->o[i] > 0.0) {
            weigh(v, (fd_witness){b, t, h, i, got, row->o[i], 0.0}, fabs(((double)got - row->o[i]) - row->o_lo[i]),
                  sigma->o[i], &lines[at * dims + i]);
        }
    }
    const float got = out->lse[at];
    if (sigma->lse > 0.0) {
        weigh(v, (fd_witness){b, t, h, -1, got, row->lse, 0.0}, fabs(((double)got - row->lse) - row->lse_lo),
              sigma->lse, &lines[first_lse + at]);
    }
}
