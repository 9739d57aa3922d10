/* bound_check.h: what the tests of bound.c share: small problems with one head, and the bound a second time, in
 * MPFR. */
#ifndef FD_BOUND_CHECK_H
#define FD_BOUND_CHECK_H

#include "bound.h"

/* One query row: q [d], k [n][d], v [n][d_v], all fp32 and contiguous. */
typedef struct fd_check_case {
    fd_problem p;
    float *q, *k, *v, *o, *lse;
    fd_oracle_row row;
    fd_bound bound;
} fd_check_case;

/* Zeros, sm_scale 1. FD_OK or FD_NO_MEMORY, after which nothing needs freeing. */
fd_status fd_check_init(fd_check_case *c, int64_t n, int32_t d, int32_t d_v);
void fd_check_free(fd_check_case *c);

/* d = d_v = 1 and q = 1: the keys are the logits. */
fd_status fd_check_from_logits(fd_check_case *c, int64_t n, const float *s, const float *v);

/* Runs the rung of that number; o and lse hold its answer, and *arith its claims. split_size 0: the rung's own. */
fd_status fd_check_run(fd_check_case *c, int32_t number, int64_t split_size, fd_arith *arith);

/* The oracle row of the case, then its bound. */
fd_status fd_check_judge(fd_check_case *c, const fd_arith *arith, const fd_rounding *r);

/* |o_i - exact| and |lse - exact| of any answer, by the oracle row of the case. */
double fd_check_error(const fd_check_case *c, int32_t i, double o);
double fd_check_lse_error(const fd_check_case *c, double lse);

/* glibc's errors, rounded up to powers of two: fp32, round to nearest, gradual underflow. */
extern const fd_rounding fd_check_fp32;

/* Added to the counts of every key, to ask what a wrong count would have meant. */
typedef struct fd_check_counts {
    int64_t h_n, h_d, rescales; /* a rescale less takes one from h_n and h_d as well */
} fd_check_counts;

/* The bound of the whole case from its inputs alone, every operation rounded towards the larger bound, 320 bits. No
 * oracle, nothing of bound.c but the counts of the tree and the sizes of roundings: logits, raises of the maximum,
 * weights and o are computed here. o [d_v] and lse receive the bound rounded up; infinite where the least
 * denominator is not positive. */
fd_status fd_check_bound(const fd_check_case *c, const fd_arith *arith, const fd_rounding *host, fd_check_counts change,
                         double *o, double *lse);

/* An arithmetic for the model: bits > 0 rounds to nearest even, to so many bits (12 at most), and to multiples of
 * 2^least, the smallest subnormal, unless least is 0; bits 0 multiplies each result by 1 + u delta, that of exp by
 * 1 + exp_rel delta, with deltas in [-1, 1] taken in turn. */
enum { FD_CHECK_KEYS = 8, FD_CHECK_DELTAS = 256, FD_CHECK_PARTS = 3 };

typedef struct fd_check_arithmetic {
    int bits, least;
    int mma_model; /* with bits: 0 one addition after another, 1 the exact sum rounded, 2 cut */
    double u, exp_rel;
    const double *delta; /* [FD_CHECK_DELTAS] */
    int used;
    const fd_arith *claims; /* and what they round besides; set by fd_check_model() */
    fd_rounding extra;
} fd_check_arithmetic;

double fd_check_nearest(int bits, int least, double x);
double fd_check_rounded(fd_check_arithmetic *m, double x);
double fd_check_add(fd_check_arithmetic *m, double x, double y);
double fd_check_exp(fd_check_arithmetic *m, double x);
double fd_check_log(fd_check_arithmetic *m, double x);

/* The numbers that a weight is rounded to, as claimed; returns how many. */
int fd_check_weight(fd_check_arithmetic *m, double w, double part[FD_CHECK_PARTS]);

/* partial_o as claimed. */
double fd_check_stored(fd_check_arithmetic *m, double x);

/* c + sum of n exact terms, by one instruction of a tensor core. */
double fd_check_mma(fd_check_arithmetic *m, double c, const double *term, int n);

/* o [head_dim_v], up to 2, and lse behind it, of at most FD_CHECK_KEYS keys, as rung 2, 3 or 5 would have them; any
 * other number stands for the tree of the claims, num_levels > 0, every part full but the last. */
void fd_check_model(fd_check_arithmetic *m, const fd_check_case *c, int32_t rung, int64_t split_size,
                    const fd_arith *claims, double *out);

/* Up to three levels of any kind the theorem has, for n keys; additions without a rescale come first. */
fd_arith fd_check_random_tree(int64_t n, uint64_t *seed);

/* Adds to claims: 16-bit weights in one or more parts, in l or not, 16-bit partials, tensor cores. */
void fd_check_random_types(fd_arith *claims, uint64_t *seed);

/* A small generator for tests: uniform in [-1, 1), 24 bits; below(n): 0 .. n - 1. */
double fd_check_uniform(uint64_t *state);
int32_t fd_check_below(uint64_t *state, int32_t n);

#endif /* FD_BOUND_CHECK_H */
