/* math_claims.h: how exact expf and logf are where a CUDA rung runs. On the emulator they are the host's, whose errors
 * the suite measures on every float; on a GPU the rung claims what NVIDIA documents, which the judge replaces by what was
 * measured, if this GPU was (tests/gpu_math.h). */
#ifndef FD_CUDA_MATH_CLAIMS_H
#define FD_CUDA_MATH_CLAIMS_H

#include "fd.h"
#include "gpu/math_error.h"

static inline void fd_claim_math(fd_arith *a)
{
#ifdef __CUDACC__
    a->math = FD_MATH_CLAIMED;
    a->exp_rel = FD_GPU_EXP_REL;
    a->exp_abs = FD_GPU_EXP_ABS;
    a->log_rel = FD_GPU_LOG_REL;
#else
    a->math = FD_MATH_LIBM;
#endif
}

#endif /* FD_CUDA_MATH_CLAIMS_H */
