/* signals.h: a wild access, a division by zero or an endless loop inside a kernel ends the launch, not the program. */
#ifndef FD_EMU_SIGNALS_H
#define FD_EMU_SIGNALS_H

#include <setjmp.h>
#include <signal.h>

extern sigjmp_buf emu_kernel_escape, emu_host_escape;

/* 0 now; 1 again after a signal's fault has been reported and the launch has failed. */
#define emu_enter_kernel() sigsetjmp(emu_kernel_escape, 0)

/* The same for a rung's host code, between emu_signals_begin() and emu_signals_end(). */
#define emu_enter_host() sigsetjmp(emu_host_escape, 0)

/* Set while the observer runs: nobody may jump out of it. */
extern volatile sig_atomic_t emu_in_observer;

/* Set when a thread has run for too long: whoever sees it calls emu_spun() with the place the thread is at, which ends the
 * launch; if nobody does for a tick, the signal's handler ends it. */
extern volatile sig_atomic_t emu_expired;
_Noreturn void emu_spun(const void *pc);

/* Take over, give back, the signals; they nest. host: emu_enter_host() has been called. */
void emu_signals_begin(int host);
void emu_signals_end(int host);

#endif /* FD_EMU_SIGNALS_H */
