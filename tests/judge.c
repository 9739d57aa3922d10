#include "judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "execute.h"
#include "gen.h"
#include "oracle.h"
#include "sigma.h"

#define NEAR_EXACT                                                                                                     \
    0x1p-12 /* pass_line, for the diagnosis only, of an element of order 1 whose answer is known exactly */
#define LN_LARGEST 88.7228391   /* ln of the largest fp32 number, rounded up */
#define LN_VANISHED -103.972078 /* ln 2^-150, rounded down: fp32 exponentials below are 0 */
#define U32 0x1p-24             /* the unit of scaled errors, whatever the storage type */

/* ---- Tier 1: exact ----------------------------------------------------------------------------- */

static bool same_bits(const float *x, const float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (fd_bits_from_float(x[i]) != fd_bits_from_float(y[i]) && !(isnan(x[i]) && isnan(y[i]))) {
            return false;
        }
    }
    return true;
}

static void fail(fd_outcome *out, enum fd_tier tier, const char *reason)
{
    if (out->verdict != FD_FAIL) {
        out->verdict = FD_FAIL;
        out->tier = (int32_t)tier;
        snprintf(out->reason, sizeof out->reason, "%s", reason);
    }
}

/* Runs the rung four times. The first result is kept; the others, with other poison in every byte that is no visible
 * token, and without lse, must have the same bits. FD_NO_MEMORY is the only status that is not a verdict. */
static fd_status run_fenced(fd_instance *instance, fd_outcome *out)
{
    static const struct {
        enum fd_poison poison;
        bool with_lse;
        const char *differs;
    } again[] = {{FD_POISON_INF, true, "bits change when bytes that are no visible token turn from NaN to infinity"},
                 {FD_POISON_FINITE, true, "bits change when bytes that are no visible token turn from NaN to 10^4"},
                 {FD_POISON_NAN, false, "o has other bits when lse is not wanted"}};
    const fd_problem *p = &instance->problem;
    const int64_t rows = fd_row_count(p), elements = rows * p->head_dim_v;
    fd_plan *plan = NULL;
    float *o = malloc((size_t)elements * sizeof(float) + 1), *lse = malloc((size_t)rows * sizeof(float) + 1);
    char why[120] = "";

    fd_status status = o != NULL && lse != NULL ? FD_OK : FD_NO_MEMORY;
    if (status == FD_OK) {
        status = fd_plan_for(out->rung, p, &plan, why, sizeof why);
    }
    if (status == FD_OK) {
        status = fd_execute(out->rung, plan, instance, true, FD_POISON_NAN, out->o, out->lse, why, sizeof why);
        out->num_splits = plan != NULL ? plan->num_splits : 0;
        fd_arith claims;
        fd_claims(out->rung, p, plan, instance->c.kv_len, &claims);
        fd_claims_text(&claims, out->declared, sizeof out->declared);
        if (!fd_claims_make_sense(&claims)) {
            fail(out, FD_TIER_PROVED,
                 "its claims (fd_arith) make no sense: an unknown kind, or an error that is no number");
        }
    }
    for (size_t r = 0; r < sizeof again / sizeof *again && status == FD_OK; r++) {
        memset(lse, 0, (size_t)rows * sizeof(float));
        status = fd_execute(out->rung, plan, instance, again[r].with_lse, again[r].poison, o, lse, why, sizeof why);
        if (status == FD_OK &&
            (!same_bits(out->o, o, elements) || (again[r].with_lse && !same_bits(out->lse, lse, rows)))) {
            fail(out, FD_TIER_EXACT, again[r].differs);
        }
    }
    if (status != FD_OK && status != FD_NO_MEMORY) {
        fail(out, FD_TIER_EXACT, why);
        status = FD_OK;
    }
    free(plan);
    free(o);
    free(lse);
    return status;
}

