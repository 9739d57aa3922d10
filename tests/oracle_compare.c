/* oracle_compare.c: o and lse against the sum of their radii; the rest against a unit in the last place, and the upper
 * bounds against what they may be inflated by. */
#include "oracle_compare.h"

#include <float.h>
#include <math.h>

/* A difference of `apart` where `allowed` is. */
static void weigh(fd_disagreement *d, bool has_radius, const char *where, int64_t index, double apart, double allowed)
{
    const double ratio = apart == 0.0 ? 0.0 : apart <= HUGE_VAL && allowed > 0.0 ? apart / allowed : HUGE_VAL;
    double *worst = has_radius ? &d->radii : &d->other;
    if (ratio > fmax(d->radii, d->other)) {
        d->where = where;
        d->index = index;
    }
    *worst = fmax(*worst, ratio);
}

/* A double, correctly rounded in both or off by a unit. */
static void weigh_double(fd_disagreement *d, const char *where, int64_t index, double x, double y)
{
    weigh(d, false, where, index, x == y ? 0.0 : fabs(x - y), DBL_EPSILON * fmin(fabs(x), fabs(y)) + 0x1p-1073);
}

/* Upper bounds, each inflated by `relative` at most and by `absolute`. */
static void weigh_bound(fd_disagreement *d, const char *where, int64_t index, double x, double y, double relative,
                        double absolute)
{
    weigh(d, false, where, index, fabs(x - y), relative * fmax(fabs(x), fabs(y)) + absolute);
}

void fd_oracle_compare(const fd_oracle_row *x, const fd_oracle_row *y, int32_t head_dim, fd_disagreement *d)
{
    if (x->kv_len != y->kv_len || x->head_dim_v != y->head_dim_v) {
        weigh(d, false, "shape", 0, HUGE_VAL, 0.0);
        return;
    }
    if (x->kv_len > 0 || x->lse != y->lse) {
        weigh(d, true, "lse", 0, fabs((x->lse - y->lse) + (x->lse_lo - y->lse_lo)), x->lse_radius + y->lse_radius);
        weigh_double(d, "s_max", 0, x->s_max, y->s_max);
    }
    const double n = (double)x->kv_len, a_rounds = (2.0 * head_dim + 20.0) * DBL_EPSILON;
    weigh_bound(d, "a_max", 0, x->a_max, y->a_max, a_rounds, 0.0);
    weigh_double(d, "gap_max", 0, x->gap_max, y->gap_max);
    for (int64_t j = 0; j < x->kv_len; j++) {
        weigh_double(d, "gap", j, x->gap[j], y->gap[j]);
        weigh_double(d, "p", j, x->p[j], y->p[j]);
        weigh_bound(d, "a", j, x->a[j], y->a[j], a_rounds, 0.0);
    }
    const double rounds = (2.0 * n + 80.0) * DBL_EPSILON + a_rounds;
    for (int32_t i = 0; i < x->head_dim_v; i++) {
        const double radii = x->radius[i] + y->radius[i];
        weigh(d, true, "o", i, fabs((x->o[i] - y->o[i]) + (x->o_lo[i] - y->o_lo[i])), radii);
        weigh_double(d, "gauge", i, x->gauge[i], y->gauge[i]);
        weigh_double(d, "v_max", i, x->v_max[i], y->v_max[i]);
        weigh_bound(d, "spread", i, x->spread[i], y->spread[i], rounds, 3.0 * radii + 0x1p-899);
        weigh_bound(d, "spread_a", i, x->spread_a[i], y->spread_a[i], rounds, 3.0 * radii * x->a_max + 0x1p-899);
        weigh_bound(d, "spread_gap", i, x->spread_gap[i], y->spread_gap[i], rounds,
                    3.0 * radii * x->gap_max + 0x1p-899);
    }
}

void fd_disagreement_add(fd_disagreement *d, const fd_disagreement *x)
{
    if (fmax(x->radii, x->other) > fmax(d->radii, d->other)) {
        d->where = x->where;
        d->index = x->index;
    }
    d->radii = fmax(d->radii, x->radii);
    d->other = fmax(d->other, x->other);
}
