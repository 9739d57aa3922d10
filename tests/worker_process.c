/* worker_process.c: starting, asking and ending the worker. */
#define _GNU_SOURCE
#include "worker.h"
#ifdef __linux__
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS 4000000         /* between two looks whether the worker lives */
#define DEVICE_SECONDS 60.0     /* to open a GPU */
#define LAST_WORDS_NS 300000000 /* for a hung worker to say where it is */

extern char **environ;

const char *fd_worker_program = "/proc/self/exe";

static double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A file in memory, above the numbers that the worker gives its own. */
static int memory_file(const char *name, size_t bytes)
{
    const int low = memfd_create(name, MFD_CLOEXEC);
    const int file = low >= 0 ? fcntl(low, F_DUPFD_CLOEXEC, 16) : -1;
    if (low >= 0) {
        close(low);
    }
    if (file >= 0 && ftruncate(file, (off_t)bytes) != 0) {
        close(file);
        return -1;
    }
    return file;
}

static bool open_files(fd_process *x)
{
    if (x->shared != NULL) {
        return true;
    }
    x->control = memory_file("fd control", sizeof *x->shared);
    x->arena = memory_file("fd arena", 0);
    x->out = memory_file("fd stdout", 0);
    x->err = memory_file("fd stderr", 0);
    if (x->control < 0 || x->arena < 0 || x->out < 0 || x->err < 0 || fcntl(x->out, F_SETFL, O_APPEND) != 0 ||
        fcntl(x->err, F_SETFL, O_APPEND) != 0) {
        return false;
    }
    void *at = mmap(NULL, sizeof *x->shared, PROT_READ | PROT_WRITE, MAP_SHARED, x->control, 0);
    x->shared = at != MAP_FAILED ? (fd_shared *)at : NULL;
    return x->shared != NULL;
}

bool fd_process_reserve(fd_process *x, size_t bytes)
{
    if (bytes <= x->memory_bytes) {
        return true;
    }
    if (x->memory != NULL) {
        munmap(x->memory, x->memory_bytes);
        x->memory = NULL;
        x->memory_bytes = 0;
    }
    if (ftruncate(x->arena, (off_t)bytes) != 0) {
        return false;
    }
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, x->arena, 0);
    if (at == MAP_FAILED) {
        return false;
    }
    x->memory = (unsigned char *)at;
    x->memory_bytes = bytes;
    return true;
}

static bool spawn(fd_process *x)
{
    char program[4096], worker[] = "worker";
    char *const words[] = {program, worker, NULL};
    snprintf(program, sizeof program, "%s", fd_worker_program);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, x->out, 1);
    posix_spawn_file_actions_adddup2(&actions, x->err, 2);
    posix_spawn_file_actions_adddup2(&actions, x->control, FD_WORKER_CONTROL);
    posix_spawn_file_actions_adddup2(&actions, x->arena, FD_WORKER_ARENA);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    pid_t pid = 0;
    const int failed = posix_spawn(&pid, program, &actions, &attributes, words, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    x->pid = failed == 0 ? (int)pid : 0;
    return failed == 0;
}

fd_status fd_process_start(fd_process *x, const fd_worker_options *options, char *why, size_t n)
{
    if (!open_files(x)) {
        snprintf(why, n, "no shared memory for the plug-in's process: %s", strerror(errno));
        return FD_NO_MEMORY;
    }
    memset(x->shared, 0, sizeof *x->shared);
    snprintf(x->shared->target, sizeof x->shared->target, "%s", options->path);
    x->shared->megabytes = options->megabytes;
    x->shared->parent = (int32_t)getpid();
    if (ftruncate(x->out, 0) != 0 || ftruncate(x->err, 0) != 0 || !spawn(x)) {
        snprintf(why, n, "the plug-in's process cannot be started: %s", strerror(errno));
        return FD_NO_MEMORY;
    }
    return FD_OK;
}

