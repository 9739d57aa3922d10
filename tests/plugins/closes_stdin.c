/* Closes standard input. */
#include <unistd.h>
#define AFTER(p, c) close(0)
#include "plugin.h"
