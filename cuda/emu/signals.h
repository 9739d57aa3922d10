/* signals.h: a wild access, a division by zero or an endless loop inside a kernel ends the launch, not the program. */
#ifndef FD_EMU_SIGNALS_H
#define FD_EMU_SIGNALS_H

#include <setjmp.h>

extern sigjmp_buf emu_kernel_escape, emu_host_escape;

/* 0 now; 1 again after a signal's fault has been reported and the launch has failed. */
#define emu_enter_kernel() sigsetjmp(emu_kernel_escape, 0)

/* The same for a rung's host code, between emu_signals_begin() and emu_signals_end(). */
#define emu_enter_host() sigsetjmp(emu_host_escape, 0)

/* Take over, give back, the signals; they nest. host: emu_enter_host() has been called. */
void emu_signals_begin(int host);
void emu_signals_end(int host);

#endif /* FD_EMU_SIGNALS_H */
