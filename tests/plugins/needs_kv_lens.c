/* Reads kv_lens where there is none: the cache is full, and its capacity the length. */
#define KV_LEN(p, b) ((const int32_t *)(p)->kv_lens.data)[b]
#include "plugin.h"
