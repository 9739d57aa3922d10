/* Right until the program ends. */
#include "plugin.h"
static int *volatile freed = (int *)16;
__attribute__((destructor)) static void crash(void)
{
    *freed = 1;
}
