/* Scales q in place. */
#define BEFORE(p, c) ((volatile float *)(p)->q.data)[0] *= (p)->sm_scale
#include "plugin.h"
