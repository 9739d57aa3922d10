/* oracle_exp.h: 2^512 e^-x of a double-double x, for the fast oracle's weights. */
#ifndef FD_ORACLE_EXP_H
#define FD_ORACLE_EXP_H

#include "oracle_dd.h"

/* Above this the fast oracle takes e^-x for 0: it is below 2^-1240, so that 2^31 of them times 2^128 are below 2^-1074. */
#define FD_EXP_CUT 860.0

typedef struct fd_exp_table {
    double step[3];             /* ln 2 / 4096 = their sum within 2^-124; 29, 29 and 53 bits */
    fd_dd coarse[64], fine[64]; /* 2^(-i/64), 2^(-i/4096) */
} fd_exp_table;

/* Computed by MPFR when first asked for, and kept: the same for all threads. NULL: no memory. */
const fd_exp_table *fd_exp_make_table(void);

/* 2^512 e^-x for 0 <= x <= FD_EXP_CUT, with a relative error of at most 2^-102 + 2^-103 x (oracle_exp.c); 2^512 exactly
 * for x = 0. Between 2^-729 and 2^512: products with floats neither underflow nor overflow, nor do their low parts. */
fd_dd fd_exp_minus(const fd_exp_table *table, fd_dd x);

#endif /* FD_ORACLE_EXP_H */
