/* Built for another contract. */
#define FIELDS .abi = 7
#pragma GCC diagnostic ignored "-Woverride-init"
#include "plugin.h"
