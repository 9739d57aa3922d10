/* given.h: the verdict on an answer that was computed elsewhere. It is judged like a rung, one whose run() copies it: so the
 * bound, the exact answers and the diagnosis are those of every rung. What cannot be asked is whether it would come out
 * again, or with other memory around it. */
#ifndef FD_GIVEN_H
#define FD_GIVEN_H

#include "diagnose.h"
#include "trial.h"

/* Who judges, over all answers of a trial. */
typedef struct fd_given_court {
    fd_trial *trial; /* receives a line an answer */
    fd_rounding rounding;
    fd_arith claims;
    enum fd_tier highest;
    fd_suspects suspects; /* over all failures; begins as FD_ALL_SUSPECTS */
    fd_votes votes;
    int32_t diagnosed; /* failures that the mutants were asked about */
    char *why;         /* one line after any other status than FD_OK */
    size_t n;
} fd_given_court;

/* An answer as floats, in the order of fd_row_index(). */
typedef struct fd_given {
    float *o, *lse;
    bool has_lse;
} fd_given;

/* Whoever says nothing of exp and log is taken to have those of a GPU's library: what is measured here says nothing. */
void fd_given_math(fd_arith *claims);

/* Room for so many rows. FD_OK or FD_NO_MEMORY; to be freed in either case. */
fd_status fd_given_new(fd_given *answer, int64_t rows, int32_t head_dim_v);
void fd_given_free(fd_given *answer);

/* The dtype to judge o by, whose `values` are stored as `stored` where `expected` is expected. Who works where there is no
 * bf16 stores it as F32, exactly: if every value is a number of the narrow type that is expected, it is that type, and
 * the line's notes say so. Any other F32 is judged as fp32. */
int32_t fd_given_type(const fd_given *answer, int64_t values, int32_t stored, int32_t expected, fd_trial_line *line);

/* Judges the answer on the instance and adds the verdict to the trial; line brings name, replay and notes. sequences: their
 * numbers in the file; NULL: 0, 1, .. The answer's lse may be changed into the convention of fd.h. */
fd_status fd_given_judge(fd_given_court *court, fd_instance *instance, fd_given *answer, const int32_t *sequences,
                         const fd_trial_line *line);

#endif /* FD_GIVEN_H */
