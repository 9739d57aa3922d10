/* curves.h: how small may a fault of parametric.h be before a tier no longer sees it? By bisection over its level. */
#ifndef FD_CURVES_H
#define FD_CURVES_H

#include "judge.h"
#include "parametric.h"

enum { FD_CURVE_TIERS = 3, FD_CURVE_LEVELS = FD_FAULT_BITS + 1, FD_CURVE_DTYPES = 3, FD_CURVE_INPUTS = 6 };

typedef struct fd_curve_input {
    const char *name, *family, *argument;
    int32_t heads_q, heads_kv, head_dim, kv_len, split_size;
    int32_t most_keys; /* log2 of the longest cache with a key left out */
    bool directed, fp32_only;
} fd_curve_input;

extern const fd_curve_input fd_curve_inputs[FD_CURVE_INPUTS]; /* Gaussian ones first */

typedef struct fd_point {
    bool asked, judged[FD_CURVE_TIERS], detected[FD_CURVE_TIERS];
    double margin[FD_CURVE_TIERS]; /* of the tier's line; exact: infinite or 0 */
    double ulp;                    /* median error of o, in units of its last place */
} fd_point;

typedef struct fd_curve {
    int32_t least, most; /* levels there are */
    fd_point at[FD_CURVE_LEVELS];
} fd_curve;

/* [inputs][dtype][fault]; zero where a family does not take the dtype. */
typedef fd_curve fd_curves[FD_CURVE_INPUTS][FD_CURVE_DTYPES][FD_NUM_FAULTS];

/* The largest level that the tier detects below the first that it misses; least - 1: none. */
int32_t fd_curve_detected_to(const fd_curve *c, int tier);

/* Did the tier decide anything on these inputs? */
bool fd_curve_judged(const fd_curve *c, int tier);

/* false: a smaller fault showed where a larger one did not. */
bool fd_curve_monotone(const fd_curve *c, int tier);

/* Fills zeroed curves. FD_OK, or a case could not be judged, and why says the reason. */
fd_status fd_curves_search(const fd_rounding *rounding, fd_curves *all, char *why, size_t n);

#endif /* FD_CURVES_H */
