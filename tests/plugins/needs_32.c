/* Wants q, k, v and o at multiples of 32 bytes, of which the contract says nothing. */
#define BEFORE(p, c)                                                                                                   \
    if ((((uintptr_t)(p)->q.data | (uintptr_t)(p)->k.data | (uintptr_t)(p)->v.data | (uintptr_t)(p)->o.data) % 32) !=  \
        0) {                                                                                                           \
        return FD_INVALID;                                                                                             \
    }
#include "plugin.h"
