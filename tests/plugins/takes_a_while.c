/* Sleeps over 4096 keys: less than one run may take, longer than all the runs that are timed together. Takes no more. */
#include <unistd.h>
#define BEFORE(p, c)                                                                                                   \
    if (p->kv_capacity >= 4096) {                                                                                      \
        usleep(250000);                                                                                                \
        return FD_OK;                                                                                                  \
    }
#define FIELDS .supports = supports
#include "fd.h"
static fd_status supports(const fd_problem *p, char *why, size_t n);
#include "plugin.h"

static fd_status supports(const fd_problem *p, char *why, size_t n)
{
    snprintf(why, n, "too many keys");
    return p->kv_capacity > 8192 ? FD_UNSUPPORTED : FD_OK;
}
