/* worker_strays.c: see worker.h. A process group dies with one kill(), and whoever calls setsid() is no longer in it. An
 * orphan is given to the nearest subreaper above it: while the worker lives, the worker, then this process. */
#define _GNU_SOURCE
#include "worker.h"
#ifdef __linux__
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define OTHERS_MOST 64   /* children from before: of the shell, say, that turned into this program */
#define GENERATIONS 1000 /* of strays; one that forks faster than it is killed is not waited for */

static struct {
    bool watching;
    pid_t others[OTHERS_MOST];
    int num_others;
} strays;

/* Its parent; 0 if it is gone. The name in front, in parentheses, may hold anything. */
static pid_t parent_of(const char *pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = file >= 0 ? read(file, text, sizeof text - 1) : 0;
    if (file >= 0) {
        close(file);
    }
    text[got > 0 ? got : 0] = '\0';
    const char *end = strrchr(text, ')');
    int parent = 0;
    return end != NULL && sscanf(end, ") %*c %d", &parent) == 1 ? parent : 0;
}

static bool is_other(pid_t pid)
{
    for (int i = 0; i < strays.num_others; i++) {
        if (strays.others[i] == pid) {
            return true;
        }
    }
    return false;
}

/* The children that are not others, at most n. */
static int list(pid_t *children, int n)
{
    siginfo_t any = {.si_pid = 0};
    int count = 0;
    if (waitid(P_ALL, 0, &any, WEXITED | WNOHANG | WNOWAIT) != 0) { /* no child at all: the usual case */
        return 0;
    }
    DIR *folder = opendir("/proc");
    for (const struct dirent *entry; folder != NULL && count < n && (entry = readdir(folder)) != NULL;) {
        const pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && parent_of(entry->d_name) == getpid() && !is_other(pid)) {
            children[count++] = pid;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return count;
}

void fd_strays_watch(void)
{
    if (!strays.watching) {
        strays.watching = true;
        strays.num_others = list(strays.others, OTHERS_MOST);
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    }
}

int fd_strays_kill(void)
{
    pid_t found[OTHERS_MOST];
    int killed = 0;
    for (int generation = 0; generation < GENERATIONS; generation++) {
        const int count = list(found, OTHERS_MOST);
        for (int i = 0; i < count; i++) {
            (void)kill(found[i], SIGKILL);
            (void)waitpid(found[i], NULL, 0);
        }
        killed += count;
        if (count == 0) {
            break;
        }
    }
    return killed;
}
#endif
