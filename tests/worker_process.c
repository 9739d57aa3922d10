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

#include "interrupt.h"
#include "text.h"

#define LOOK_NS 4000000         /* between two looks whether the worker lives */
#define DEVICE_SECONDS 60.0     /* to open a GPU */
#define LAST_WORDS_NS 300000000 /* for a hung worker to say where it is */
#define NUMBERS_KEPT 16         /* descriptors below are the worker's */
#define STDERR_KEPT (1 << 20)   /* bytes of standard error after which the file begins anew */

extern char **environ;

static double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A file in memory, above the numbers that the worker gives its own. seals: what nobody may do to it any more; who maps a
 * file that another cuts off dies of SIGBUS. */
static int memory_file(const char *name, size_t bytes, int seals)
{
    const int low = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const int file = low >= 0 ? fcntl(low, F_DUPFD_CLOEXEC, NUMBERS_KEPT) : -1;
    const int reason = errno;
    if (low >= 0) {
        close(low);
    }
    if (low >= 0 && file < 0) {
        errno = reason == EINVAL ? EMFILE : reason; /* the number itself is beyond the limit */
        return -1;
    }
    if (file >= 0 && (ftruncate(file, (off_t)bytes) != 0 || fcntl(file, F_ADD_SEALS, seals) != 0)) {
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
    x->control = memory_file("fd control", sizeof *x->shared, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    x->arena = memory_file("fd arena", 0, F_SEAL_SHRINK | F_SEAL_SEAL);
    x->out = memory_file("fd stdout", 0, F_SEAL_SEAL);
    x->err = memory_file("fd stderr", 0, F_SEAL_SEAL);
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
    struct stat now;
    if (bytes <= x->memory_bytes) {
        return true;
    }
    if (x->memory != NULL) {
        munmap(x->memory, x->memory_bytes);
        x->memory = NULL;
        x->memory_bytes = 0;
    }
    /* The plug-in may have made it longer, and nobody can make it shorter. */
    if (fstat(x->arena, &now) != 0 || (now.st_size < (off_t)bytes && ftruncate(x->arena, (off_t)bytes) != 0)) {
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

static int spawn(fd_process *x)
{
    char program[] = "/proc/self/exe", worker[] = "worker";
    char *const words[] = {program, worker, NULL};
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
    /* A session of its own: a group that one kill() ends, and no terminal that a plug-in could open. */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, &none);
    pid_t pid = 0;
    const int failed = posix_spawn(&pid, program, &actions, &attributes, words, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    x->pid = failed == 0 ? (int)pid : 0;
    fd_interrupt_kills(x->pid);
    return failed;
}

fd_status fd_process_start(fd_process *x, const fd_worker_options *options, char *why, size_t n)
{
    if (!open_files(x)) {
        snprintf(why, n, "no shared memory for the plug-in's process: %s%s", strerror(errno),
                 errno == EMFILE ? "; raise `ulimit -n` to 64" : "");
        return FD_NO_MEMORY;
    }
    fd_strays_watch();
    memset(x->shared, 0, sizeof *x->shared);
    snprintf(x->shared->target, sizeof x->shared->target, "%s", options->path);
    x->shared->megabytes = options->megabytes;
    x->shared->parent = (int32_t)getpid();
    const int failed = ftruncate(x->out, 0) != 0 || ftruncate(x->err, 0) != 0 ? errno : spawn(x);
    if (failed != 0) {
        snprintf(why, n, "the plug-in's process cannot be started: %s", strerror(failed));
    }
    return failed == 0 ? FD_OK : FD_NO_MEMORY;
}

/* It is dead: so must be whatever it started. */
static void bury(fd_process *x)
{
    (void)kill(-x->pid, SIGKILL);
    fd_interrupt_kills(0);
    x->pid = 0;
    x->strays = fd_strays_kill();
}

void fd_process_stop(fd_process *x)
{
    if (x->pid > 0) {
        (void)kill(x->pid, SIGKILL);
        (void)waitpid(x->pid, NULL, 0);
        bury(x);
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

/* Seconds that pass before it is taken for hung. A request that is timed has so many runs more. */
static double allowed(const fd_process *x, const fd_worker_options *options)
{
    const bool opening =
        x->shared->request == FD_ASK_LOAD && x->shared->doing != FD_DOING_DLOPEN && x->shared->doing != FD_DOING_ENTRY;
    return (opening ? DEVICE_SECONDS : 0.0) + (double)options->seconds * x->runs;
}

/* For one that is deaf: the kernel's word, as the program counter of the stopped process is the last number there. */
static void ask_kernel(const fd_process *x)
{
    char path[64], said[256] = "";
    const struct timespec pause = {0, LOOK_NS};
    const char *last = NULL;
    snprintf(path, sizeof path, "/proc/%d/syscall", x->pid);
    (void)kill(x->pid, SIGSTOP);
    for (int64_t waited = 0; waited < LAST_WORDS_NS && last == NULL; waited += LOOK_NS) { /* until it has stopped */
        nanosleep(&pause, NULL);
        const int file = open(path, O_RDONLY | O_CLOEXEC);
        const ssize_t got = file >= 0 ? read(file, said, sizeof said - 1) : 0;
        if (file >= 0) {
            close(file);
        }
        said[got > 0 ? got : 0] = '\0';
        last = strrchr(said, ' ');
    }
    if (last != NULL) {
        x->shared->crash.frames[0] = strtoull(last, NULL, 16);
        x->shared->crash.num_frames = 1;
        atomic_store(&x->shared->crash.valid, 1);
    }
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
    if (ended.si_pid == 0) {
        ask_kernel(x);
    }
}

static bool floods(int file)
{
    struct stat now;
    return fstat(file, &now) == 0 && now.st_size > FD_WORKER_SAYS;
}

/* ended: as of waitpid(), if it ended. The process is gone unless it answered. */
static enum fd_fate wait_for(fd_process *x, const fd_worker_options *options, uint32_t number, int *ended)
{
    fd_shared *s = x->shared;
    const double begun = now_seconds();
    for (;;) {
        const uint32_t answered = atomic_load(&s->answered);
        const struct timespec look = {0, LOOK_NS};
        if (answered == number) {
            return FD_ANSWERED;
        }
        (void)syscall(SYS_futex, &s->answered, FUTEX_WAIT, answered, &look, NULL, 0);
        if (atomic_load(&s->answered) == number) {
            return FD_ANSWERED;
        }
        if (waitpid(x->pid, ended, WNOHANG) == x->pid) {
            if (WIFSTOPPED(*ended)) { /* of one's children only those are told of that asked to be traced */
                fd_process_stop(x);
            } else {
                bury(x);
            }
            return FD_ENDED;
        }
        if (floods(x->out) || floods(x->err)) {
            const bool out = floods(x->out);
            fd_process_stop(x);
            return out ? FD_FLOODED_OUT : FD_FLOODED_ERR;
        }
        if (now_seconds() - begun > allowed(x, options)) {
            ask_where(x);
            fd_process_stop(x);
            return FD_HUNG;
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
    if (fstat(x->err, &said) == 0 && said.st_size > STDERR_KEPT && ftruncate(x->err, 0) == 0) {
        said.st_size = 0;
    }
    x->runs = 1 + (request == FD_ASK_RUN ? s->repeats : 0);
    s->request = (int32_t)request;
    s->text[0] = '\0';
    const uint32_t number = atomic_load(&s->answered) + 1;
    atomic_store(&s->asked, number);
    (void)syscall(SYS_futex, &s->asked, FUTEX_WAKE, 1, NULL, NULL, 0);
    const enum fd_fate fate = wait_for(x, options, number, &ended);
    if (fate != FD_ANSWERED && !(request == FD_ASK_END && fate == FD_ENDED && ended == 0)) {
        fd_worker_describe(x, options, ended, fate, (int64_t)said.st_size, incident);
    }
    return fate == FD_ANSWERED;
}

/* It left as it was asked to. Did it do anything that nobody looked at any more? */
static void look_back(const fd_process *x, fd_incident *incident)
{
    char line[100];
    const ssize_t got = pread(x->out, line, sizeof line - 1, 0);
    line[got > 0 ? got : 0] = '\0';
    line[strcspn(line, "\r\n")] = '\0';
    if (incident->happened || (x->strays == 0 && got <= 0)) {
        return;
    }
    *incident = (fd_incident){.happened = true};
    if (x->strays > 0) {
        snprintf(incident->text, sizeof incident->text, "left a process running, in %s", fd_doing_text(FD_DOING_EXIT));
    } else {
        snprintf(incident->text, sizeof incident->text, "writes to standard output: \"%s\", in %s", line,
                 fd_doing_text(FD_DOING_EXIT));
    }
    fd_text_clean(incident->text);
}

bool fd_process_end(fd_process *x, const fd_worker_options *options, fd_incident *incident)
{
    if (x->pid > 0) {
        (void)fd_process_ask(x, options, FD_ASK_END, incident);
        if (getenv(FD_SANITIZED) == NULL) { /* whose tools have processes and words of their own */
            look_back(x, incident);
        }
    }
    return !incident->happened;
}
#endif