void fd_process_stop(fd_process *x)
{
    if (x->pid > 0) {
        (void)kill(-x->pid, SIGKILL);
        (void)kill(x->pid, SIGKILL);
        (void)waitpid(x->pid, NULL, 0);
        x->pid = 0;
    }
}

void fd_process_free(fd_process *x)
{
    fd_process_stop(x);
    if (x->memory != NULL) {
        munmap(x->memory, x->memory_bytes);
    }
    if (x->shared != NULL) {
        munmap(x->shared, sizeof *x->shared);
        close(x->control);
        close(x->arena);
        close(x->out);
        close(x->err);
    }
    *x = (fd_process){.pid = 0};
}

static double allowed(const fd_process *x, const fd_worker_options *options)
{
    const bool opening =
        x->shared->request == FD_ASK_LOAD && x->shared->doing != FD_DOING_DLOPEN && x->shared->doing != FD_DOING_ENTRY;
    return opening ? DEVICE_SECONDS + options->seconds : options->seconds;
}

/* Before it is killed, the worker's handler is asked where it is. */
static void ask_where(const fd_process *x)
{
    const struct timespec pause = {0, LOOK_NS};
    siginfo_t ended = {.si_pid = 0};
    (void)kill(x->pid, SIGABRT);
    for (int64_t waited = 0; waited < LAST_WORDS_NS && ended.si_pid == 0; waited += LOOK_NS) {
        nanosleep(&pause, NULL);
        (void)waitid(P_PID, (id_t)x->pid, &ended, WEXITED | WNOHANG | WNOWAIT);
    }
}

enum answer { ANSWERED, DIED, HUNG };

/* ended: as of waitpid(), for DIED. The process is gone unless it answered. */
static enum answer wait_for(fd_process *x, const fd_worker_options *options, uint32_t number, int *ended)
{
    fd_shared *s = x->shared;
    const double begun = now_seconds();
    for (;;) {
        const uint32_t answered = atomic_load(&s->answered);
        const struct timespec look = {0, LOOK_NS};
        if (answered == number) {
            return ANSWERED;
        }
        (void)syscall(SYS_futex, &s->answered, FUTEX_WAIT, answered, &look, NULL, 0);
        if (atomic_load(&s->answered) == number) {
            return ANSWERED;
        }
        if (waitpid(x->pid, ended, WNOHANG) == x->pid) {
            (void)kill(-x->pid, SIGKILL); /* whatever it left behind */
            x->pid = 0;
            return DIED;
        }
        if (now_seconds() - begun > allowed(x, options)) {
            ask_where(x);
            fd_process_stop(x);
            return HUNG;
        }
    }
}

bool fd_process_ask(fd_process *x, const fd_worker_options *options, enum fd_request request, fd_incident *incident)
{
    fd_shared *s = x->shared;
    struct stat said = {.st_size = 0};
    int ended = 0;
    if (x->pid <= 0) {
        return false;
    }
    (void)fstat(x->err, &said);
    s->request = (int32_t)request;
    s->text[0] = '\0';
    const uint32_t number = atomic_load(&s->answered) + 1;
    atomic_store(&s->asked, number);
    (void)syscall(SYS_futex, &s->asked, FUTEX_WAKE, 1, NULL, NULL, 0);
    const enum answer answer = wait_for(x, options, number, &ended);
    s->text[sizeof s->text - 1] = '\0';
    if (answer != ANSWERED && !(request == FD_ASK_END && answer == DIED && ended == 0)) {
        fd_worker_describe(x, options, ended, answer == HUNG, (int64_t)said.st_size, incident);
    }
    return answer == ANSWERED;
}

bool fd_process_end(fd_process *x, const fd_worker_options *options, fd_incident *incident)
{
    if (x->pid > 0) {
        (void)fd_process_ask(x, options, FD_ASK_END, incident);
    }
    return !incident->happened;
}
#endif