/* The part of a row's verdict that needs no oracle: known answers, and rows without a key. */
static void judge_exact(const fd_instance *instance, fd_outcome *out, int32_t b, int32_t t, int32_t h,
                        const float *expected)
{
    const fd_problem *p = &instance->problem;
    const int64_t row = fd_row_index(p, b, t, h);
    const bool empty = fd_visible_end(p, b, t) == 0;
    for (int32_t i = 0; i < p->head_dim_v; i++) {
        const float got = out->o[row * p->head_dim_v + i];
        fd_tensor stored = {.data = &(float){0.0f}, .dtype = p->o.dtype};
        fd_store(&stored, 0, expected[i]);
        const float want = fd_load(&stored, 0);
        double *line = &out->pass_line[row * p->head_dim_v + i];
        *line = fmin(*line, fd_bound_stored(NEAR_EXACT, (double)want, p->o.dtype));
        out->exact++;
        if (!(got == want)) {
            if (out->verdict != FD_FAIL) {
                out->worst = (fd_witness){b, t, h, i, got, (double)want, 0.0};
            }
            fail(out, FD_TIER_EXACT, empty ? "o is not 0 for a cache without keys" : "o is not the exact answer");
        }
    }
    if (empty && !(out->lse[row] == -INFINITY)) {
        fail(out, FD_TIER_EXACT, "lse is not -infinity for a cache without keys");
    }
}

/* ---- Tier 2: proved ---------------------------------------------------------------------------- */

typedef struct row_verdict {
    bool failed, declared, declared_wrongly, lse_only;
    fd_witness worst;
    double worst_ratio;
    double bound, ratio, lse_err, lse_bound, lse_ratio, max_abs;
    int64_t h_n, h_d, rescales, vacuous, undecided;
    double z, z_lse, z_squares; /* tier 3 */
    fd_witness z_worst;
    int64_t z_judged, z_above[FD_Z_LEVELS];
} row_verdict;

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
static void decide(row_verdict *v, fd_witness witness, double err, double radius, bool vacuous, bool is_lse)
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
        v->lse_only = is_lse;
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

