/* Makes the file of the tensors longer than any case needs it. */
#define _GNU_SOURCE
#include <unistd.h>
#define BEFORE(p, c) (void)(ftruncate(4, (off_t)1 << 40) + 0)
#include "plugin.h"
