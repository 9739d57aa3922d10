/* worker_watch.c: what a plug-in left changed in its process. */
#define _GNU_SOURCE
#ifdef __linux__
#include <dirent.h>
#include <fcntl.h>
#include <fenv.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "worker_protocol.h"

#define GROWTHS 3          /* calls in a row, each of which leaves more threads or descriptors: a leak, not a pool */
#define STDOUT_KEPT 200000 /* bytes of standard output after which the file begins anew */

static fd_shared *shared;

/* ---- What must be as before -------------------------------------------------------------------- */

static struct {
    pid_t process;
    struct stat files[FD_WORKER_DESCRIPTORS];
    struct sigaction handlers[NSIG];
    sigset_t mask;
    fenv_t environment;
    uint32_t control;
    int rounding;
    char folder[4096];
    int threads, descriptors;               /* after the last counted call; 0: none yet */
    int thread_growths, descriptor_growths; /* calls in a row */
} before;

/* The bits that change results: rounding, flush to zero, denormals as zero, exception masks. */
static uint32_t control_bits(void)
{
#if defined(__x86_64__)
    return _mm_getcsr() & ~0x3fu;
#elif defined(__aarch64__)
    uint64_t bits;
    __asm__ volatile("mrs %0, fpcr" : "=r"(bits));
    return (uint32_t)bits;
#else
    return 0;
#endif
}

static bool flushes(uint32_t bits)
{
#if defined(__x86_64__)
    return (bits & 0x8040u) != 0; /* FTZ, DAZ */
#elif defined(__aarch64__)
    return (bits >> 24 & 1u) != 0; /* FZ */
#else
    (void)bits;
    return false;
#endif
}

/* Entries of a folder of /proc/self, the one for looking at it not counted. */
static int count_of(const char *path, bool opens)
{
    DIR *folder = opendir(path);
    int count = opens ? -1 : 0;
    if (folder == NULL) {
        return 0;
    }
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    closedir(folder);
    return count;
}

void fd_watch_begin(fd_shared *where)
{
    shared = where;
    before.process = getpid();
    for (int i = 0; i < FD_WORKER_DESCRIPTORS; i++) {
        (void)fstat(i, &before.files[i]);
    }
    for (int i = 1; i < NSIG; i++) {
        (void)sigaction(i, NULL, &before.handlers[i]);
    }
    (void)sigprocmask(SIG_SETMASK, NULL, &before.mask);
    fesetenv(FE_DFL_ENV);
    fegetenv(&before.environment);
    before.control = control_bits();
    before.rounding = fegetround();
    if (getcwd(before.folder, sizeof before.folder) == NULL) {
        before.folder[0] = '\0';
    }
}

static void note(enum fd_conduct kind, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void note(enum fd_conduct kind, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(shared->conduct_text[kind], sizeof shared->conduct_text[kind], format, arguments);
    va_end(arguments);
    shared->conduct_doing[kind] = shared->doing;
    shared->conduct |= 1u << kind;
}

/* What cannot be put right ends the worker; the parent reads text. */
static void give_up(enum fd_worker_exit code, const char *text)
{
    snprintf(shared->text, sizeof shared->text, "%s", text);
    _exit((int)code);
}

static void check_files(void)
{
    static const char *const names[FD_WORKER_DESCRIPTORS] = {"0 (stdin)", "1 (stdout)", "2 (stderr)", "3", "4"};
    char text[160] = "";
    size_t used = 0;
    for (int i = 0; i < FD_WORKER_DESCRIPTORS; i++) {
        struct stat now;
        if (fstat(i, &now) != 0 || now.st_ino != before.files[i].st_ino || now.st_dev != before.files[i].st_dev) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used > 0 ? ", " : "", names[i]);
        }
    }
    if (used > 0) {
        char said[208];
        snprintf(said, sizeof said, "closed descriptors that are not its own: %s", text);
        give_up(FD_WORKER_ROBBED, said);
    }
}

static void check_children(void)
{
    siginfo_t child = {.si_pid = 0};
    if (waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0) {
        give_up(FD_WORKER_LITTERED,
                child.si_pid == 0 ? "left a process running" : "left a child process that it did not wait for");
    }
}

