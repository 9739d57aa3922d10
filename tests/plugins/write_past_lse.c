/* Writes lse of one head too many. */
#define AFTER(p, c)                                                                                                    \
    if ((p)->lse.data != NULL) {                                                                                       \
        ((volatile float *)(p)->lse.data)[fd_row_at(&(p)->lse, (p)->batch - 1, 0, (p)->heads_q)] = 1.0f;               \
    }
#include "plugin.h"
