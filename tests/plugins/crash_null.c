/* Reads through a NULL pointer. In a function, for compilers differ in whose line a macro's code is. */
#include "fd.h"

static void crash(const fd_problem *p, const fd_context *c)
{
    *(volatile float *)p->o.data = *(const volatile float *)c->stream;
}
#define BEFORE(p, c) crash(p, c)
#include "plugin.h"
