/* device.h: where CUDA rungs run: the emulator or a GPU. Memory, copies, and one call that runs a rung and waits.
 * The suite keeps cases in host memory; for a rung that takes device memory only, it copies them here and back. */
#ifndef FD_CUDA_DEVICE_H
#define FD_CUDA_DEVICE_H

#include "fd.h"

typedef struct fd_device {
    const char *where; /* "emu" or "gpu": the column `where` of every result */
    char name[96];     /* of the card, or "emulator" */
    fd_machine machine;

    /* Device memory, 256-byte aligned. *data is NULL after a failure, and why receives one line. */
    fd_status (*alloc)(void **data, size_t bytes, char *why, size_t n);
    void (*release)(void *data);
    fd_status (*write)(void *to_device, const void *from_host, size_t bytes, char *why, size_t n);
    fd_status (*read)(void *to_host, const void *from_device, size_t bytes, char *why, size_t n);

    /* rung->run() and the end of everything it launched. A fault of the kernel or of the launch is FD_DEVICE_ERROR
     * with kernel, block, thread and source line in why where they are known; the device stays usable if it can. */
    fd_status (*run)(const fd_rung *rung, const fd_problem *problem, const fd_context *context, char *why, size_t n);
} fd_device;

/* The emulator. Always there. */
const fd_device *fd_device_emu(void);

/* GPU 0 through the driver, libcuda.so.1, which is loaded here and needed by nothing else. NULL and one line in why:
 * no driver, no card. */
const fd_device *fd_device_gpu(char *why, size_t n);

/* The device of this program's own CUDA rungs: the emulator, or in a program built by nvcc the GPU. */
const fd_device *fd_device_of_ladder(char *why, size_t n);

/* Does the rung take host memory? Then it needs no device. */
FD_INLINE int fd_runs_on_host(const fd_rung *rung)
{
    return rung->caps == NULL || (rung->caps->spaces & 1u << FD_HOST) != 0;
}

#endif /* FD_CUDA_DEVICE_H */