static void check_floating_point(void)
{
    const uint32_t bits = control_bits();
    if (fegetround() != before.rounding) {
        note(FD_CONDUCT_FLOATING_POINT, "left another rounding mode set");
    } else if (flushes(bits) && !flushes(before.control)) {
        note(FD_CONDUCT_FLOATING_POINT, "left flush-to-zero set; -ffast-math links that in (crtfastmath.o)");
    } else if (bits != before.control) {
        note(FD_CONDUCT_FLOATING_POINT, "left the floating-point environment changed (control bits 0x%x, were 0x%x)",
             bits, before.control);
    }
    fesetenv(&before.environment);
}

static void check_signals(void)
{
    sigset_t mask;
    for (int i = 1; i < NSIG; i++) {
        struct sigaction now;
        if (sigaction(i, NULL, &now) == 0 &&
            (now.sa_handler != before.handlers[i].sa_handler || now.sa_sigaction != before.handlers[i].sa_sigaction)) {
            note(FD_CONDUCT_SIGNALS, "left its own handler of signal %d (%s)", i, strsignal(i));
            (void)sigaction(i, &before.handlers[i], NULL);
        }
    }
    (void)sigprocmask(SIG_SETMASK, &before.mask, &mask);
    for (int i = 1; i < NSIG; i++) {
        if (sigismember(&mask, i) == 1 && sigismember(&before.mask, i) == 0) {
            note(FD_CONDUCT_SIGNALS, "left signal %d (%s) blocked", i, strsignal(i));
        }
    }
}

static void check_folder(void)
{
    char now[sizeof before.folder];
    if (before.folder[0] != '\0' && (getcwd(now, sizeof now) == NULL || strcmp(now, before.folder) != 0)) {
        note(FD_CONDUCT_DIRECTORY, "left another working directory");
        if (chdir(before.folder) != 0) {
            before.folder[0] = '\0';
        }
    }
}

static void check_output(void)
{
    struct stat now;
    char line[100];
    fflush(NULL);
    if (fstat(STDOUT_FILENO, &now) != 0 || now.st_size == 0) {
        return;
    }
    const ssize_t got = pread(STDOUT_FILENO, line, sizeof line - 1, 0);
    line[got > 0 ? got : 0] = '\0';
    line[strcspn(line, "\r\n")] = '\0';
    note(FD_CONDUCT_STDOUT, "writes to standard output: \"%s\"", line);
    if (ftruncate(STDOUT_FILENO, 0) != 0 && now.st_size > STDOUT_KEPT) {
        give_up(FD_WORKER_CANNOT, "standard output cannot be emptied");
    }
}

/* A pool that is made once, or grows with the problem, is no leak; growth in every one of several calls is. */
static void count(const char *path, bool opens, int *last, int *growths, enum fd_conduct kind, const char *what)
{
    const int now = count_of(path, opens);
    *growths = *last > 0 && now > *last ? *growths + 1 : 0;
    if (*growths >= GROWTHS) {
        note(kind, "leaks %s: %d more after each of %d calls, %d now", what, now - *last, GROWTHS, now);
    }
    *last = now;
}

void fd_watch_cuda(fd_shared *where)
{
    shared = where;
    const char *error = fd_take_cuda_error();
    if (error != NULL) {
        note(FD_CONDUCT_CUDA, "left a CUDA error behind, for the next who asks: %s", error);
    }
}

void fd_watch_end(fd_shared *where, bool counted)
{
    shared = where;
    if (getpid() != before.process) { /* a fork() inside run() came back twice */
        _exit(0);
    }
    check_files();
    check_children();
    check_floating_point();
    check_signals();
    check_folder();
    check_output();
    if (counted) {
        count("/proc/self/task", false, &before.threads, &before.thread_growths, FD_CONDUCT_THREADS, "threads");
        count("/proc/self/fd", true, &before.descriptors, &before.descriptor_growths, FD_CONDUCT_DESCRIPTORS,
              "descriptors");
    }
}
#endif
