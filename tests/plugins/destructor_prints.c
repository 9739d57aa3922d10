/* Prints when everything is over. */
#include "plugin.h"

__attribute__((destructor)) static void at_the_end(void)
{
    printf("goodbye\n");
}
