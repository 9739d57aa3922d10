/* Says that it takes soft caps and sinks, and looks at neither. */
#define FEATURES (FD_SOFTCAP | FD_SINKS)
#include "plugin.h"
