/* Reads one float behind k. */
#define BEFORE(p, c)                                                                                                   \
    *(volatile float *)(p)->o.data =                                                                                   \
        ((const volatile float *)(p)->k.data)[fd_kv_at(p, &(p)->k, (p)->batch - 1, (p)->kv_capacity, 0)]
#include "plugin.h"
