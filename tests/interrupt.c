/* interrupt.c: see interrupt.h. A handler may only do little; what it is to do is laid out for it here. */
#define _POSIX_C_SOURCE 200809L
#include "interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static char unfinished[1056];
static _Atomic int worker;

static void interrupted(int number)
{
    const int pid = atomic_load(&worker);
    if (unfinished[0] != '\0') {
        unlink(unfinished);
    }
    if (pid > 0) {
        kill(-pid, SIGKILL);
        kill(pid, SIGKILL);
    }
    _exit(128 + number);
}

static void install(void)
{
    static const int fatal[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) {
        struct sigaction now;
        const bool asked =
            fatal[i] == SIGINT || fatal[i] == SIGTERM; /* a shell ignores SIGINT for what runs behind it */
        if (asked || (sigaction(fatal[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)) {
            signal(fatal[i], interrupted);
        }
    }
}

void fd_interrupt_deletes(const char *path)
{
    if (strlen(path) < sizeof unfinished) {
        strcpy(unfinished, path);
        install();
    }
}

void fd_interrupt_kills(int pid)
{
    atomic_store(&worker, pid);
    install();
}
