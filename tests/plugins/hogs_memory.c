/* Takes memory until there is none, and does not look whether it got it. */
#define BEFORE(p, c)                                                                                                   \
    for (;;) {                                                                                                         \
        *(volatile char *)malloc(1 << 20) = 1;                                                                         \
    }
#include "plugin.h"
