/* Leaves a handler, and another working directory. */
#include <signal.h>
#include <unistd.h>
#define AFTER(p, c)                                                                                                    \
    signal(SIGSEGV, SIG_IGN);                                                                                          \
    (void)!chdir("/")
#include "plugin.h"
