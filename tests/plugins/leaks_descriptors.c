/* Opens a file in every call and never closes it. */
#include <fcntl.h>
#define AFTER(p, c) (void)!open("/dev/null", O_RDONLY)
#include "plugin.h"
