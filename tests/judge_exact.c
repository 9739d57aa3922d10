/* judge_exact.c: tier 1. What a rung returns must not depend on memory that is no visible token, nor on being run
 * again, and must be the very answer where that is known. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "execute.h"
#include "gen.h"
#include "gpu_math.h"
#include "judge_parts.h"
#include "proof_status.h"

/* pass_line, for the diagnosis only, of an element of order 1 whose answer is known exactly */
#define NEAR_EXACT 0x1p-12

static bool same_bits(const float *x, const float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (fd_bits_from_float(x[i]) != fd_bits_from_float(y[i]) && !(isnan(x[i]) && isnan(y[i]))) {
            return false;
        }
    }
    return true;
}

/* Once bits differ: does the first call, made twice more, return what it returned? o, lse: room for its results. */
static bool repeats(fd_instance *instance, const fd_plan *plan, const fd_outcome *out, float *o, float *lse)
{
    const int64_t rows = fd_row_count(&instance->problem);
    bool same = true;
    char why[160];
    for (int call = 0; call < 2 && same; call++) {
        same = fd_execute(out->rung, plan, instance, true, FD_POISON_NAN, o, lse, why, sizeof why) != FD_OK ||
               (same_bits(out->o, o, rows * instance->problem.head_dim_v) && same_bits(out->lse, lse, rows));
    }
    return same;
}

/* Once they differ under that poison: which bytes matter, each region poisoned alone? */
static void say_region(fd_instance *instance, const fd_plan *plan, const fd_outcome *out, enum fd_poison poison,
                       float *o, float *lse, char *said, size_t n)
{
    static const char *const names[FD_NUM_REGIONS] = {
        "",
        "q between its rows",
        "k behind kv_lens or between its rows",
        "v behind kv_lens or between its rows",
        "the workspace as run() finds it",
        "o and lse as run() finds them",
    };
    const int64_t rows = fd_row_count(&instance->problem);
    const char *before = ": ";
    char why[160];
    for (int region = FD_REGION_Q; region < FD_NUM_REGIONS; region++) {
        instance->poisoned = region;
        if (fd_execute(out->rung, plan, instance, true, poison, o, lse, why, sizeof why) == FD_OK &&
            (!same_bits(out->o, o, rows * instance->problem.head_dim_v) || !same_bits(out->lse, lse, rows))) {
            const size_t used = strlen(said);
            snprintf(said + used, n - used, "%s%s", before, names[region]);
            before = ", ";
        }
    }
    instance->poisoned = FD_REGION_ALL;
}

fd_status fd_judge_runs(fd_instance *instance, fd_outcome *out)
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
    char why[sizeof out->reason] = "";

    fd_status status = o != NULL && lse != NULL ? FD_OK : FD_NO_MEMORY;
    if (status == FD_OK) {
        status = fd_plan_for(out->rung, p, &plan, why, sizeof why);
    }
    if (status == FD_OK) {
        status = fd_execute(out->rung, plan, instance, true, FD_POISON_NAN, out->o, out->lse, why, sizeof why);
        out->num_splits = plan != NULL ? plan->num_splits : 0;
        fd_arith claims;
        fd_claims_here(out->rung, p, plan, instance->c.kv_len, &claims);
        fd_claims_text(&claims, out->declared, sizeof out->declared);
        char open[200];
        if (!fd_proof_closed(&claims, open, sizeof open)) {
            const size_t used = strlen(out->declared);
            snprintf(out->declared + used, sizeof out->declared - used, "; %s", open);
        }
        if (!fd_claims_make_sense(&claims)) {
            fd_judge_fail(out, FD_TIER_PROVED,
                          "its claims (fd_arith) make no sense: an unknown kind, or an error that is no number");
        } else if (!fd_claims_join(&claims, instance->c.kv_len)) {
            fd_judge_fail(out, FD_TIER_PROVED, "its claims (fd_arith) join fewer keys than the cache has");
        }
    }
    for (size_t r = 0; r < sizeof again / sizeof *again && status == FD_OK; r++) {
        memset(lse, 0, (size_t)rows * sizeof(float));
        status = fd_execute(out->rung, plan, instance, again[r].with_lse, again[r].poison, o, lse, why, sizeof why);
        if (status == FD_OK &&
            (!same_bits(out->o, o, elements) || (again[r].with_lse && !same_bits(out->lse, lse, rows)))) {
            char said[sizeof out->reason] = "the same call again has other bits";
            if (repeats(instance, plan, out, o, lse)) {
                snprintf(said, sizeof said, "%s", again[r].differs);
                if (again[r].with_lse && out->verdict != FD_FAIL) {
                    say_region(instance, plan, out, again[r].poison, o, lse, said, sizeof said);
                }
            }
            fd_judge_fail(out, FD_TIER_EXACT, said);
        }
    }
    if (status != FD_OK && status != FD_NO_MEMORY) {
        fd_judge_fail(out, FD_TIER_EXACT, why);
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
            fd_judge_fail(out, FD_TIER_EXACT,
                          empty ? "o is not 0 for a row that sees no key" : "o is not the exact answer");
        }
    }
    if (instance->lse_absent) {
        out->pass_line[fd_row_count(p) * p->head_dim_v + row] = HUGE_VAL;
    } else if (empty && !(out->lse[row] == -INFINITY)) {
        fd_judge_fail(out, FD_TIER_EXACT, "lse is not -infinity for a row that sees no key");
    }
}

void fd_judge_known(const fd_instance *instance, fd_outcome *out, const fd_row_verdict *verdicts, float *expected)
{
    const fd_problem *p = &instance->problem;
    for (int64_t r = 0; r < fd_row_count(p); r++) {
        int32_t b, t, h;
        fd_row_of_index(p, r, &b, &t, &h);
        memset(expected, 0, (size_t)p->head_dim_v * sizeof(float));
        const bool known = fd_visible_end(p, b, t) == 0 ||
                           (instance->filler.fill == NULL && fd_gen_exact(&instance->c, p, b, t, h, expected));
        if (known && !verdicts[r].declared) {
            judge_exact(instance, out, b, t, h, expected);
        }
    }
}
