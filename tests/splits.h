/* splits.h: what the number of splits does to the error of a rung, over many seeds. */
#ifndef FD_SPLITS_H
#define FD_SPLITS_H

#include "bound.h"
#include "cases.h"

/* One rung with one number of splits, over all seeds. Errors in units of u = 2^-24 of the gauge. */
typedef struct fd_split_point {
    const fd_rung *rung;
    int32_t num_splits_request;

    fd_status status; /* not FD_OK: it does not take the problem, and why says the reason */
    char why[256];
    int32_t num_splits;
    int64_t split_size, roundings; /* roundings: h_N + h_D + 1, what the bound charges for sums and merges */
    double err_p50, err_p90, err_max, bound, ratio; /* bound: the smallest of an element; ratio: error over bound */
    int64_t elements;
} fd_split_point;

/* Does the rung cut the cache into as many splits as it is asked for? */
bool fd_splits_on_request(const fd_rung *rung, const fd_problem *problem);

/* Measures count points on `seeds` instances of a case of one batch row, one query row and one head, with seeds c->seed, c->seed +
 * 1 and so on. FD_OK whatever the errors are. */
fd_status fd_splits_measure(const fd_case *c, int32_t seeds, const fd_rounding *rounding, fd_split_point *points,
                            int count, char *why, size_t n);

#endif /* FD_SPLITS_H */
