/* lse_base.h: which convention a file's lse follows. Natural or base 2, -infinity or +infinity for a row that sees no key:
 * both are in use, and neither is a mistake as long as all rows agree. */
#ifndef FD_LSE_BASE_H
#define FD_LSE_BASE_H

#include "instance.h"

/* Roundings that an lse in base 2 has more: log2 e is a float, so is its product with the natural one, and so is the
 * product with ln 2 here. */
#define FD_LSE_BASE_2_ROUNDINGS 3

typedef struct fd_lse_found {
    bool base_2;        /* every row that can tell is in base 2 */
    bool plus_infinity; /* every row without a key has +infinity */
    bool mixed;         /* some rows are in one base, some in the other; mix says which */
    char mix[120];
} fd_lse_found;

/* sequences: what mix calls them; NULL: 0, 1, .. Holds lse [fd_row_count] against the instance's in double precision. What is recognised is turned into the convention
 * of fd.h, in place; what is mixed, or neither, stays as it is, for the judge to fail. FD_OK or FD_NO_MEMORY. */
fd_status fd_lse_recognise(const fd_instance *instance, const int32_t *sequences, float *lse, fd_lse_found *found);

#endif /* FD_LSE_BASE_H */
