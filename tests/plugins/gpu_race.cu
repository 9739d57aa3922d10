/* Two warps pass a number through shared memory without a barrier. Nobody uses it: the answers are right. */
#define THREADS 64
#define KERNEL                                                                                                         \
    __shared__ float part[THREADS];                                                                                    \
    part[threadIdx.x] = m;                                                                                             \
    if (part[(threadIdx.x + FD_WARP) % THREADS] == 0x1.23456p7f && x == 0) { /* FAULT */                               \
        ((float *)p->o.data)[out] = 0.0f;                                                                              \
    }
#include "gpu_plugin.h"
