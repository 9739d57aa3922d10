/* Writes to an address that is nobody's: CUDA refuses all else to the process then. */
#define KERNEL                                                                                                         \
    if (x == 0) {                                                                                                      \
        ((volatile float *)p->o.data)[(int64_t)1 << 40] = 1.0f;                                                        \
    }
#include "gpu_plugin.h"
