/* ladder_device.c: which device the CUDA rungs of this program were compiled for. */
#include <stdio.h>

#include "device.h"

const fd_device *fd_device_of_ladder(char *why, size_t n)
{
#ifdef FD_GPU /* by nvcc, in build/gpu */
    return fd_device_gpu(why, n);
#elif defined FD_NO_EMULATOR
    snprintf(why, n, "this program was built without the emulator");
    return NULL;
#else
    (void)why, (void)n;
    return fd_device_emu();
#endif
}
