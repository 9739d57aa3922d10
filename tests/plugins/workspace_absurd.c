/* An error code as a size. */
#define WORKSPACE(p) ((size_t) - (p)->batch)
#include "plugin.h"
