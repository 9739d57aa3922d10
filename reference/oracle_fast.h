/* oracle_fast.h: the row of oracle.h in a tenth of the time, from error-free transformations of doubles in place of MPFR.
 * oracle.c stays the definition; the two share no arithmetic and check each other (`flashdecode oracle --compare`). */
#ifndef FD_ORACLE_FAST_H
#define FD_ORACLE_FAST_H

#include "oracle.h"

/* As fd_oracle() at FD_ORACLE_BITS: every admissible problem, the same refusals, the same fields, threads and statuses.
 * What differs: the radius, still proved and at most 2^-60 gauge (+ 2^-1000), about 2^-90 of the gauge for 10^5 keys; gap and
 * gauge, which are correctly rounded but for ties that are off by 2^-43 of a unit, p, which has one unit in 2^-1074 or
 * one part in 2^-52; and the upper bounds a and spread, which are upper bounds, too, but other doubles. */
fd_status fd_oracle_fast(const fd_problem *problem, int32_t b, int32_t t, int32_t h, fd_oracle_row *row, char *why,
                         size_t n);

#endif /* FD_ORACLE_FAST_H */
