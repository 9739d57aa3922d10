/* Its workspace is a float short. */
#define WORKSPACE(p) ((size_t)(p)->kv_capacity * sizeof(float))
#define AFTER(p, c) ((volatile float *)(c)->workspace)[(p)->kv_capacity] = 1.0f
#include "plugin.h"
