/* Waits for ever. */
#include <unistd.h>
#define BEFORE(p, c) pause()
#include "plugin.h"
