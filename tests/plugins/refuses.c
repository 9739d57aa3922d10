/* Takes nothing, and says why. */
#define FIELDS .supports = refuse
#include "fd.h"
#include <stdio.h>
static fd_status refuse(const fd_problem *p, char *why, size_t n)
{
    snprintf(why, n, "anything: head_dim %d is not 73", p->head_dim);
    return FD_UNSUPPORTED;
}
#include "plugin.h"
