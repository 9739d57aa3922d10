/* gpu_math.h: what the judge takes CUDA's expf and logf to be on the GPU where this program's rungs run.
 *
 * A rung compiled by nvcc claims the maxima that NVIDIA documents (cuda/gpu/math_error.h), for it does not know its GPU. If
 * `flashdecode exp --gpu` measured every float on a GPU of this name and capability, with code of the nvcc that built this
 * program, those errors take their place. On the emulator rungs call the host's expf and logf (libm_error.h); plug-ins and
 * answers from files are compiled by others and keep what they claim. */
#ifndef FD_GPU_MATH_H
#define FD_GPU_MATH_H

#include <stdbool.h>

#include "fd.h"

typedef struct fd_gpu_math {
    bool measured;                   /* false: nothing replaces what a rung claims */
    float exp_rel, exp_abs, log_rel; /* rounded up, the slack of the reference included */
    char source[240];                /* whose they are, or why there are none: one line */
} fd_gpu_math;

/* The record of `exp --gpu --csv`, if it is of that GPU ("NVIDIA H200, compute capability 9.0") and toolkit ("nvcc
 * 13.0.88") and every property that proofs need held. Else measured is false. */
fd_gpu_math fd_gpu_math_read(const char *path, const char *gpu, const char *toolkit);

/* Of this program's GPU, from $FD_GPU_MATH, or data/measured/h200/math.csv. Read once. */
const fd_gpu_math *fd_gpu_math_here(void);

/* fd_claims(). On a GPU the measured errors stand in place of the documented ones if the rung is this program's, and the
 * documented ones where nothing is claimed: the host's functions are not there. */
void fd_claims_here(const fd_rung *rung, const fd_problem *problem, const fd_plan *plan, int64_t kv_len,
                    fd_arith *claims);

/* Were they replaced? */
bool fd_claims_are_measured(const fd_rung *rung);

/* "as measured on this GPU", "as NVIDIA documents" or "as it says". */
const char *fd_gpu_math_whose(const fd_arith *claims);

#endif /* FD_GPU_MATH_H */
