/* trial_cases.h: which cases a plug-in is judged on, and in which order: those that tell most in the least time first. */
#ifndef FD_TRIAL_CASES_H
#define FD_TRIAL_CASES_H

#include "cases.h"
#include "diagnose.h"
#include "trial.h"

#define FD_SMOKE_KEYS 65 /* one more than a tile or a warp pair: of cases alike, a smoke test takes the nearest */

typedef struct fd_choice {
    const fd_case *c;
    int32_t group; /* --smoke: one that is not skipped is enough of those with the same number */
} fd_choice;

/* Room for table->count choices; returns how many there are. Answers known bit for bit, empty and ragged caches come first,
 * then by work. */
int32_t fd_choose_cases(const fd_case_table *table, const fd_trial_options *options, fd_choice *choices);

/* The same for the relations: the small cases of `flashdecode relations`, or the one that --case names. */
int32_t fd_choose_relations(const fd_case_table *table, const fd_trial_options *options, fd_choice *choices);

/* The suspects that are right, or nearly, on cases that the plug-in passed: a sample of them. */
fd_suspects fd_trial_acquit(const fd_trial *trial, const fd_case_table *table, const fd_rounding *rounding,
                            fd_suspects suspects);

/* Has a sequence of its batch no key? */
bool fd_case_has_empty(const fd_case *c);

/* Multiply-adds of a case. */
double fd_case_work(const fd_case *c);

#endif /* FD_TRIAL_CASES_H */
