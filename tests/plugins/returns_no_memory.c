/* Allocates too much, and says so. */
#define BEFORE(p, c)                                                                                                   \
    void *volatile much = malloc((size_t)1 << 46);                                                                     \
    if (much == NULL) {                                                                                                \
        return FD_NO_MEMORY;                                                                                           \
    }
#include "plugin.h"
