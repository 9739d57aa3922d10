/* bound.c: the sharp bound of proofs/README.md. Symbols: u, eta, a_j, gap_j, Z_j, R_j, A, h_N, h_D, F, U as there.
 *
 * Every sum below has terms >= 0 and at most 2^31 of them, so double arithmetic errs by less than 2^-21 relative; the
 * argument of exp is at most a few hundred where its value matters, which adds less than 2^-40. INFLATE covers both. */
#include "bound.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "row.h"

#define INFLATE (1.0 + 0x1p-20)

/* Per key, in struct-of-arrays order within fd_bound.keys. */
enum { SLACK, RESCALES, WEIGHT_N, WEIGHT_D, EXCESS, OMEGA, KEY_FIELDS };

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static int64_t ceil_log2(int64_t n)
{
    int64_t log = 0;
    while (log < 62 && (int64_t)1 << log < n) {
        log++;
    }
    return log;
}

/* ---- Counts ------------------------------------------------------------------------------------ */

/* One level of the tree joins `parts` parts of `part` keys, `ways` at a time. */
static void count_level(fd_counts *c, const fd_level *level, int64_t part, int64_t parts)
{
    const int64_t ways = level->ways;
    const int64_t chain = level->order == FD_TREE ? ceil_log2(ways) : ways - 1;
    c->known = c->known && (level->order == FD_TREE || level->order == FD_SEQUENTIAL);
    c->additions += chain;
    switch (level->merge) {
    case FD_MERGE_ADD:
        return;
    case FD_MERGE_RUNNING:
        c->parts += parts * (1 + c->merged);
        c->rescales += c->merged; /* parts with a maximum of their own are rescaled on their way in, too */
        if (c->running_part == 0 && level->order == FD_SEQUENTIAL) {
            c->running_part = part;
            c->running_group = part * ways;
            c->running_most = ways - 1;
            c->running_in_order = level->in_order != 0;
        } else {
            c->rescales += chain;
        }
        return;
    case FD_MERGE_RESCALE:
    case FD_MERGE_NORMALISED: {
        /* Sequential: each part is rescaled once, to a maximum taken beforehand. A tree rescales at every step. */
        const int64_t steps = level->order == FD_TREE ? chain : 1;
        c->rescales += steps;
        c->parts += parts * steps;
        if (level->merge == FD_MERGE_NORMALISED) {
            c->normalised += steps;
            c->parts_norm += parts * steps;
        }
        return;
    }
    case FD_MERGE_LSE: {
        const int64_t steps = level->order == FD_TREE ? chain : 1;
        c->rescales += steps;
        c->parts += parts * steps;
        c->lse_merges += steps;
        c->log_parts += steps > 0 ? log((double)part) + (double)(steps - 1) * log(2.0) : 0.0;
        return;
    }
    default:
        c->known = false; /* no theorem here covers merges without a division */
    }
}

fd_counts fd_bound_counts(const fd_arith *arith, int64_t kv_len)
{
    fd_counts c = {.known =
                       arith->accumulator == FD_ACC_F32 && arith->dtype_p == FD_F32 && arith->dtype_partial == FD_F32,
                   .rescales = 1};
    if (arith->num_levels == 0) { /* any binary tree over kv_len leaves, each merge a rescale and an addition */
        c.additions = kv_len - 1;
        c.rescales = kv_len;
        c.normalised = 1;
        c.parts = 2 * kv_len;
        c.parts_norm = kv_len;
        return c;
    }
    int64_t part = 1;
    for (int32_t i = 0; i < arith->num_levels && i < FD_MAX_LEVELS; i++) {
        fd_level level = arith->level[i];
        level.ways = level.ways < 1 ? 1 : level.ways > kv_len ? kv_len : level.ways;
        count_level(&c, &level, part, ceil_div(kv_len, part));
        c.merged = c.merged || level.merge != FD_MERGE_ADD;
        part = part > kv_len / level.ways ? kv_len : part * level.ways;
    }
    /* The levels must join all keys, or they describe another computation; and a rung without a shift has nothing to
     * rescale to. */
    c.known =
        c.known && part >= kv_len && arith->num_levels <= FD_MAX_LEVELS && (arith->shift == FD_SHIFT_MAX || !c.merged);
    return c;
}

