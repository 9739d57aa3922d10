#include "diagnose.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "execute.h"
#include "ladder.h"
#include "mutants.h"

#define SAME 2.0  /* two right computations of one wrong formula are at most two bounds apart */
#define RIGHT 0.5 /* a failing answer is a bound away from the oracle's, so about a bound from a right rung's */

/* Are x and y nowhere further apart than so many bounds? Elements without a bound say nothing. */
static bool within(double bounds, const float *x, const float *y, const double *pass_line, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const bool both_broken = !isfinite(x[i]) && !isfinite(y[i]);
        const double apart = fabs((double)x[i] - (double)y[i]);
        if (!both_broken && isfinite(pass_line[i]) && !(apart <= bounds * pass_line[i])) {
            return false;
        }
    }
    return true;
}

/* What a rung returns under each of two poisons: a read of stale memory is a NaN under one, a wrong number under the
 * other. values: [2][elements + rows], o and lse. */
static bool answers(const fd_rung *rung, fd_instance *instance, int64_t elements, int64_t rows, float *values)
{
    static const enum fd_poison poisons[2] = {FD_POISON_NAN, FD_POISON_FINITE};
    char why[160];
    fd_plan *plan = NULL;
    bool ok = fd_supports(rung, &instance->problem, why, sizeof why) == FD_OK &&
              fd_plan_for(rung, &instance->problem, &plan, why, sizeof why) == FD_OK;
    for (int i = 0; i < 2 && ok; i++) {
        float *o = values + i * (elements + rows);
        ok = fd_execute(rung, plan, instance, true, poisons[i], o, o + elements, why, sizeof why) == FD_OK;
    }
    free(plan);
    return ok;
}

fd_suspects fd_diagnose(fd_instance *instance, const fd_outcome *outcome, fd_suspects suspects)
{
    const fd_problem *p = &instance->problem;
    const int64_t rows = (int64_t)p->batch * p->heads_q, elements = rows * p->head_dim_v, values = elements + rows;
    float *seen = calloc((size_t)values * 6 + 1, sizeof(float)), *wrong = seen + 2 * values,
          *right = wrong + 2 * values;

    suspects &= ((fd_suspects)1 << fd_mutants_count) - 1;
    if (seen == NULL || outcome->pass_line == NULL || !answers(outcome->rung, instance, elements, rows, seen)) {
        suspects = 0;
    }
    for (int k = 0; k < fd_mutants_count; k++) {
        if (!(suspects >> k & 1u)) {
            continue;
        }
        const fd_rung *parent = fd_ladder_find(fd_mutants[k]->parent);
        bool explains = parent != NULL && answers(parent, instance, elements, rows, right) &&
                        answers(fd_mutants[k], instance, elements, rows, wrong);
        bool visible = false;
        for (int i = 0; i < 2 && explains; i++) {
            explains = within(SAME, seen + i * values, wrong + i * values, outcome->pass_line, values);
            visible = visible || !within(RIGHT, wrong + i * values, right + i * values, outcome->pass_line, values);
        }
        if (!explains || !visible) {
            suspects &= ~((fd_suspects)1 << k);
        }
    }
    free(seen);
    return suspects;
}

void fd_diagnosis_text(fd_suspects suspects, char *text, size_t n)
{
    size_t used = (size_t)snprintf(text, n, "looks like:");
    bool any = false;
    for (int k = 0; k < fd_mutants_count && suspects != FD_ALL_SUSPECTS; k++) {
        if (suspects >> k & 1u && used < n) {
            used += (size_t)snprintf(text + used, n - used, "%s %s", any ? " or" : "", fd_mutants[k]->name);
            any = true;
        }
    }
    if (!any && used < n) {
        snprintf(text + used, n - used, " unknown");
    }
}
