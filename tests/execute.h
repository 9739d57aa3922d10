/* execute.h: one run of a rung on an instance, fenced: poison in workspace and outputs, guards around every buffer. */
#ifndef FD_EXECUTE_H
#define FD_EXECUTE_H

#include "device.h"
#include "instance.h"

/* ---- Where a rung runs: on the host if it takes host memory, else on the device of the ladder ---- */

/* That device; NULL for the host, or with a line in why if there is no device. */
const fd_device *fd_device_for(const fd_rung *rung, char *why, size_t n);

/* "cpu", "emu" or "gpu"; "-" if it needs a device that is not there. */
const char *fd_where(const fd_rung *rung);

/* Another device for the rungs that need one, until called with NULL. For tests, and for plug-ins. */
void fd_use_device(const fd_device *device);

/* The emulator refuses problems of more multiply-adds, by name: they would take minutes, and their copies a second
 * gigabyte. 0: nothing is too long. */
#define FD_EMULATED_MAX ((int64_t)1 << 25)
void fd_limit_emulation(int64_t multiply_adds);

/* Runs of this rung go through the runner, which has it run elsewhere: the problem's tensors are those of the instance, and
 * hold the outputs after FD_OK. For a plug-in, which runs in a process of its own. NULL, NULL: none any more. */
typedef fd_status fd_runner(const fd_problem *problem, const fd_plan *plan, const fd_buffer *workspace, char *why,
                            size_t n);
void fd_use_runner(const fd_rung *rung, fd_runner *runner, bool gives_lse);

/* false: this rung leaves zeros for lse, and nothing is to be said about them. */
bool fd_gives_lse(const fd_rung *rung);

#define FD_HOST_THREADS 4 /* for a rung that uses threads: the same plan, and race conditions, on every machine */

/* The machine that CPU rungs plan for, with so many threads. */
fd_machine fd_host_machine(int32_t threads);

/* fd_supports() of a problem in host memory, for a rung that may want it elsewhere. FD_NO_DEVICE if nothing runs it. */
fd_status fd_supports_here(const fd_rung *rung, const fd_problem *problem, char *why, size_t n);

/* ---- Running it ---- */

/* The plan of a rung for the instance's problem and the machine it runs on (a host has FD_HOST_THREADS), in a fresh
 * allocation; *plan is NULL if the rung has none. */
fd_status fd_plan_for(const fd_rung *rung, const fd_problem *problem, fd_plan **plan, char *why, size_t n);

/* The same for another machine. */
fd_status fd_plan_on(const fd_machine *machine, const fd_rung *rung, const fd_problem *problem, fd_plan **plan,
                     char *why, size_t n);

/* Runs the rung with that plan, lse wanted or not. Before: workspace, o, lse and the tails of k and v hold poison.
 * After: o as floats in o_out [batch, q_len, heads_q, head_dim_v], lse in lse_out [batch, q_len,
 * heads_q] (untouched if not wanted).
 * FD_INVALID with the reason if a guard was overwritten, inputs or plan were changed, or run() failed; FD_DEVICE_ERROR if
 * a kernel faulted. */
fd_status fd_execute(const fd_rung *rung, const fd_plan *plan, fd_instance *instance, bool with_lse,
                     enum fd_poison poison, float *o_out, float *lse_out, char *why, size_t n);

#endif /* FD_EXECUTE_H */