bool fd_claims_make_sense(const fd_arith *arith)
{
    const float errors[] = {arith->exp_rel, arith->exp_abs, arith->log_rel};
    bool good = arith->num_levels >= 0 && arith->num_levels <= FD_MAX_LEVELS && !isnan(arith->fails_above) &&
                !isnan(arith->fails_below) && arith->accumulator >= FD_ACC_F32 &&
                arith->accumulator <= FD_ACC_TENSOR_CORE && (uint32_t)arith->shift <= FD_SHIFT_NONE &&
                (uint32_t)arith->math <= FD_MATH_CLAIMED;
    for (int i = 0; i < 3; i++) {
        good = good && (arith->math == FD_MATH_LIBM || (errors[i] >= 0.0f && errors[i] < 1.0f));
    }
    for (int32_t i = 0; good && i < arith->num_levels; i++) {
        const fd_level *level = &arith->level[i];
        good = level->ways >= 0 && level->merge >= FD_MERGE_ADD && level->merge <= FD_MERGE_LSE_NO_DIV &&
               (level->order == FD_SEQUENTIAL || level->order == FD_TREE);
    }
    return good;
}

bool fd_claims_join(const fd_arith *arith, int64_t kv_len)
{
    int64_t joined = arith->num_levels == 0 ? kv_len : 1;
    for (int32_t i = 0; i < arith->num_levels && i < FD_MAX_LEVELS && joined < kv_len; i++) {
        const int64_t ways = arith->level[i].ways < 1 ? 1 : arith->level[i].ways;
        joined = joined > kv_len / ways ? kv_len : joined * ways;
    }
    return joined >= kv_len;
}

void fd_claims_text(const fd_arith *arith, char *text, size_t n)
{
    static const char *const merges[] = {
        "?",          "added",           "with a running maximum",      "rescaled once",
        "normalised", "(o, lse) merged", "(o, lse) merged, no division"};
    static const char *const accumulators[] = {"fp32", "fp16", "tensor cores"};
    const bool known = (uint32_t)arith->accumulator <= FD_ACC_TENSOR_CORE;
    size_t used = (size_t)snprintf(text, n, "sums in %s%s, shift %s", known ? accumulators[arith->accumulator] : "?",
                                   arith->flushes ? ", subnormals flushed" : "",
                                   arith->shift == FD_SHIFT_NONE ? "none" : "maximum");
    if ((arith->dtype_p != FD_F32 || arith->dtype_partial != FD_F32) && used < n) {
        used += (size_t)snprintf(text + used, n - used, "; weights %s, partials %s", fd_dtype_name(arith->dtype_p),
                                 fd_dtype_name(arith->dtype_partial));
    }
    if (arith->math != FD_MATH_LIBM && used < n) {
        used += (size_t)snprintf(text + used, n - used, "; exp within %.3g + %.3g, log %.3g, as it says",
                                 (double)arith->exp_rel, (double)arith->exp_abs, (double)arith->log_rel);
    }
    if (arith->num_levels == 0 && used < n) {
        snprintf(text + used, n - used, "; order unknown: any merge tree");
    }
    for (int32_t i = 0; i < arith->num_levels && i < FD_MAX_LEVELS && used < n; i++) {
        const fd_level *level = &arith->level[i];
        const bool named = level->merge >= FD_MERGE_ADD && level->merge <= FD_MERGE_LSE_NO_DIV;
        used +=
            (size_t)snprintf(text + used, n - used, "; %s %s %s", i == 0 ? "keys" : "parts",
                             merges[named ? level->merge : 0], level->order == FD_TREE ? "in a tree" : "in sequence");
    }
}

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
    double magnify;     /* (1 + u)^h_N / (1 - u)^h_D, the largest */
    double max_v, max_gauge; /* over the whole row, for the range precondition */
    /* Of merges of (o, lse), 0 without them: */
    double logs;      /* what the logarithms err by on a key's way, together */
    double lse_rise;  /* how far the last shift, an lse, can exceed the computed maximum */
    double lse_size;  /* the largest |lse| of a part that the largest key can be in */
    double lse_slop;  /* all roundings of lse on the way */
    double lse_below; /* and how far the last shift can be below the computed maximum */
} row_terms;

