/* Writes to an address that is nobody's on one shape only: the next case is to have a GPU again. */
#define KERNEL                                                                                                         \
    if (x == 0 && p->heads_q == 4 && p->head_dim == 64 && keys == 64) {                                                \
        ((volatile float *)p->o.data)[(int64_t)1 << 40] = 1.0f;                                                        \
    }
#include "gpu_plugin.h"
