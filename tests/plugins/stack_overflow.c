/* Recurses without end. */
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Winfinite-recursion"
static int depth(volatile char *x)
{
    volatile char mine[4096];
    mine[0] = *x;
    return depth(mine) + mine[0];
}
#define BEFORE(p, c) ((float *)(p)->o.data)[0] = (float)depth(&(char){1})
#include "plugin.h"
