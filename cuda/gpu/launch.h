/* launch.h: how kernel.cuh tells gpu/driver.c what was launched, so that a fault, which CUDA reports without a kernel,
 * can be told with one. */
#ifndef FD_GPU_LAUNCH_H
#define FD_GPU_LAUNCH_H

#ifdef __cplusplus
extern "C" {
#endif

/* Before a launch. name lives as long as the program. */
void fd_gpu_launching(const char *kernel);

/* CUDA refused the launch, in its own words. */
void fd_gpu_failed(const char *kernel, const char *text);

#ifdef __cplusplus
}
#endif

#endif /* FD_GPU_LAUNCH_H */
