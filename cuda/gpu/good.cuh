/* good.cuh: one line about a call of CUDA's runtime that failed. */
#ifndef FD_GPU_GOOD_CUH
#define FD_GPU_GOOD_CUH

#include <stdio.h>

#include "fd.h"

/* FD_OK, or FD_DEVICE_ERROR with the line in why, at most n bytes; the runtime forgets the error. */
static inline fd_status good(cudaError_t error, const char *what, char *why, size_t n)
{
    if (error == cudaSuccess) {
        return FD_OK;
    }
    (void)cudaGetLastError();
    snprintf(why, n, "GPU: %s: %s", what, cudaGetErrorString(error));
    return FD_DEVICE_ERROR;
}

#endif /* FD_GPU_GOOD_CUH */
