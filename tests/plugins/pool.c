/* Starts one thread and opens one file, once: no leak. */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
static void *sleeper(void *x)
{
    pause();
    return x;
}
#define AFTER(p, c)                                                                                                    \
    static int made;                                                                                                   \
    pthread_t thread;                                                                                                  \
    if (!made++) {                                                                                                     \
        pthread_create(&thread, NULL, sleeper, NULL);                                                                  \
        (void)!open("/dev/null", O_RDONLY);                                                                            \
    }
#include "plugin.h"
