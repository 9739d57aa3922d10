/* judge.c: all rungs on one case. Each is run and fenced, each row goes to the oracle once and then past every rung,
 * and what the rows say is added up. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "execute.h"
#include "gen.h"
#include "gpu_math.h"
#include "judge_parts.h"
#include "oracle_fast.h"

void fd_judge_fail(fd_outcome *out, enum fd_tier tier, const char *reason)
{
    if (out->verdict != FD_FAIL) {
        out->verdict = FD_FAIL;
        out->tier = (int32_t)tier;
        snprintf(out->reason, sizeof out->reason, "%s", reason);
    }
}

/* ---- From rows to an outcome ------------------------------------------------------------------- */

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

static const char *outside(const fd_witness *w)
{
    return w->i < 0 ? "lse is outside the proved bound" : "o is outside the proved bound";
}

static void add_row(fd_outcome *out, const fd_row_verdict *v)
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
        fd_judge_fail(out, FD_TIER_PROVED, outside(&v->worst));
    }
    if (v->declared_wrongly) {
        fd_judge_fail(out, FD_TIER_PROVED, "a row that the rung declares to fail on came out right");
    }
    const bool failed_here = v->failed && out->tier == FD_TIER_PROVED;
    const bool worse = v->worst_ratio > fmax(out->ratio, out->lse_ratio);
    if (failed_here && (!failed_before || worse)) { /* the reason speaks of the element that is shown */
        snprintf(out->reason, sizeof out->reason, "%s", outside(&v->worst));
        out->worst = v->worst;
    } else if (out->verdict != FD_FAIL && worse) {
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

static void add_statistics(fd_outcome *out, const fd_row_verdict *verdicts, int64_t rows, const double *lines)
{
    const fd_row_verdict *worst = NULL;
    for (int64_t r = 0; r < rows; r++) {
        const fd_row_verdict *v = &verdicts[r];
        if (v->z_judged > 0 && (worst == NULL || fmax(v->z, v->z_lse) > fmax(out->z_max, out->z_lse))) {
            worst = v;
        }
        out->z_max = fmax(out->z_max, v->z);
        out->z_lse = fmax(out->z_lse, v->z_lse);
        out->z_judged += v->z_judged;
        out->z_no_model += v->z_no_model;
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
    fd_judge_fail(out, FD_TIER_STATISTICAL, said);
    out->worst = worst->z_worst;
    for (int64_t x = 0; x < out->elements; x++) {
        out->pass_line[x] = lines[x] > 0.0 ? lines[x] : out->pass_line[x];
    }
}

static void conclude(fd_outcome *out)
{
    if (out->undecided > 0) {
        fd_judge_fail(out, FD_TIER_PROVED, "undecided: the oracle's own radius reaches across the bound");
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

/* ---- All rungs, a row at a time ---------------------------------------------------------------- */

static fd_status prepare(fd_instance *instance, const fd_rung *rung, fd_outcome *out)
{
    const fd_problem *p = &instance->problem;
    const size_t rows = (size_t)fd_row_count(p), elements = rows * (size_t)p->head_dim_v;
    *out = (fd_outcome){.rung = rung, .bound = HUGE_VAL, .worst = {.i = -1}};
    const fd_status status = fd_supports_here(rung, p, out->reason, sizeof out->reason);
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
    return fd_judge_runs(instance, out);
}

typedef struct workbench { /* of one thread */
    fd_oracle_row row;
    fd_bound bound;
    fd_sigma sigma;
    fd_arith claims; /* that these are of, in this row: rungs often claim the same */
    bool bound_known, sigma_known;
} workbench;

/* The row's bound under these claims. */
static void find_bound(workbench *w, const fd_instance *x, const fd_rounding *rounding, const fd_arith *claims,
                       int32_t b, int32_t h)
{
    if (!w->bound_known || memcmp(&w->claims, claims, sizeof *claims) != 0) {
        memcpy(&w->claims, claims, sizeof *claims);
        fd_bound_row(claims, rounding, &x->problem, b, h, &w->row, &w->bound);
        if (x->lse_roundings > 0) {
            w->bound.lse += fd_bound_g(rounding->u, x->lse_roundings) * (fabs(w->row.lse) + w->bound.lse);
        }
        w->bound_known = true;
        w->sigma_known = false;
    }
}

/* The sigma model of the claims that the bound is of. It knows of no lse that is not there, and of no change of its base. */
static void find_sigma(workbench *w, const fd_instance *x, const fd_rounding *rounding, int32_t b, int32_t h)
{
    if (!w->sigma_known) {
        fd_sigma_row(&w->claims, rounding, &x->problem, b, h, &w->row, &w->sigma);
        w->sigma.lse = x->lse_absent || x->lse_roundings > 0 ? 0.0 : w->sigma.lse;
        w->sigma_known = true;
    }
}

/* One row of every rung. scaled, ulps: [count][elements]; lines: [count][elements + rows]; verdicts: [count][rows]. */
static fd_status judge_rows(fd_instance *instance, int count, const fd_rounding *rounding, enum fd_tier highest,
                            fd_outcome *outcomes, double *scaled, double *ulps, double *lines, fd_row_verdict *verdicts,
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
            mine = fd_oracle_fast(p, b, t, h, &w.row, reason, sizeof reason);
            w.bound_known = false;
            if (mine == FD_OK && statistical) {
                fd_sigma_logits(p, b, t, h, &w.row, &w.sigma);
            }
            for (int k = 0; k < count && mine == FD_OK; k++) {
                fd_row_verdict *v = &verdicts[k * rows + r];
                if (outcomes[k].verdict == FD_SKIP) {
                    continue;
                }
                fd_plan *plan = NULL;
                fd_arith claims;
                char
                    refused[120]; /* a plan that fails has failed before, in fd_judge_runs: there is nothing to weigh */
                if (fd_plan_for(outcomes[k].rung, p, &plan, refused, sizeof refused) != FD_OK) {
                    continue;
                }
                fd_claims_here(outcomes[k].rung, p, plan, w.row.kv_len, &claims);
                free(plan);
                find_bound(&w, instance, rounding, &claims, b, h);
                fd_judge_row(instance, &claims, rounding, &w.row, b, t, h, highest >= FD_TIER_PROVED, &w.bound,
                             &outcomes[k], scaled + k * elements + r * p->head_dim_v,
                             ulps + k * elements + r * p->head_dim_v, v);
                if (statistical && !v->declared && w.bound.admissible) {
                    find_sigma(&w, instance, rounding, b, h);
                    fd_weigh_row(p, &w.row, &w.sigma, b, t, h, &outcomes[k], lines + k * (elements + rows), v);
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
    fd_row_verdict *verdicts = calloc((size_t)count * rows + 1, sizeof *verdicts);
    float *expected = calloc((size_t)p->head_dim_v, sizeof(float));
    fd_status status = scaled && ulps && lines && verdicts && expected ? FD_OK : FD_NO_MEMORY;

    snprintf(why, n, "%s: no memory to judge %zu values", instance->c.name, elements);
    for (int k = 0; k < count; k++) {
        outcomes[k] = (fd_outcome){.rung = rungs[k]};
    }
    bool any_ran = false; /* else the oracle need not be asked, and the instance may be an outline */
    for (int k = 0; k < count && status == FD_OK; k++) {
        status = prepare(instance, rungs[k], &outcomes[k]);
        any_ran = any_ran || outcomes[k].verdict != FD_SKIP;
    }
    if (status == FD_OK && any_ran) {
        status = judge_rows(instance, count, rounding, highest, outcomes, scaled, ulps, lines, verdicts, why, n);
    }
    for (int k = 0; k < count && status == FD_OK; k++) {
        if (outcomes[k].verdict == FD_SKIP) {
            continue;
        }
        fd_judge_known(instance, &outcomes[k], verdicts + (size_t)k * rows, expected);
        for (size_t r = 0; r < rows; r++) {
            int32_t b, t, h;
            fd_row_of_index(p, (int64_t)r, &b, &t, &h);
            if (fd_visible_end(p, b, t) > 0) {
                add_row(&outcomes[k], &verdicts[(size_t)k * rows + r]);
            }
        }
        add_statistics(&outcomes[k], verdicts + (size_t)k * rows, (int64_t)rows, lines + (size_t)k * (elements + rows));
        quantiles(scaled + (size_t)k * elements, (int64_t)elements, &outcomes[k].err_p50, &outcomes[k].err_max);
        double *u = ulps + (size_t)k * elements;
        quantiles(u, (int64_t)elements, &outcomes[k].ulp_p50, &outcomes[k].ulp_max);
        outcomes[k].ulp_p90 = elements > 0 ? u[elements * 90 / 100] : 0.0;
        outcomes[k].ulp_p99 = elements > 0 ? u[elements * 99 / 100] : 0.0;
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
