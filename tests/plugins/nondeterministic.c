/* Every call returns other bits. */
static int calls;
#define AFTER(p, c) ((float *)(p)->o.data)[0] *= 1.0f + 0x1p-23f * (float)(++calls % 2)
#include "plugin.h"
