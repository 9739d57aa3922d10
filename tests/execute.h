/* execute.h: one run of a rung on an instance, fenced: poison in workspace and outputs, guards around every buffer. */
#ifndef FD_EXECUTE_H
#define FD_EXECUTE_H

#include "instance.h"

#define FD_HOST_THREADS 4 /* for a rung that uses threads: the same plan, and race conditions, on every machine */

/* The machine that CPU rungs plan for, with so many threads. */
fd_machine fd_host_machine(int32_t threads);

/* The plan of a rung for the instance's problem and FD_HOST_THREADS threads, in a fresh allocation; *plan is NULL if
 * the rung has none. */
fd_status fd_plan_for(const fd_rung *rung, const fd_problem *problem, fd_plan **plan, char *why, size_t n);

/* The same for another machine. */
fd_status fd_plan_on(const fd_machine *machine, const fd_rung *rung, const fd_problem *problem, fd_plan **plan,
                     char *why, size_t n);

/* Runs the rung with that plan, lse wanted or not. Before: workspace, o, lse and the tails of k and v hold poison.
 * After: o as floats in o_out [batch, q_len, heads_q, head_dim_v], lse in lse_out [batch, q_len, heads_q] (untouched if not wanted).
 * FD_INVALID with the reason if a guard was overwritten, the plan was changed, or run() failed. */
fd_status fd_execute(const fd_rung *rung, const fd_plan *plan, fd_instance *instance, bool with_lse,
                     enum fd_poison poison, float *o_out, float *lse_out, char *why, size_t n);

#endif /* FD_EXECUTE_H */
