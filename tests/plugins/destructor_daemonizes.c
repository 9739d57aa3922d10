/* Leaves a daemon behind when everything is over. */
#include "daemon.h"
#include "plugin.h"

__attribute__((destructor)) static void at_the_end(void)
{
    start_daemon();
}
