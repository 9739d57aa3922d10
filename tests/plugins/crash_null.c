/* Reads through a NULL pointer. */
#define BEFORE(p, c) *(volatile float *)(p)->o.data = *(const volatile float *)(c)->stream
#include "plugin.h"
