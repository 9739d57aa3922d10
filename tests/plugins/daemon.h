/* daemon.h: a process that leaves its group and its parents, and sleeps for a minute under the name $FD_TEST_STRAY. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static inline void start_daemon(void)
{
    const pid_t child = fork();
    if (child == 0) {
        const char *name = getenv("FD_TEST_STRAY");
        setsid();
        if (fork() == 0) {
            setsid();
            prctl(PR_SET_NAME, name != NULL ? name : "stray");
            sleep(60);
        }
        _exit(0);
    }
    (void)waitpid(child, NULL, 0);
}
