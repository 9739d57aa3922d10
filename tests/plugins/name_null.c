/* No name. */
#define FIELDS .name = NULL
#pragma GCC diagnostic ignored "-Woverride-init"
#include "plugin.h"
