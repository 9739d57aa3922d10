/* Ends the process at once. */
#include <unistd.h>
#define BEFORE(p, c) _exit(7)
#include "plugin.h"
