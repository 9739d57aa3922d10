/* rules_inputs.h: the two sets of inputs on which published rules are compared with ours. */
#ifndef FD_RULES_INPUTS_H
#define FD_RULES_INPUTS_H

#include "cases.h"

enum fd_inputs { FD_INPUTS_GAUSSIAN = 0, FD_INPUTS_DIRECTED, FD_NUM_INPUTS };

typedef struct fd_rule_case {
    fd_case c;
    int32_t inputs; /* fd_inputs */
} fd_rule_case;

const char *fd_inputs_name(int32_t inputs);

/* Fills at most `most` cases: Gaussian ones of the shapes that suites use, then directed ones of the table, by name.
 * FD_OK, or FD_INVALID if the table lacks one. */
fd_status fd_rule_cases(const fd_case_table *table, fd_rule_case *cases, int most, int *count, char *why, size_t n);

#endif /* FD_RULES_INPUTS_H */
