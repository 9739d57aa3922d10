/* seeds.h: calibration of the statistical tier: right rungs on many small random instances. */
#ifndef FD_SEEDS_H
#define FD_SEEDS_H

#include "judge.h"

/* What one rung did over all seeds. */
typedef struct fd_seed_tally {
    int64_t instances;          /* judged by at least one tier */
    int64_t failed;             /* by any tier */
    int64_t judged;             /* elements of o and lse that tier 3 weighed */
    double squares;             /* sum of their z^2 */
    int64_t above[FD_Z_LEVELS]; /* of these, above 3, 4, 5, 6 standard deviations */
    double z, z_lse;            /* largest of o, of lse */
    int64_t z_seed, z_lse_seed; /* where; -1: nowhere */
} fd_seed_tally;

/* The instance of a seed: 1 to 400 keys, head_dim 1 to 32, groups, splits, ragged batches and dtypes as the seed says. */
void fd_seed_case(int64_t seed, fd_case *c);

/* Judges the rungs on the instances of seeds [first, first + count); tallies: one a rung. FD_OK whatever the verdicts. */
fd_status fd_seeds_run(int64_t first, int64_t count, const fd_rung *const *rungs, int num_rungs,
                       const fd_rounding *rounding, fd_seed_tally *tallies, char *why, size_t n);

#endif /* FD_SEEDS_H */
