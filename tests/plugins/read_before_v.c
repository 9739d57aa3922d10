/* Reads a row before v. */
#define BEFORE(p, c) *(volatile float *)(p)->o.data = ((const volatile float *)(p)->v.data)[-(p)->v.stride[1]]
#include "plugin.h"
