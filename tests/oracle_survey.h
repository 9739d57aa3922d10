/* oracle_survey.h: one case's rows asked of one oracle or of both, timed and compared. */
#ifndef FD_ORACLE_SURVEY_H
#define FD_ORACLE_SURVEY_H

#include <stdbool.h>

#include "cases.h"
#include "oracle_compare.h"

typedef struct fd_survey {
    bool fast, plain; /* whom to ask; both: compare */
    int64_t rows;     /* at most so many rows a case; 0: all */
    int64_t turn;     /* which: of R rows that are not empty, every (R / rows)-th, from another one each turn */
} fd_survey;

typedef struct fd_survey_result {
    int64_t rows, keys; /* asked; visible keys of all of them */
    int64_t products;   /* kv_len (head_dim + head_dim_v), of all of them */
    double wall;        /* s, generating the case excluded */
    double memory;      /* MiB by which the process grew once the case was there (Linux; by its peak) */
    double fast, plain; /* s of processor time of each oracle, over all threads */
    fd_disagreement d;
} fd_survey_result;

/* Adds the case to result; rows are spread over the threads of OpenMP. FD_OK, FD_INVALID, FD_NO_MEMORY with a line in why.
 * Whether the two agree is fd_oracle_agree(&result->d). */
fd_status fd_oracle_survey(const fd_case *c, const fd_survey *survey, fd_survey_result *result, char *why, size_t n);

#endif /* FD_ORACLE_SURVEY_H */