/* |fl(q.k sm_scale) - s_j|, products that underflow included (and additions, where subnormals are flushed: hence the 2),
 * plus the rounding of gap_j to a double. */
static void fill_slack(const fd_rounding *r, const fd_oracle_row *row, int32_t head_dim, double sm_scale, double *slack)
{
    const double g_dot = fd_bound_g(r->u, (int64_t)head_dim + 1);
    const double floor = 2.0 * (fabs(sm_scale) * head_dim * r->eta * (1.0 + g_dot) + r->eta);
    for (int64_t j = 0; j < row->kv_len; j++) {
        slack[j] = (row->a[j] > 0.0 ? (g_dot * row->a[j] + floor) * INFLATE : 0.0) + 0x1p-50 * row->gap[j];
    }
}

/* Each merge replaces m by fl(m + fl(ln l)): its size is at most that of the maximum and of ln l, and so are its errors. */
static void fill_lse_terms(const fd_rounding *r, const fd_counts *c, const fd_oracle_row *row, int64_t h_d,
                           row_terms *t)
{
    const double steps = (double)c->lse_merges, below = -(double)h_d * log1p(-r->u), top = fabs(row->s_max);
    const double log_rel = (double)row->kv_len * t->magnify <= 0x1p20 ? r->log_rel : r->log_rel_anywhere;
    t->logs = c->log_parts + steps * below;
    t->lse_slop =
        steps * r->u * (top + t->max_excess + t->logs * (1.0 + log_rel)) * exp(2.0 * steps * r->u) + steps * r->eta;
    t->lse_rise = t->logs * (1.0 + log_rel) + t->lse_slop;
    t->lse_size = steps > 0.0 ? top + t->max_excess + t->lse_rise : 0.0;
    t->lse_below = t->lse_slop + steps * below * (1.0 + log_rel);
    t->logs *= log_rel;
}

static row_terms fill_keys(const fd_arith *arith, const fd_rounding *r, const fd_counts *c, const fd_oracle_row *row,
                           double *const field[KEY_FIELDS], fd_bound *bound)
{
    const int64_t n = row->kv_len;
    const bool shifted = arith->shift == FD_SHIFT_MAX;
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
    t.magnify = exp((double)bound->h_n * log1p(r->u) - (double)bound->h_d * log1p(-r->u));

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
        const double z = (field[SLACK][j] + r->u * path + r_j * (eps + r->eta) + lse_err) * INFLATE;
        const double p = exp(-row->gap[j] - c_lse), p_high = exp(z - row->gap[j] - c_lse);
        const double omega = r->exp_abs * r_j * exp((r_j - 1.0) * log1p(exp_rel));

        field[WEIGHT_N][j] = p_high * fd_bound_g(r->u, h_n);
        field[WEIGHT_D][j] = p_high * fd_bound_g(r->u, h_d);
        field[EXCESS][j] = z < 1.0 ? p * expm1(z) : p_high - p;
        field[OMEGA][j] = omega;
        omega_sum += omega;
        t.mass_low += exp(-z - row->gap[j] - c_lse + (double)h_d * log1p(-r->u));
        t.mass_high += p_high * exp((double)h_d * log1p(r->u));
        if (!shifted) {
            least_weight = fmax(least_weight, exp(row->s_max - row->gap[j] - z) - omega);
        }
    }
    const double omega =
        omega_sum * exp((shifted ? t.max_excess - c_lse : -row->lse) + (double)bound->h_d * log1p(r->u));
    t.mass_low -= omega;
    t.mass_high += omega;
    t.denominator =
        shifted ? 1.0 : fmax(least_weight * exp((double)bound->h_d * log1p(-r->u)), t.mass_low * exp(row->lse));
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
    const double e1 = e0 + (inside ? r->log_rel : r->log_rel_anywhere) * log_size;
    const double add = shifted ? r->u * (fabs(row->lse) + e1) : 0.0;
    return (e1 + add) * INFLATE;
}

