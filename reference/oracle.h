/* oracle.h: what attention over the given numbers is, computed with MPFR. oracle_fast.h computes the same row faster.
 *
 * For one query row [b, t, h] over its kv_len visible keys, which begin at key 0 (fd.h names everything else). Every array is as long as
 * the shape in brackets says; doubles hold values correctly rounded, unless a field says otherwise. A value x with a
 * field x_lo is the unevaluated sum x + x_lo, so that 106 bits of it are kept. */
#ifndef FD_ORACLE_H
#define FD_ORACLE_H

#include "fd.h"

enum {
    /* Bits of weights, sums and quotients. Any relative error is then below (2 kv_len + 8) 2^-128. */
    FD_ORACLE_BITS = 128,
    /* Bits in which a logit of any finite fp32 inputs, and a difference of two, is exact: lowest bit 2^-149 2^-298,
     * highest 2^128 2^256 2^31, a sign, for any head_dim. (One sm_scale at a time, 640 would do.) */
    FD_ORACLE_EXACT_BITS = 896
};

typedef struct fd_oracle_row {
    int64_t kv_len; /* visible keys; 0: o = 0, gauge = 0, lse = -INFINITY */
    int32_t head_dim_v;

    double lse, lse_lo, lse_radius; /* natural; |lse + lse_lo - exact| <= lse_radius */
    double s_max;                   /* the largest logit */
    double a_max, gap_max;          /* of the arrays below */

    double *gap; /* [kv_len] s_max - s_j >= 0 */
    double *a;   /* [kv_len] |sm_scale| sum_i |q_i k_ji|, at least the exact value */
    double *p;   /* [kv_len] exp(s_j - lse); 0 below 2^-1074 */

    double *o, *o_lo; /* [head_dim_v] */
    double *radius;   /* [head_dim_v] |o + o_lo - exact| <= radius <= 2^-60 gauge (+ 2^-1000) */
    double *gauge;    /* [head_dim_v] sum_j p_j |v_ji| */

    /* Moments, from which closed bounds follow for any claimed arithmetic; at least the exact values. */
    double *spread;     /* [head_dim_v] sum_j p_j |v_ji - o_i| */
    double *spread_a;   /* [head_dim_v] sum_j p_j a_j |v_ji - o_i| */
    double *spread_gap; /* [head_dim_v] sum_j p_j gap_j |v_ji - o_i| */
    double *v_max;      /* [head_dim_v] max_j |v_ji| */

    void *storage;       /* all arrays */
    int64_t kv_capacity; /* of storage */
} fd_oracle_row;

/* Room for rows of up to kv_capacity keys and head_dim_v values. FD_OK or FD_NO_MEMORY. */
fd_status fd_oracle_row_init(fd_oracle_row *row, int64_t kv_capacity, int32_t head_dim_v);
void fd_oracle_row_free(fd_oracle_row *row);

/* The exact answer for row [b, t, h] of a host problem, with weights and sums in `bits` bits (FD_ORACLE_BITS, or up
 * to FD_ORACLE_EXACT_BITS to check it against itself). Thread-safe: one row struct per thread. FD_INVALID if a visible
 * input is not finite or the row's room does not fit, FD_UNSUPPORTED for a feature it does not know, FD_NO_MEMORY; why
 * receives one line, at most n bytes. After a failure the row's numbers mean nothing. */
fd_status fd_oracle(const fd_problem *problem, int32_t b, int32_t t, int32_t h, int bits, fd_oracle_row *row, char *why,
                    size_t n);

/* ---- What the two oracles share: refusals, and no arithmetic ------------------------------------ */

/* May the row be asked for, and does its room fit? FD_OK: `row` holds the answer of an empty row, with kv_len set. */
fd_status fd_oracle_begin(const fd_problem *problem, int32_t b, int32_t t, int32_t h, int bits, fd_oracle_row *row,
                          char *why, size_t n);

/* Says that element i of row [b, y, h] of q, k or v is no number that an oracle takes. Returns FD_INVALID. */
fd_status fd_oracle_refuse(char name, int32_t b, int64_t y, int32_t h, int32_t i, double value, char *why, size_t n);

#endif /* FD_ORACLE_H */
