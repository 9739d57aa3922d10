/* Leaves a daemon behind, and dies before anybody can see that. */
#include "daemon.h"
#define BEFORE(p, c) (start_daemon(), abort())
#include "plugin.h"
