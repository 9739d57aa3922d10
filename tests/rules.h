/* rules.h: the acceptance rules that other projects publish, one function each, and what they compare with. Each rule
 * is given its best case: the exact answer where its project compares with fp32 or fp64, that answer rounded once to
 * the output's type where it compares with a result of that type, and a low-precision run where that is the yardstick. */
#ifndef FD_RULES_H
#define FD_RULES_H

#include <stdbool.h>

#include "fd.h"

/* What rules compare with, for one problem. Rows in the order [batch, heads_q]; empty rows are 0, in lse -infinity. */
typedef struct fd_rule_references {
    int64_t rows, elements;       /* elements = rows * head_dim_v */
    double *o, *lse;              /* in double precision, from the inputs as they are stored */
    float *o_stored, *lse_stored; /* o, rounded to dtype_o; lse, rounded to fp32 */
    float *o_low, *lse_low;       /* the yardstick: ordinary attention in the inputs' type, see rules_references.c */
    float *o_math;                /* ordinary attention in fp32, its output rounded to dtype_o */
    void *storage;
} fd_rule_references;

/* For a host problem with one query row and a dense cache. FD_OK, FD_UNSUPPORTED or FD_NO_MEMORY; why receives one
 * line. */
fd_status fd_rule_references_create(const fd_problem *problem, fd_rule_references *references, char *why, size_t n);
void fd_rule_references_free(fd_rule_references *references);

/* The result under test, as floats, beside them. */
typedef struct fd_rule_input {
    const float *o, *lse;
    int32_t dtype_o;
    const fd_rule_references *against;
} fd_rule_input;

typedef struct fd_rule_verdict {
    bool caught;   /* the rule rejects the result */
    double margin; /* error over what the rule allows, where it is worst; infinite for a NaN that is rejected */
} fd_rule_verdict;

typedef struct fd_rule {
    const char *name, *head[2]; /* head: of a column, two lines of at most four characters */
    const char *says, *source;  /* one line each; the source is repository, commit, file */
    uint32_t dtypes;            /* bit 1 << dtype_o: where it is applied */
    fd_rule_verdict (*judge)(const fd_rule_input *x);
} fd_rule;

extern const fd_rule fd_rules[];
extern const int fd_rules_count;

#endif /* FD_RULES_H */
