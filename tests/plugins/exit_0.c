/* Ends the process as if all were well. */
#define BEFORE(p, c) exit(0)
#include "plugin.h"
