/* worker_crash.c: in the worker: the signal that ends it, told to the parent. */
#define _GNU_SOURCE
#ifdef __linux__
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#include "worker_protocol.h"

#define NEAR_LIMIT 16 /* a crash when all but a sixteenth of --megabytes is used is blamed on that */

static fd_shared *shared;

static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGXFSZ, SIGTERM};
enum { NUM_FATAL = sizeof fatal / sizeof *fatal };

static unsigned char alternate[1 << 16]; /* the handler's stack: the plug-in's may be what overflowed */

uint64_t fd_watch_memory(void)
{
    char text[64] = "";
    const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    const ssize_t got = file >= 0 ? read(file, text, sizeof text - 1) : 0;
    uint64_t pages = 0;
    for (ssize_t i = 0; i < got && text[i] >= '0' && text[i] <= '9'; i++) {
        pages = 10 * pages + (uint64_t)(text[i] - '0');
    }
    if (file >= 0) {
        close(file);
    }
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    static _Atomic int32_t entered;
    fd_crash *crash = &shared->crash;
    if (atomic_exchange(&entered, 1) != 0) { /* another thread, or this handler itself */
        if (atomic_load(&crash->valid) != 0) {
            _exit(FD_WORKER_CRASHED);
        }
        for (;;) {
            pause();
        }
    }
    crash->signal = number;
    crash->code = info->si_code;
    crash->address = (uint64_t)(uintptr_t)info->si_addr;
    crash->wrote = -1;
#if defined(__x86_64__)
    const ucontext_t *c = (const ucontext_t *)context;
    crash->frames[0] = (uint64_t)c->uc_mcontext.gregs[REG_RIP];
    crash->stack = (uint64_t)c->uc_mcontext.gregs[REG_RSP];
    crash->wrote = (int32_t)(c->uc_mcontext.gregs[REG_ERR] >> 1 & 1);
#elif defined(__aarch64__)
    const ucontext_t *c = (const ucontext_t *)context;
    crash->frames[0] = c->uc_mcontext.pc;
    crash->stack = c->uc_mcontext.sp;
#else
    (void)context;
#endif
    crash->num_frames = 1;
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        crash->near_limit = fd_watch_memory() + ((uint64_t)shared->megabytes << 20) / NEAR_LIMIT >= limit.rlim_cur;
    }
    atomic_store(&crash->valid, 1); /* what follows may itself crash */
    void *frames[FD_WORKER_FRAMES];
    const int count = backtrace(frames, FD_WORKER_FRAMES - 1);
    for (int i = 0; i < count; i++) {
        crash->frames[i + 1] = (uint64_t)(uintptr_t)frames[i];
    }
    crash->num_frames = count + 1;
    _exit(FD_WORKER_CRASHED);
}

static void install(void)
{
    const stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    action.sa_sigaction = on_signal;
    sigemptyset(&action.sa_mask);
    sigaltstack(&stack, NULL);
    for (int i = 0; i < NUM_FATAL; i++) {
        sigaction(fatal[i], &action, NULL);
    }
}

void fd_watch_signals(fd_shared *where)
{
    void *frames[2];
    struct rlimit limit;
    shared = where;
    (void)backtrace(frames, 2); /* loads the unwinder now, not in the handler */
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        shared->stack_low = (uint64_t)(uintptr_t)&limit - limit.rlim_cur;
    }
    install();
}
#endif
