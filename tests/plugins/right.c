/* Nothing wrong. */
#include "plugin.h"
