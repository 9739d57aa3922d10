/* Leaves a process running. */
#include <unistd.h>
#define AFTER(p, c)                                                                                                    \
    if (fork() == 0) {                                                                                                 \
        pause();                                                                                                       \
    }
#include "plugin.h"
