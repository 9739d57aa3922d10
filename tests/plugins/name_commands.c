/* Calls itself by what a terminal obeys, by what CSV and XML are made of, and by what is no text. */
#define FIELDS .name = "\033]0;x\007\233,\"<&>\r\n\377\303"
#pragma GCC diagnostic ignored "-Woverride-init"
#include "plugin.h"
