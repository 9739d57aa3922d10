/* diagnose.h: what a wrong answer looks like. A failing output is compared with what each mutant returns on the same
 * case; the name that fits every failing case is the diagnosis. */
#ifndef FD_DIAGNOSE_H
#define FD_DIAGNOSE_H

#include "judge.h"

/* Bit k: fd_mutants[k] explains the failures seen so far. Begins with all bits set. Room for 63 mutants. */
typedef uint64_t fd_suspects;

#define FD_ALL_SUSPECTS UINT64_MAX

/* Strikes out the mutants that do not explain this failure: those whose o or lse differs from the rung's somewhere by
 * more than two bounds, and those that are right on this case. The instance is run again. */
fd_suspects fd_diagnose(fd_instance *instance, const fd_outcome *outcome, fd_suspects suspects);

/* "looks like: NAME", with "or" between several; "looks like: unknown" for none. */
void fd_diagnosis_text(fd_suspects suspects, char *text, size_t n);

#endif /* FD_DIAGNOSE_H */
