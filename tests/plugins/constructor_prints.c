/* Greets whoever loads it. */
#include "plugin.h"
__attribute__((constructor)) static void greet(void)
{
    puts("libplugin 2.1 ready");
}
