/* Waits for ever. */
#include <unistd.h>

static void hang(void)
{
    for (;;) {
        pause();
    }
}
#define BEFORE(p, c) hang()
#include "plugin.h"
