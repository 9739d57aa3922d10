/* exp2_error.h: how far a float 2^x is from the exact one, on every float x <= 0. Softmax in base 2 takes no other. The
 * reference is the library's double exp2, assumed good to 2^-50 and checked with MPFR at the worst float of each range
 * and on a sample. */
#ifndef FD_EXP2_ERROR_H
#define FD_EXP2_ERROR_H

#include <stdbool.h>

#include "fd.h"

enum {
    FD_EXP2_NORMAL = 0, /* [-126, 0]: error relative */
    FD_EXP2_SUBNORMAL,  /* (-150, -126): error in units of 2^-149 */
    FD_EXP2_TAIL,       /* [-1024, -150], compared with 0, in units of 2^-149 */
    FD_EXP2_RANGES
};

typedef struct fd_exp2_report {
    uint64_t tested[FD_EXP2_RANGES], misrounded[FD_EXP2_RANGES];
    double error[FD_EXP2_RANGES]; /* largest, against the double reference; INFINITY for a NaN */
    float at[FD_EXP2_RANGES];
    double error_exact[FD_EXP2_RANGES]; /* there, against MPFR */
    bool reference_good;                /* wherever it was checked */
    bool zero_exact;                    /* 2^0 == 2^-0 == 1 */
    bool at_most_one;                   /* 0 <= 2^x <= 1 for x <= 0 */
    bool minus_inf_zero;
    double rel, abs; /* |fl(2^x) - 2^x| <= rel 2^x + abs for x <= 0, the slack of the reference included */
} fd_exp2_report;

/* Tests every stride-th float of each range. */
void fd_exp2_measure(float (*exp2_of)(float), uint32_t stride, fd_exp2_report *report);

#endif /* FD_EXP2_ERROR_H */
