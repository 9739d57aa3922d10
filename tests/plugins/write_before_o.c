/* Writes the float before o. */
#define AFTER(p, c) ((volatile float *)(p)->o.data)[-1] = 1.0f
#include "plugin.h"
