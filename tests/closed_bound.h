/* closed_bound.h: a pass line from the oracle's moments alone, for whoever has them but not the keys (golden vectors). It is
 * never below the sharp bound of bound.h, and on ordinary rows hardly above. proofs/README.md, section 8. */
#ifndef FD_CLOSED_BOUND_H
#define FD_CLOSED_BOUND_H

#include "bound.h"

typedef struct fd_closed_bound {
    bool known; /* false: no theorem covers the claims */
    double
        inflation; /* e^(2 max Z): what replacing every Z_j by the largest can have cost. Near 1 on ordinary rows; far
                         above, one key with a huge dot product is to blame, and only the sharp bound tells whether it
                         matters */
    double lse;    /* of |lse - exact| */
} fd_closed_bound;

/* Bounds of row `row` under the claims; o: [head_dim_v] of |o_i - exact|, before any rounding to a 16-bit output. */
fd_closed_bound fd_closed_bound_row(const fd_arith *arith, const fd_rounding *host, int32_t head_dim, float sm_scale,
                                    const fd_oracle_row *row, double *o);

#endif /* FD_CLOSED_BOUND_H */