fd_rounding fd_bound_rounding(const fd_arith *arith, const fd_rounding *host)
{
    fd_rounding r = *host;
    if (arith->math == FD_MATH_CLAIMED) {
        r.exp_rel = r.exp_rel_positive = (double)arith->exp_rel;
        r.exp_abs = (double)arith->exp_abs;
        r.log_rel = r.log_rel_anywhere = (double)arith->log_rel;
    }
    if (arith->flushes) {
        r.eta = fmax(r.eta, 0x1p-126);
        r.exp_abs = fmax(r.exp_abs, 0x1p-126);
    }
    return r;
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
    bound->known = c.known && dims <= FD_HEAD_DIM_MAX && fd_claims_make_sense(arith);
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
    float v[FD_HEAD_DIM_MAX];
    for (int64_t j = 0; j < n; j++) {
        const double excess = field[EXCESS][j], w_n = field[WEIGHT_N][j], w_d = field[WEIGHT_D][j],
                     om = field[OMEGA][j];
        fd_load_v(p, b, j, h_kv, v);
        for (int32_t i = 0; i < dims; i++) {
            const double v_ji = (double)v[i], size = fabs(v_ji), o = row->o[i];
            sum_f[i] += excess * fabs(v_ji - o) + w_n * size + w_d * fabs(o);
            sum_omega[i] += om * (size + fabs(o));
            max_v[i] = size > max_v[i] ? size : max_v[i];
        }
    }

    const double magnify2 = t.magnify * t.magnify;
    for (int32_t i = 0; i < dims; i++) {
        const double o = fabs(row->o[i]);
        const double f = t.mass_low > 0.0 ? sum_f[i] / t.mass_low : HUGE_VAL;
        const double absolute = sum_omega[i] + 2.0 * r->eta *
                                                   ((double)n + (double)c.parts * (1.0 + o) +
                                                    2.0 * (double)c.parts_norm * max_v[i] * t.magnify);
        const double underflow = (t.denominator > 0.0 ? magnify2 * absolute / t.denominator : HUGE_VAL) +
                                 r->eta * magnify2 * (1.0 + (double)c.normalised + (double)c.lse_merges);
        bound->o[i] = ((1.0 + r->u) * f + r->u * o + underflow) * INFLATE;
        t.max_v = fmax(t.max_v, max_v[i]);
        t.max_gauge = fmax(t.max_gauge, row->gauge[i]);
    }
    bound->lse = t.mass_low > 0.0 ? lse_bound(arith, r, row, &t) : HUGE_VAL;

    const double scale = fabs((double)p->sm_scale), grow = 1.0 + fd_bound_g(r->u, (int64_t)p->head_dim + 1);
    /* The sums before the division: of weights of at most 1; without a shift, of exp(s) and exp(s) |v|. There the row is
     * not the rung's either where the sum may vanish. */
    const double sums = arith->shift == FD_SHIFT_MAX ? (double)n * fmax(t.max_v, 1.0)
                                                     : exp(row->lse) * fmax(t.max_gauge, 1.0) * t.magnify;
    bound->admissible = 2.0 * row->a_max * grow < r->largest && sums * t.magnify < r->largest && t.denominator > 0.0 &&
                        (scale == 0.0 || row->a_max / scale * grow < r->largest);
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
