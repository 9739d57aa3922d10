/* A kernel that does not end; on a GPU it gives up after two minutes, should nobody stop it. */
#define KERNEL                                                                                                         \
    for (const uint64_t begun = fd_clock(); fd_clock() - begun < 120000000000u;) {                                     \
        fd_spin();                                                                                                     \
    }
#include "gpu_plugin.h"
