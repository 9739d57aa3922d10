#include "diagnose.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "execute.h"
#include "ladder.h"
#include "mutants.h"

/* Two right computations of the same wrong formula are at most two bounds apart. Elements without a bound say nothing. */
static bool same_answer(const float *x, const float *y, const double *pass_line, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const bool both_broken = !isfinite(x[i]) && !isfinite(y[i]);
        const double apart = fabs((double)x[i] - (double)y[i]);
        if (!both_broken && isfinite(pass_line[i]) && !(apart <= 2.0 * pass_line[i])) {
            return false;
        }
    }
    return true;
}

/* o of the rung under finite poison, so that a read of stale memory is a wrong number and not a NaN. */
static bool answer(const fd_rung *rung, fd_instance *instance, float *o, float *lse)
{
    char why[160];
    fd_plan *plan = NULL;
    bool ok = fd_supports(rung, &instance->problem, why, sizeof why) == FD_OK &&
              fd_plan_for(rung, &instance->problem, &plan, why, sizeof why) == FD_OK &&
              fd_execute(rung, plan, instance, true, FD_POISON_FINITE, o, lse, why, sizeof why) == FD_OK;
    free(plan);
    return ok;
}

fd_suspects fd_diagnose(fd_instance *instance, const fd_outcome *outcome, fd_suspects suspects)
{
    const fd_problem *p = &instance->problem;
    const size_t rows = (size_t)p->batch * (size_t)p->heads_q, elements = rows * (size_t)p->head_dim_v;
    float *seen = calloc(elements + 1, sizeof(float)), *wrong = calloc(elements + 1, sizeof(float));
    float *right = calloc(elements + 1, sizeof(float)), *lse = calloc(rows + 1, sizeof(float));

    if (!seen || !wrong || !right || !lse || outcome->pass_line == NULL ||
        !answer(outcome->rung, instance, seen, lse)) {
        suspects = 0;
    }
    for (int k = 0; k < fd_mutants_count && k < 64; k++) {
        if (!(suspects >> k & 1u)) {
            continue;
        }
        const fd_rung *parent = fd_ladder_find(fd_mutants[k]->parent);
        const bool explains = parent != NULL && answer(parent, instance, right, lse) &&
                              answer(fd_mutants[k], instance, wrong, lse) &&
                              same_answer(seen, wrong, outcome->pass_line, (int64_t)elements) &&
                              !same_answer(wrong, right, outcome->pass_line, (int64_t)elements);
        suspects &= explains ? FD_ALL_SUSPECTS : ~((fd_suspects)1 << k);
    }
    free(seen);
    free(wrong);
    free(right);
    free(lse);
    return suspects;
}

void fd_diagnosis_text(fd_suspects suspects, char *text, size_t n)
{
    size_t used = (size_t)snprintf(text, n, "looks like:");
    bool any = false;
    for (int k = 0; k < fd_mutants_count && k < 64 && suspects != FD_ALL_SUSPECTS; k++) {
        if (suspects >> k & 1u && used < n) {
            used += (size_t)snprintf(text + used, n - used, "%s %s", any ? " or" : "", fd_mutants[k]->name);
            any = true;
        }
    }
    if (!any && used < n) {
        snprintf(text + used, n - used, " unknown");
    }
}
