#define _DEFAULT_SOURCE

#include "signals.h"

#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "block.h"

#define TICK_MICROSECONDS 250000

sigjmp_buf emu_kernel_escape, emu_host_escape;

static unsigned char alternate[1 << 16]; /* the handler's stack: the kernel's may be what overflowed */
static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGVTALRM};
enum { NUM_CAUGHT = sizeof caught / sizeof *caught };
static struct sigaction before[NUM_CAUGHT];
static stack_t stack_before;
static int depth, host_depth;
static int64_t seen_switches;
static int idle_ticks;

volatile sig_atomic_t emu_in_observer, emu_expired;

/* One past the first byte of the instruction, as a return address is past its call: reports look up the byte before. */
static const void *program_counter(const void *context)
{
#if defined(__x86_64__)
    const ucontext_t *c = (const ucontext_t *)context;
    return (const unsigned char *)c->uc_mcontext.gregs[16] + 1; /* REG_RIP */
#elif defined(__aarch64__)
    const ucontext_t *c = (const ucontext_t *)context;
    return (const unsigned char *)c->uc_mcontext.pc + 1;
#else
    (void)context;
    return NULL;
#endif
}

static void report_spin(const void *pc)
{
    emu_report_at(FD_EMU_SPIN, emu_self(), pc, NULL, 0,
                  "runs for %g s without a rendezvous: a loop that waits needs fd_spin()", emu_options.spin_seconds);
    emu_running->failed = true;
}

void emu_spun(const void *pc)
{
    emu_expired = 0;
    report_spin(pc);
    emu_fail();
}

static void on_tick(const void *pc)
{
    if (emu_running == NULL || emu_running->switches != seen_switches) {
        idle_ticks = emu_expired = 0;
        seen_switches = emu_running != NULL ? emu_running->switches : 0;
        return;
    }
    idle_ticks++;
    if (emu_options.spin_seconds > 0.0 && 1e-6 * TICK_MICROSECONDS * idle_ticks > emu_options.spin_seconds &&
        fd_emu_self != NULL) {
        if (!emu_expired || emu_in_observer) { /* let the thread say itself where it is, at its next access */
            emu_expired = 1;
            return;
        }
        idle_ticks = emu_expired = 0;
        report_spin(pc);
        siglongjmp(emu_kernel_escape, 1);
    }
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    const void *pc = program_counter(context);
    char where[160];
    if (number == SIGVTALRM) {
        on_tick(pc);
        return;
    }
    int32_t fault = number == SIGSEGV || number == SIGBUS ? FD_EMU_ACCESS : FD_EMU_INDEX;
    if (fault == FD_EMU_INDEX) { /* the trap is what clang's bounds check ends in */
        strcpy(where, number == SIGFPE ? "an integer division by zero" : "an index outside its array, or a trap");
    } else if (emu_cluster_describe(info->si_addr, where, sizeof where)) {
        fault = FD_EMU_CLUSTER;
    } else {
        emu_describe_address(info->si_addr, where, sizeof where);
    }
    if (emu_running != NULL && fd_emu_self != NULL) {
        emu_report_at(fault, emu_self(), pc, NULL, 0, "%s", where);
        emu_running->failed = true;
        siglongjmp(emu_kernel_escape, 1);
    }
    if (host_depth > 0) {
        emu_report_at(FD_EMU_HOST, NULL, pc, NULL, 0, "host code of the rung touches %s", where);
        siglongjmp(emu_host_escape, 1);
    }
    signal(number, SIG_DFL); /* not ours: crash as if nobody had been listening */
    raise(number);
}

static void tick_every(long microseconds)
{
    const struct itimerval timer = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_VIRTUAL, &timer, NULL);
}

void emu_signals_begin(int host)
{
    host_depth += host;
    if (depth++ > 0) {
        return;
    }
    const stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    sigaltstack(&stack, &stack_before);
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART};
    action.sa_sigaction = on_signal;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < NUM_CAUGHT; i++) {
        sigaction(caught[i], &action, &before[i]);
    }
    idle_ticks = 0;
    emu_expired = emu_in_observer = 0;
    tick_every(TICK_MICROSECONDS);
}

void emu_signals_end(int host)
{
    host_depth -= host;
    if (--depth > 0) {
        return;
    }
    tick_every(0);
    for (int i = 0; i < NUM_CAUGHT; i++) {
        sigaction(caught[i], &before[i], NULL);
    }
    sigaltstack(&stack_before, NULL);
}
