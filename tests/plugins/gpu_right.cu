/* Nothing is wrong with it. */
#include "gpu_plugin.h"
