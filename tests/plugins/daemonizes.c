/* Leaves a daemon behind: a process of another group, whose parents are gone. */
#include "daemon.h"
#define BEFORE(p, c) start_daemon()
#include "plugin.h"
