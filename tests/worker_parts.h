/* worker_parts.h: what the files of the judge's side share: the one plug-in at hand, and how its process is asked. Everyone else
 * includes worker.h. */
#ifndef FD_WORKER_PARTS_H
#define FD_WORKER_PARTS_H

#include "worker.h"
#ifdef __linux__
#include <pthread.h>

#include "worker_arena.h"

typedef struct fd_worker_state {
    fd_worker_options options;
    fd_process process;
    fd_loaded loaded;
    fd_rung rung;
    fd_incident incident;
    uint32_t conduct;
    char conduct_text[FD_NUM_CONDUCTS][160];
    bool gives_lse;
    int32_t repeats;   /* timed after each run */
    int32_t num_parts; /* > 0: run() is merge(), of these */
    const fd_tensor *part_o, *part_lse;
    bool at_start; /* tensors begin with their pages, instead of ending with them: two runs of four */
    uint32_t runs;
} fd_worker_state;

extern fd_worker_state fd_worker;
extern pthread_mutex_t fd_worker_lock; /* of asking: the judge asks arith() from many threads */

/* ---- worker_ask.c, with the lock held ---- */

/* What no status can say, and no death: the first such is the incident. */
void fd_worker_blame(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The question's common part: the problem without its tensors, and what is readable without them. */
void fd_worker_begin_question(fd_arena *l, const fd_problem *problem, const fd_plan *plan);

/* Fills the arena with what was placed there; else that is the incident. */
bool fd_worker_lay_out(const fd_arena *l);

/* True: it answered. Else the incident says why not. */
bool fd_worker_ask(enum fd_request request);

/* A status that the worker returned from that function; one that is none is the incident, and FD_INVALID. */
fd_status fd_worker_known(int32_t status, const char *function);

/* A text that the worker left; its process may have written anything there. */
void fd_worker_take_text(char *to, size_t n, const char *from, size_t bytes);

bool fd_worker_on_gpu(void);

/* ---- worker_run.c ---- */

/* As fd_use_runner() wants it. */
fd_status fd_worker_run(const fd_problem *problem, const fd_plan *plan, const fd_buffer *scratch, char *why, size_t n);
#endif

#endif /* FD_WORKER_PARTS_H */
