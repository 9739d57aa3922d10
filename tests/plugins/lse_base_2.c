/* lse as a logarithm to base 2. */
#define LSE_UNIT 1.44269504f
#include "plugin.h"
