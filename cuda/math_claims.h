/* math_claims.h: how exact expf and logf are where a CUDA rung runs. On the emulator they are the host's, whose errors
 * the suite measures on every float; on a GPU the rung claims CUDA's. */
#ifndef FD_CUDA_MATH_CLAIMS_H
#define FD_CUDA_MATH_CLAIMS_H

#include "fd.h"

static inline void fd_claim_math(fd_arith *a)
{
#ifdef __CUDACC__
    a->math = FD_MATH_CLAIMED;
    a->exp_rel = 0x1p-22f;  /* 2 ulps: CUDA C++ Programming Guide, mathematical functions, expf */
    a->exp_abs = 0x1p-149f; /* a result below the normal range is off by one step */
    a->log_rel = 0x1p-23f;  /* 1 ulp: the same table, logf */
#else
    a->math = FD_MATH_LIBM;
#endif
}

#endif /* FD_CUDA_MATH_CLAIMS_H */
