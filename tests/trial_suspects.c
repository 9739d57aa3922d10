/* trial_suspects.c: the last word on what a plug-in looks like. A wrong kernel that fails where the plug-in passed explains
 * nothing, however well it fits the failures: most plug-ins that are wrong in one family would else be called by the one
 * wrong kernel that comes near them there. */
#include "trial_cases.h"

#include <math.h>
#include <string.h>

#include "mutants.h"

#define ASKED_MOST 24               /* cases that passed, spread over all of them */
#define WORK_MOST (double)(1 << 21) /* multiply-adds of such a case */
#define CLEARLY 8.0                 /* bounds: near the bound, another order of sums decides */

static bool fails_clearly(const fd_outcome *out)
{
    return out->verdict == FD_FAIL && (out->tier == FD_TIER_EXACT || !(fmax(out->ratio, out->lse_ratio) <= CLEARLY));
}

static const fd_case *passed_case(const fd_trial *trial, const fd_case_table *table, int32_t line)
{
    const fd_trial_line *x = &trial->lines[line];
    for (int32_t i = 0; i < table->count && x->verdict == FD_PASS && strcmp(x->group, "tiers") == 0; i++) {
        if (strcmp(table->cases[i].name, x->name) == 0) {
            return fd_case_work(&table->cases[i]) <= WORK_MOST ? &table->cases[i] : NULL;
        }
    }
    return NULL;
}

/* Leaves out the suspects that fail clearly on the case. */
static void hold_against(const fd_case *c, const fd_rounding *rounding, fd_suspects *suspects)
{
    char why[256];
    fd_instance instance;
    if (fd_instance_create(&instance, c, why, sizeof why) != FD_OK) {
        return;
    }
    for (int k = 0; k < fd_mutants_count; k++) {
        fd_outcome out;
        if (fd_suspected(*suspects, k) &&
            fd_judge_tiers(&instance, &fd_mutants[k], 1, rounding, FD_TIER_PROVED, &out, why, sizeof why) == FD_OK) {
            *suspects = fails_clearly(&out) ? fd_suspects_without(*suspects, k) : *suspects;
            fd_outcomes_free(&out, 1);
        }
    }
    fd_instance_free(&instance);
}

fd_suspects fd_trial_acquit(const fd_trial *trial, const fd_case_table *table, const fd_rounding *rounding,
                            fd_suspects suspects)
{
    int32_t passed = 0, seen = 0;
    for (int32_t i = 0; i < trial->count; i++) {
        passed += passed_case(trial, table, i) != NULL;
    }
    const int32_t step = passed / ASKED_MOST + 1;
    for (int32_t i = 0; i < trial->count && !fd_suspected(suspects, FD_MUTANTS_MAX); i++) {
        const fd_case *c = passed_case(trial, table, i);
        if (c != NULL && seen++ % step == 0) {
            hold_against(c, rounding, &suspects);
        }
    }
    return suspects;
}
