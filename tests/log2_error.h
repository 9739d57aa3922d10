/* log2_error.h: how far a float log2 is from the exact one, on every positive float. Near 1, where log2 vanishes, hardware is
 * good to an absolute error only. The reference is the library's double log2, assumed good to 2^-50 and checked with MPFR
 * at the worst float of each range. */
#ifndef FD_LOG2_ERROR_H
#define FD_LOG2_ERROR_H

#include <stdbool.h>

#include "fd.h"

enum {
    FD_LOG2_NEAR_1 = 0, /* [1/2, 2]: error absolute */
    FD_LOG2_NORMAL,     /* other normal floats: error relative */
    FD_LOG2_SUBNORMAL,  /* relative; INFINITY where they count as 0 */
    FD_LOG2_RANGES
};

typedef struct fd_log2_report {
    uint64_t tested[FD_LOG2_RANGES], misrounded[FD_LOG2_RANGES];
    double error[FD_LOG2_RANGES];
    float at[FD_LOG2_RANGES];
    double error_exact[FD_LOG2_RANGES]; /* there, against MPFR */
    bool reference_good;
} fd_log2_report;

/* Tests every stride-th float of each range. */
void fd_log2_measure(float (*log2_of)(float), uint32_t stride, fd_log2_report *report);

#endif /* FD_LOG2_ERROR_H */
