/* Ends with the code by which the worker itself says that descriptors were closed. */
#define BEFORE(p, c) exit(122)
#include "plugin.h"
