/* Ends the process while it is loaded. */
#include "plugin.h"
__attribute__((constructor)) static void leave(void)
{
    exit(0);
}
