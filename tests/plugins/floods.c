/* Prints without end. */
#define BEFORE(p, c)                                                                                                   \
    for (;;)                                                                                                           \
    puts("0123456789012345678901234567890123456789012345678901234567890123456789")
#include "plugin.h"
