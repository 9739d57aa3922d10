/* oracle_compare.h: two answers to one question. */
#ifndef FD_ORACLE_COMPARE_H
#define FD_ORACLE_COMPARE_H

#include <stdbool.h>

#include "oracle.h"

typedef struct fd_disagreement {
    double radii; /* the largest |difference| of an o or of lse, in units of the sum of the two radii */
    double other; /* the same of the fields without a radius, in units of what oracle.h and oracle_fast.h allow them */
    const char *where; /* the field that is furthest apart; NULL if all are equal */
    int64_t index;     /* key or dimension there */
} fd_disagreement;

/* Adds rows x and y, of the same shape, to d. Both numbers are at most 1 if the two oracles are right; NaN counts as
 * infinite. */
void fd_oracle_compare(const fd_oracle_row *x, const fd_oracle_row *y, int32_t head_dim, fd_disagreement *d);

/* What x found, added to d. */
void fd_disagreement_add(fd_disagreement *d, const fd_disagreement *x);

/* Do the rows agree? False if anything in d is above 1. */
static inline bool fd_oracle_agree(const fd_disagreement *d)
{
    return d->radii <= 1.0 && d->other <= 1.0;
}

#endif /* FD_ORACLE_COMPARE_H */
