/* oracle_logits.h: dot products of floats with no rounding at all, for the fast oracle. */
#ifndef FD_ORACLE_LOGITS_H
#define FD_ORACLE_LOGITS_H

#include <stdbool.h>
#include <stdint.h>

#include "oracle_dd.h"

enum {
    FD_LANES = 4, /* arrays are padded with zeros to a multiple: loops of this length become vector instructions */
    FD_LOGIT_LEVELS = 32
};

static inline int32_t fd_padded(int32_t n)
{
    return (n + FD_LANES - 1) / FD_LANES * FD_LANES;
}

/* s_j = q . k_j of a row's keys = chunk[0][j] + chunk[1][j] + ...: integers times grid[0], grid[1], ..., of at most 2^51. */
typedef struct fd_logits {
    int64_t keys;
    int32_t padded; /* head_dim */
    double grid[FD_LOGIT_LEVELS];
    int levels;    /* used so far: as many as the numbers ask for, two or three for most fp32 inputs */
    double *chunk; /* [levels][keys] */
    double *rest;  /* [padded] scratch */
} fd_logits;

/* Room for `keys` dot products of which no single product exceeds `largest` in size. False: no memory. */
bool fd_logits_init(fd_logits *logits, int64_t keys, int32_t head_dim, double largest);
void fd_logits_free(fd_logits *logits);

/* Sets s_j from q and k, padded; *a receives sum |q_i k_i| in double, off by at most head_dim roundings. False: no
 * memory. */
bool fd_logits_set(fd_logits *logits, int64_t j, const double *q, const float *k, double *a);

/* x receives the chunks of s_j, and zeros. */
void fd_logits_get(const fd_logits *logits, int64_t j, double x[FD_LOGIT_LEVELS]);

/* x - s_j, with a relative error of at most 2^-102.9: 0 only if equal, and of the right sign. */
fd_dd fd_logits_minus(const fd_logits *logits, const double x[FD_LOGIT_LEVELS], int64_t j);

#endif /* FD_ORACLE_LOGITS_H */
