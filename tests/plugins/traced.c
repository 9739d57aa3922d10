/* Has itself traced by its parent, which is the judge, and stops. */
#include <signal.h>
#include <sys/ptrace.h>
#define BEFORE(p, c) (void)(ptrace(PTRACE_TRACEME, 0, NULL, NULL) + raise(SIGUSR1))
#include "plugin.h"
