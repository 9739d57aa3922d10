/* Wants of every tensor, and of the workspace, the alignment that the contract promises. */
#define WIDE(p) ((uintptr_t)(p)->q.data | (uintptr_t)(p)->k.data | (uintptr_t)(p)->v.data | (uintptr_t)(p)->o.data)
#define NARROW(p) ((uintptr_t)(p)->lse.data | (uintptr_t)(p)->kv_lens.data)
#define BEFORE(p, c)                                                                                                   \
    if (WIDE(p) % FD_TENSOR_ALIGNMENT != 0 || NARROW(p) % 4 != 0 || (uintptr_t)(c)->workspace % 256 != 0) {            \
        return FD_INVALID;                                                                                             \
    }
#include "plugin.h"
