/* Divides an integer by zero. */
static volatile int zero;
#define BEFORE(p, c) ((float *)(p)->o.data)[0] = (float)((p)->heads_q / zero)
#include "plugin.h"
