/* Cannot even be loaded. */
#include "plugin.h"
__attribute__((constructor)) static void crash(void)
{
    abort();
}
