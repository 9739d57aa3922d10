/* Starts a thread in every call and never joins it. */
#include <pthread.h>
#include <unistd.h>
static void *sleeper(void *x)
{
    pause();
    return x;
}
#define AFTER(p, c)                                                                                                    \
    pthread_t thread;                                                                                                  \
    pthread_create(&thread, NULL, sleeper, NULL)
#include "plugin.h"
