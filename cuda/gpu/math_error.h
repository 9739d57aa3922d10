/* math_error.h: how far a GPU's expf, logf, 2^x and log2 are from the exact ones, for a GPU that nobody has measured
 * (tests/gpu_math.h).
 *
 * These are NVIDIA's documented maxima, CUDA C++ Programming Guide, "Mathematical Functions", single precision, and PTX
 * ISA, ex2: so many ulps from the correctly rounded result, to which half an ulp of that rounding is added. An ulp is at
 * most 2^-23 of a normal result, and 2^-149 of a subnormal one. NVIDIA calls them the outcome of extensive, not of
 * exhaustive tests; `flashdecode exp --gpu` tests every float of a card. */
#ifndef FD_GPU_MATH_ERROR_H
#define FD_GPU_MATH_ERROR_H

#define FD_GPU_EXP_REL (2.5f * 0x1p-23f) /* expf: 2 ulps, full range */
#define FD_GPU_EXP_ABS 0x1.8p-148f       /* the same where the result is subnormal: 2.5 steps, up to a float */
#define FD_GPU_LOG_REL (1.5f * 0x1p-23f) /* logf: 1 ulp, full range */

#define FD_GPU_EXP2_REL (2.5f * 0x1p-23f) /* exp2f: 2 ulps, full range */
#define FD_GPU_EXP2_ABS 0x1.8p-148f
#define FD_GPU_EX2_APPROX_REL (2.5f * 0x1p-23f) /* ex2.approx: 2 ulps, full range */
#define FD_GPU_EX2_APPROX_ABS 0x1.8p-148f
#define FD_GPU_EX2_APPROX_FTZ_ABS 0x1p-126f /* a subnormal result becomes 0 */

#define FD_GPU_LG2_APPROX_ABS 0x1p-22f /* lg2.approx: on [1/2, 2] */
#define FD_GPU_LG2_APPROX_REL 0x1p-22f /* elsewhere */

#endif /* FD_GPU_MATH_ERROR_H */
