/* Never ends, and wants to hear no signal. */
#include <signal.h>
#define BEFORE(p, c)                                                                                                   \
    for (signal(SIGTERM, SIG_IGN), signal(SIGABRT, SIG_IGN);;) {                                                       \
    }
#include "plugin.h"
