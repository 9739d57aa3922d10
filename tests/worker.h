/* worker.h: a plug-in in a process of its own. What stands here for it is a descriptor whose functions ask that process, so
 * that judge, relations and diagnosis take it for any other rung. One plug-in at a time. Linux only. */
#ifndef FD_WORKER_H
#define FD_WORKER_H

#include <stdbool.h>

#include "mirror.h"
#include "worker_protocol.h"

/* What a plug-in did that no answer can say: it crashed, hung, ended the process, asked for too much. */
typedef struct fd_incident {
    bool happened, death, hang;
    char text[320];        /* one line: what, in which function, and where in its source if that is known */
    char stderr_line[200]; /* the last thing it said; "" if nothing */
} fd_incident;

typedef struct fd_worker_options {
    const char *path;
    int32_t seconds;        /* that one call may take */
    int64_t megabytes;      /* of address space beyond what is mapped when it is loaded; 0: any */
    bool any_length;        /* on the emulator: problems of any length */
    const fd_arith *claims; /* that replace the plug-in's own; NULL: its own */
} fd_worker_options;

/* Starts the worker and loads the plug-in. FD_OK; FD_INVALID (no such file, no plug-in), FD_NO_DEVICE: why says what and the
 * cure; FD_DEVICE_ERROR: it died while loading, see fd_worker_incident(). */
fd_status fd_worker_open(const fd_worker_options *options, char *why, size_t n);
void fd_worker_close(void);

/* Has the worker leave as a program does, destructors included. false: that went wrong, see fd_worker_incident(). */
bool fd_worker_finish(void);

const fd_rung *fd_worker_rung(void); /* stands for the plug-in between open and close */
const fd_loaded *fd_worker_loaded(void);

/* The plug-in's merge() of 1 to FD_WORKER_PARTS results, each shaped like the problem's o and lse, which hold what
 * it wrote after FD_OK. Else as a run that failed. Only if fd_worker_loaded()->has_merge. */
fd_status fd_worker_merge(const fd_problem *problem, const fd_plan *plan, const fd_buffer *scratch, int32_t num_parts,
                          const fd_tensor *part_o, const fd_tensor *part_lse, char *why, size_t n);

/* Before a case: forgets the last incident, and starts the worker again if it died. false: it does not load any more. */
bool fd_worker_begin(char *why, size_t n);
const fd_incident *fd_worker_incident(void); /* the first since then */

/* Conduct seen since then: bits 1 << fd_conduct, and what was seen. */
uint32_t fd_worker_conduct(char text[FD_NUM_CONDUCTS][160]);

/* The next runs of the plug-in are timed, each `repeats` times more (at most FD_WORKER_TIMES; 0: not), one after another in its
 * own process, where it runs; and after each the reading of k and v. Times of the last run, in ns: [repeats] each. */
void fd_worker_time(int32_t repeats);
const double *fd_worker_run_ns(void);
const double *fd_worker_floor_ns(void);

/* ---- worker_process.c: the process ---- */

typedef struct fd_process {
    fd_shared *shared; /* NULL: no worker */
    int pid;           /* 0: dead */
    int32_t runs;      /* of the plug-in, in this request */
    int strays;        /* processes that it left behind when it died; they are dead, too */
    int control, arena, out, err;
    unsigned char *memory; /* of the arena */
    size_t memory_bytes;
} fd_process;

/* What became of a request. */
enum fd_fate { FD_ANSWERED, FD_ENDED, FD_HUNG, FD_FLOODED_OUT, FD_FLOODED_ERR };

#define FD_WORKER_SAYS (64 << 20) /* bytes on standard output or standard error, of one request: they are in memory */

/* FD_OK or FD_NO_MEMORY with why. */
fd_status fd_process_start(fd_process *process, const fd_worker_options *options, char *why, size_t n);
void fd_process_stop(fd_process *process); /* kills it and whatever it started; memory stays */
void fd_process_free(fd_process *process);
bool fd_process_reserve(fd_process *process, size_t bytes); /* room in the arena */

/* Asks, and waits. false: no answer, and the incident says why; the process is dead then. */
bool fd_process_ask(fd_process *process, const fd_worker_options *options, enum fd_request request,
                    fd_incident *incident);

/* Asks it to leave. false: it crashed, or hangs. */
bool fd_process_end(fd_process *process, const fd_worker_options *options, fd_incident *incident);

/* ---- worker_said.c: words ---- */

const char *fd_doing_text(int32_t doing); /* "run()" */

/* What became of it, unless it answered; wait_status: as of waitpid, if it ended. */
void fd_worker_describe(const fd_process *process, const fd_worker_options *options, int wait_status, enum fd_fate fate,
                        int64_t stderr_from, fd_incident *incident);

/* ---- worker_strays.c: processes that outlive the one that started them ---- */

/* Orphans among this process's descendants become its children from now on. The children that it has already are not
 * the plug-in's, and are left alone. */
void fd_strays_watch(void);

/* Kills every child that came since, and what they leave in turn. How many there were. */
int fd_strays_kill(void);

#endif /* FD_WORKER_H */
