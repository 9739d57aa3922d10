/* ladder_device.c: which device the CUDA rungs of this program were compiled for. */
#include "device.h"

const fd_device *fd_device_of_ladder(char *why, size_t n)
{
#ifdef FD_GPU /* by nvcc, in build/gpu */
    return fd_device_gpu(why, n);
#else
    (void)why, (void)n;
    return fd_device_emu();
#endif
}
