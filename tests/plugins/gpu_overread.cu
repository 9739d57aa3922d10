/* Reads the element behind the last of q, and uses it in no way that shows: for a sanitizer. */
#define KERNEL                                                                                                         \
    if (b == p->batch - 1 && h == p->heads_q - 1 && x == 0) {                                                          \
        if (((const volatile float *)p->q.data)[q + p->head_dim] == 0x1.23456p7f) {                                    \
            ((float *)p->o.data)[out] = 0.0f;                                                                          \
        }                                                                                                              \
    }
#include "gpu_plugin.h"
