/* sigma_parts.h: what the files of the sigma model share. The keys pass once, in order, through the declared levels
 * (sigma_walk.c); sums that are complete pass from level to level (sigma_levels.c). Everyone else includes sigma.h. */
#ifndef FD_SIGMA_PARTS_H
#define FD_SIGMA_PARTS_H

#include "sigma.h"

#define FD_SIGMA_MMA_DIMS 16 /* products that an instruction of a tensor core is taken to add, in fd_sigma.chain */

typedef struct fd_sigma_level {
    int64_t ways, part, keys; /* parts it joins; keys of one; keys of a whole group */
    int32_t merge;
    bool tree, rescales; /* rescales: its parts come with maxima of their own */
    double shift;        /* common maximum of the group at hand, where it is taken beforehand */
    int first, open;     /* its nodes: sums still open, from `first` on */
    int64_t parts;       /* of the group at hand, so far */
} fd_sigma_level;

typedef struct fd_sigma_model {
    const fd_oracle_row *row;
    fd_sigma *out;
    int32_t dims, num_levels;
    double eps2;                   /* variance of one exp, relative */
    double log2;                   /* the same of one ln, relative */
    double c_lse;                  /* the row's lse over its largest logit */
    double root;                   /* the last shift over the largest logit: the sum whose ln is taken began there */
    double u_p, eta_p;             /* of a rounded weight: relative error in units of u, and absolute */
    bool p_in_l;                   /* which l shares */
    double u_partial, eta_partial; /* of a stored partial_o, the same */
    double mma, mma_l;             /* of tensor cores: error of one instruction over its |addends|, in o and in l */
    double bias_l, bias_logit;     /* and of all of them together, at most, in l and in the logits */
    int64_t mma_keys;              /* 0: none */
    bool divided;                  /* some level divides its parts by their l: the parts of such levels are stored */
    double sum_d, sum_w;           /* roundings of l; errors of whole weights, which only lse sees as sums of p */
    fd_sigma_level level[FD_MAX_LEVELS + 1];
    fd_sigma_node *leaf;
} fd_sigma_model;

/* ---- sigma_levels.c ---- */

/* Multiplies a part by exp(m - shift), which is exactly 1 if the part has the maximum. */
void fd_sigma_rescale(fd_sigma_model *x, const fd_sigma_node *part, double shift);

/* The largest logit of keys [first, last), less the row's. */
double fd_sigma_largest(const fd_oracle_row *row, int64_t first, int64_t last);

/* A part of level `at` is complete: adds it to that level's sums. */
void fd_sigma_absorb(fd_sigma_model *x, int32_t at, const fd_sigma_node *part);

/* Passes the group at hand on to the next level, if it is complete or the keys have ended. */
void fd_sigma_pass_on(fd_sigma_model *x, int32_t at, bool ended);

/* ---- sigma_walk.c ---- */

/* The levels as the model walks them; false: more nodes than there can be. */
bool fd_sigma_set_levels(fd_sigma_model *x, const fd_arith *arith);

/* Runs all keys through the levels. absolute: variance of what underflow does to one weight. */
void fd_sigma_walk(fd_sigma_model *x, const fd_arith *arith, const fd_problem *p, int32_t b, int32_t h, double u,
                   double absolute);

#endif /* FD_SIGMA_PARTS_H */