static void judge_row(const fd_instance *instance, const fd_arith *claims, const fd_rounding *rounding,
                      const fd_oracle_row *row, int32_t b, int32_t t, int32_t h, bool proved, fd_bound *bound,
                      fd_outcome *out, double *scaled, double *ulps, row_verdict *v)
{
    const fd_problem *p = &instance->problem;
    const int32_t dims = p->head_dim_v;
    const int64_t at = fd_row_index(p, b, t, h);
    fd_bound_row(claims, rounding, p, b, h, row, bound);

    *v = (row_verdict){.bound = HUGE_VAL, .h_n = bound->h_n, .h_d = bound->h_d, .rescales = bound->rescales};
    v->declared = declares_failure(claims, rounding, row, p->head_dim);
    v->lse_bound = bound->lse;
    v->lse_err = fabs(((double)out->lse[at] - row->lse) - row->lse_lo);
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
        } else if (gauge == 0.0) { /* nothing to average but zeros */
            decide(v, (fd_witness){b, t, h, i, got, 0.0, 0.0}, err, 0.0, false, false);
        } else {
            const bool vacuous = !(line <= FD_VACUOUS * gauge);
            decide(v, (fd_witness){b, t, h, i, got, row->o[i], line}, err, row->radius[i], vacuous, false);
            v->bound = vacuous ? v->bound : fmin(v->bound, line / (U32 * gauge));
        }
    }

    out->pass_line[fd_row_count(p) * dims + at] = bound->lse;
    if (!proved) {
        v->lse_err = 0.0;
    } else if (v->declared) {
        v->declared_wrongly = !wrong;
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
static void weigh(row_verdict *v, fd_witness witness, double err, double sd, double *line)
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

/* lines: [batch, q_len, heads_q, head_dim_v], then lse; left alone where the model says nothing. */
static void weigh_row(const fd_problem *p, const fd_oracle_row *row, const fd_sigma *sigma, int32_t b, int32_t t,
                      int32_t h, const fd_outcome *out, double *lines, row_verdict *v)
{
    const int32_t dims = p->head_dim_v;
    const int64_t at = fd_row_index(p, b, t, h), first_lse = fd_row_count(p) * dims;
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

static void add_statistics(fd_outcome *out, const row_verdict *verdicts, int64_t rows, const double *lines)
{
    const row_verdict *worst = NULL;
    for (int64_t r = 0; r < rows; r++) {
        const row_verdict *v = &verdicts[r];
        if (v->z_judged > 0 && (worst == NULL || fmax(v->z, v->z_lse) > fmax(out->z_max, out->z_lse))) {
            worst = v;
        }
        out->z_max = fmax(out->z_max, v->z);
        out->z_lse = fmax(out->z_lse, v->z_lse);
        out->z_judged += v->z_judged;
        out->z_squares += v->z_squares;
        for (int k = 0; k < FD_Z_LEVELS; k++) {
            out->z_above[k] += v->z_above[k];
        }
    }
    const double z = fmax(out->z_max, out->z_lse);
    if (z <= FD_SIGMA_LIMIT || out->verdict == FD_FAIL) {
        return;
    }
    char said[sizeof out->reason];
    snprintf(said, sizeof said, "%s is %.1f standard deviations out", worst->z_worst.i < 0 ? "lse" : "o", z);
    fail(out, FD_TIER_STATISTICAL, said);
    out->worst = worst->z_worst;
    for (int64_t x = 0; x < out->elements; x++) {
        out->pass_line[x] = lines[x] > 0.0 ? lines[x] : out->pass_line[x];
    }
}

/* ---- All rungs, a row at a time ---------------------------------------------------------------- */

static int by_value(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Median and largest of n values; NaN counts as infinite. */
static void quantiles(double *x, int64_t n, double *median, double *largest)
{
    for (int64_t i = 0; i < n; i++) {
        x[i] = isnan(x[i]) ? HUGE_VAL : x[i];
    }
    qsort(x, (size_t)n, sizeof *x, by_value);
    *median = n > 0 ? x[n / 2] : 0.0;
    *largest = n > 0 ? x[n - 1] : 0.0;
}

static void add_row(fd_outcome *out, const row_verdict *v)
{
    out->rows++;
    out->rows_declared += v->declared;
    out->vacuous += v->vacuous;
    out->undecided += v->undecided;
    out->h_n = v->h_n > out->h_n ? v->h_n : out->h_n;
    out->h_d = v->h_d > out->h_d ? v->h_d : out->h_d;
    out->rescales = v->rescales > out->rescales ? v->rescales : out->rescales;
    out->max_abs = fmax(out->max_abs, v->max_abs);
    const bool failed_before = out->verdict == FD_FAIL && out->tier == FD_TIER_PROVED;
    if (v->failed) {
        fail(out, FD_TIER_PROVED, v->lse_only ? "lse is outside the proved bound" : "o is outside the proved bound");
    }
    if (v->declared_wrongly) {
        fail(out, FD_TIER_PROVED, "a row that the rung declares to fail on came out right");
    }
    const bool failed_here = v->failed && out->tier == FD_TIER_PROVED;
    if ((failed_here && (!failed_before || v->worst_ratio > fmax(out->ratio, out->lse_ratio))) ||
        (out->verdict != FD_FAIL && v->worst_ratio > fmax(out->ratio, out->lse_ratio))) {
        out->worst = v->worst;
    }
    if (!v->declared) {
        out->bound = fmin(out->bound, v->bound);
        out->ratio = fmax(out->ratio, v->ratio);
        out->lse_ratio = fmax(out->lse_ratio, v->lse_ratio);
        out->lse_err = fmax(out->lse_err, isnan(v->lse_err) ? HUGE_VAL : v->lse_err);
        out->lse_bound = out->lse_bound > 0.0 ? fmin(out->lse_bound, v->lse_bound) : v->lse_bound;
    }
}

static void conclude(fd_outcome *out)
{
    if (out->undecided > 0) {
        fail(out, FD_TIER_PROVED, "undecided: the oracle's own radius reaches across the bound");
    }
    if (out->verdict == FD_PASS && out->rows_declared > 0) {
        out->verdict = FD_EXPECTED_FAILURE;
        snprintf(out->reason, sizeof out->reason, "fails as declared on %lld of %lld rows",
                 (long long)out->rows_declared, (long long)out->rows);
    } else if (out->verdict == FD_PASS && !fd_decided(out)) {
        out->verdict = FD_SKIP;
        snprintf(out->reason, sizeof out->reason, "bound vacuous for %lld of %lld values", (long long)out->vacuous,
                 (long long)out->elements);
    }
}

bool fd_decided(const fd_outcome *out)
{
    return out->vacuous == 0 || out->exact >= out->elements - out->rows;
}

static fd_status prepare(fd_instance *instance, const fd_rung *rung, fd_outcome *out)
{
    const fd_problem *p = &instance->problem;
    const size_t rows = (size_t)fd_row_count(p), elements = rows * (size_t)p->head_dim_v;
    *out = (fd_outcome){.rung = rung, .bound = HUGE_VAL, .worst = {.i = -1}};
    const fd_status status = fd_supports(rung, p, out->reason, sizeof out->reason);
    if (status != FD_OK) {
        out->verdict = FD_SKIP;
        return FD_OK;
    }
    out->elements = (int64_t)(elements + rows);
    out->o = calloc(elements + 1, sizeof(float));
    out->lse = calloc(rows + 1, sizeof(float));
    out->pass_line = calloc(elements + rows + 1, sizeof(double));
    if (out->o == NULL || out->lse == NULL || out->pass_line == NULL) {
        return FD_NO_MEMORY;
    }
    return run_fenced(instance, out);
}

typedef struct workbench { /* of one thread */
    fd_oracle_row row;
    fd_bound bound;
    fd_sigma sigma;
} workbench;

/* One row of every rung. scaled, ulps: [count][elements]; lines: [count][elements + rows]; verdicts: [count][rows]. */
static fd_status judge_rows(fd_instance *instance, int count, const fd_rounding *rounding, enum fd_tier highest,
                            fd_outcome *outcomes, double *scaled, double *ulps, double *lines, row_verdict *verdicts,
                            char *why, size_t n)
{
    const fd_problem *p = &instance->problem;
    const int64_t rows = fd_row_count(p), elements = rows * p->head_dim_v;
    const bool statistical = highest >= FD_TIER_STATISTICAL && fd_gen_random_family(&instance->c);
    fd_status status = FD_OK;
#pragma omp parallel
    {
        workbench w = {0};
        fd_status mine = fd_oracle_row_init(&w.row, p->kv_capacity, p->head_dim_v);
        mine = mine == FD_OK ? fd_bound_init(&w.bound, p->kv_capacity, p->head_dim_v) : mine;
        mine = mine == FD_OK && statistical ? fd_sigma_init(&w.sigma, p->kv_capacity, p->head_dim_v) : mine;
        char reason[160] = "no memory for an oracle row";
#pragma omp for schedule(dynamic, 1)
        for (int64_t r = 0; r < rows; r++) {
            int32_t b, t, h;
            fd_row_of_index(p, r, &b, &t, &h);
            if (mine != FD_OK || fd_visible_end(p, b, t) == 0) {
                continue;
            }
            mine = fd_oracle(p, b, t, h, FD_ORACLE_BITS, &w.row, reason, sizeof reason);
            if (mine == FD_OK && statistical) {
                fd_sigma_logits(p, b, t, h, &w.row, &w.sigma);
            }
            for (int k = 0; k < count && mine == FD_OK; k++) {
                row_verdict *v = &verdicts[k * rows + r];
                if (outcomes[k].verdict == FD_SKIP) {
                    continue;
                }
                fd_plan *plan = NULL;
                fd_arith claims;
                char refused[120]; /* a plan that fails has failed before, in run_fenced: there is nothing to weigh */
                if (fd_plan_for(outcomes[k].rung, p, &plan, refused, sizeof refused) != FD_OK) {
                    continue;
                }
                fd_claims(outcomes[k].rung, p, plan, w.row.kv_len, &claims);
                free(plan);
                judge_row(instance, &claims, rounding, &w.row, b, t, h, highest >= FD_TIER_PROVED, &w.bound,
                          &outcomes[k], scaled + k * elements + r * p->head_dim_v,
                          ulps + k * elements + r * p->head_dim_v, v);
                if (statistical && !v->declared && w.bound.admissible) {
                    fd_sigma_row(&claims, rounding, p, b, h, &w.row, &w.sigma);
                    weigh_row(p, &w.row, &w.sigma, b, t, h, &outcomes[k], lines + k * (elements + rows), v);
                }
            }
        }
#pragma omp critical
        if (mine != FD_OK && status == FD_OK) {
            status = mine;
            snprintf(why, n, "%s: %s", instance->c.name, reason);
        }
        fd_sigma_free(&w.sigma);
        fd_bound_free(&w.bound);
        fd_oracle_row_free(&w.row);
    }
    return status;
}

/* Exact answers of every row; rows that a rung declares to fail on are left to the declaration. */
static void judge_known(const fd_instance *instance, fd_outcome *out, const row_verdict *verdicts, float *expected)
{
    const fd_problem *p = &instance->problem;
    for (int64_t r = 0; r < fd_row_count(p); r++) {
        int32_t b, t, h;
        fd_row_of_index(p, r, &b, &t, &h);
        memset(expected, 0, (size_t)p->head_dim_v * sizeof(float));
        const bool known = fd_visible_end(p, b, t) == 0 || fd_gen_exact(&instance->c, p, b, t, h, expected);
        if (known && !verdicts[r].declared) {
            judge_exact(instance, out, b, t, h, expected);
        }
    }
}

fd_status fd_judge(fd_instance *instance, const fd_rung *const *rungs, int count, const fd_rounding *rounding,
                   fd_outcome *outcomes, char *why, size_t n)
{
    return fd_judge_tiers(instance, rungs, count, rounding, FD_TIER_STATISTICAL, outcomes, why, n);
}

fd_status fd_judge_tiers(fd_instance *instance, const fd_rung *const *rungs, int count, const fd_rounding *rounding,
                         enum fd_tier highest, fd_outcome *outcomes, char *why, size_t n)
{
    const fd_problem *p = &instance->problem;
    const size_t rows = (size_t)fd_row_count(p), elements = rows * (size_t)p->head_dim_v;
    double *scaled = calloc((size_t)count * elements + 1, sizeof(double));
    double *ulps = calloc((size_t)count * elements + 1, sizeof(double));
    double *lines = calloc((size_t)count * (elements + rows) + 1, sizeof(double));
    row_verdict *verdicts = calloc((size_t)count * rows + 1, sizeof *verdicts);
    float *expected = calloc((size_t)p->head_dim_v, sizeof(float));
    fd_status status = scaled && ulps && lines && verdicts && expected ? FD_OK : FD_NO_MEMORY;

    snprintf(why, n, "%s: no memory to judge %zu values", instance->c.name, elements);
    for (int k = 0; k < count; k++) {
        outcomes[k] = (fd_outcome){.rung = rungs[k]};
    }
    for (int k = 0; k < count && status == FD_OK; k++) {
        status = prepare(instance, rungs[k], &outcomes[k]);
    }
    if (status == FD_OK) {
        status = judge_rows(instance, count, rounding, highest, outcomes, scaled, ulps, lines, verdicts, why, n);
    }
    for (int k = 0; k < count && status == FD_OK; k++) {
        if (outcomes[k].verdict == FD_SKIP) {
            continue;
        }
        judge_known(instance, &outcomes[k], verdicts + (size_t)k * rows, expected);
        for (size_t r = 0; r < rows; r++) {
            int32_t b, t, h;
            fd_row_of_index(p, (int64_t)r, &b, &t, &h);
            if (fd_visible_end(p, b, t) > 0) {
                add_row(&outcomes[k], &verdicts[(size_t)k * rows + r]);
            }
        }
        add_statistics(&outcomes[k], verdicts + (size_t)k * rows, (int64_t)rows, lines + (size_t)k * (elements + rows));
        quantiles(scaled + (size_t)k * elements, (int64_t)elements, &outcomes[k].err_p50, &outcomes[k].err_max);
        quantiles(ulps + (size_t)k * elements, (int64_t)elements, &outcomes[k].ulp_p50, &outcomes[k].ulp_max);
        conclude(&outcomes[k]);
    }
    free(scaled);
    free(ulps);
    free(lines);
    free(verdicts);
    free(expected);
    return status;
}

void fd_outcomes_free(fd_outcome *outcomes, int count)
{
    for (int k = 0; k < count; k++) {
        free(outcomes[k].o);
        free(outcomes[k].lse);
        free(outcomes[k].pass_line);
    }
}
