/* exp_gpu.h: `flashdecode exp --gpu`: a GPU's expf, logf, exp2f and ex2.approx on every float, and whether what
 * gpu/math_error.h claims of them holds. */
#ifndef FD_EXP_GPU_H
#define FD_EXP_GPU_H

/* csv: where the results go; NULL: nowhere. Returns the exit code: 1 if a claim does not hold; 77 without a GPU. */
int fd_exp_gpu(const char *csv, int argc, char **argv);

#endif /* FD_EXP_GPU_H */
