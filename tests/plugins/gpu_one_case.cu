/* One shape gets wrong numbers, all others right ones. */
#define KERNEL                                                                                                         \
    if (p->heads_q == 4 && p->head_dim == 64 && keys == 64 && threadIdx.x == 0) {                                      \
        ((float *)p->o.data)[out] += 1.0f;                                                                             \
    }
#include "gpu_plugin.h"
