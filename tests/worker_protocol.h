/* worker_protocol.h: what `flashdecode check` and its worker say to each other. The plug-in lives in the worker alone, a
 * process that may die. Two files in memory are mapped by both: the control block below, for one request at a time, and
 * the arena, which holds the tensors. No descriptor is needed after the start, so closing them all harms only the plug-in. */
#ifndef FD_WORKER_PROTOCOL_H
#define FD_WORKER_PROTOCOL_H

#include <stdatomic.h>

#include "fd.h"
#include "mirror.h"

enum { FD_WORKER_CONTROL = 3, FD_WORKER_ARENA = 4, FD_WORKER_DESCRIPTORS = 5 }; /* after stdin, stdout, stderr */

#define FD_WORKER_TEXT 512
#define FD_WORKER_PARTS 12 /* results that merge() is given at most */
#define FD_WORKER_SEGMENTS (FD_NUM_TENSORS + 3 + 2 * FD_WORKER_PARTS)
#define FD_WORKER_GUARD ((size_t)1 << 20) /* bytes without access on both sides of every tensor */
#define FD_WORKER_FRAMES 24
#define FD_WORKER_TIMES 64 /* runs that one request can time */

enum fd_request {
    FD_ASK_LOAD = 1,
    FD_ASK_SUPPORTS,
    FD_ASK_PLAN_BYTES,
    FD_ASK_PLAN,
    FD_ASK_WORKSPACE,
    FD_ASK_ARITH,
    FD_ASK_RUN,
    FD_ASK_MERGE,
    FD_ASK_END
};

/* Whose code runs, for the reader of a crash. fd_doing_text() in worker_said.c names them. */
enum fd_doing {
    FD_DOING_NOTHING = 0,
    FD_DOING_DLOPEN,
    FD_DOING_ENTRY,
    FD_DOING_DESCRIPTOR,
    FD_DOING_SUPPORTS,
    FD_DOING_PLAN_BYTES,
    FD_DOING_PLAN,
    FD_DOING_WORKSPACE,
    FD_DOING_ARITH,
    FD_DOING_RUN,
    FD_DOING_MERGE,
    FD_DOING_EXIT,
    FD_NUM_DOINGS
};

/* What a plug-in must leave as it found it. Each is noted once and undone, so that the verdicts go on. */
enum fd_conduct {
    FD_CONDUCT_STDOUT = 0,
    FD_CONDUCT_THREADS,
    FD_CONDUCT_DESCRIPTORS,
    FD_CONDUCT_FLOATING_POINT,
    FD_CONDUCT_SIGNALS,
    FD_CONDUCT_DIRECTORY,
    FD_CONDUCT_CUDA,
    FD_NUM_CONDUCTS
};

enum fd_worker_exit {
    FD_WORKER_CRASHED = 121,
    FD_WORKER_ROBBED,
    FD_WORKER_LITTERED,
    FD_WORKER_CANNOT
}; /* exit codes */

/* One tensor, the plan or the workspace: whole pages of the arena, with its bytes at the end or at the start of them. */
typedef struct fd_segment {
    char name[16];
    uint64_t at, span;      /* bytes, multiples of a page */
    uint64_t offset, bytes; /* of the data, in the span */
    int32_t writable, reserved;
    uint64_t address; /* of the data, in the worker; written there */
} fd_segment;

typedef struct fd_crash {
    _Atomic int32_t valid;       /* set last */
    int32_t signal, code, wrote; /* wrote: 1 the access was a write, 0 a read, -1 unknown */
    uint64_t address, stack;     /* of the access; the stack pointer */
    int32_t num_frames, near_limit;
    uint64_t frames[FD_WORKER_FRAMES]; /* innermost first */
} fd_crash;

typedef struct fd_loaded { /* what the plug-in says of itself, checked */
    char name[64], idea[160], where[8], device[96];
    fd_caps caps;
    fd_machine machine; /* of the device; size 0 for a host plug-in */
    int32_t has_supports, has_plan, has_workspace, has_arith, has_merge;
    uint64_t begin, end; /* its code, in the worker */
} fd_loaded;

typedef struct fd_shared {
    _Atomic uint32_t asked, answered; /* futexes; equal when idle */
    int32_t request;
    _Atomic int32_t doing; /* set before the plug-in's code runs, for the reader of a crash */

    /* the question */
    char target[4096];
    int32_t parent;     /* process id */
    fd_problem problem; /* data: 1 if the tensor is there, else NULL */
    int32_t tensor_segment[FD_NUM_TENSORS], kv_lens_host_segment, plan_segment, workspace_segment; /* -1: none */
    fd_machine machine;
    int64_t kv_len, megabytes;
    uint64_t plan_bytes;
    int32_t threads, layout;                                      /* layout changes when the segments do */
    int32_t num_parts;                                            /* of MERGE */
    fd_tensor part_o[FD_WORKER_PARTS], part_lse[FD_WORKER_PARTS]; /* data: nothing */
    int32_t part_segment[2][FD_WORKER_PARTS];                     /* of o, of lse */
    int32_t repeats; /* of RUN: after the run, so many more are timed; 0: none */
    int32_t num_segments;
    fd_segment segments[FD_WORKER_SEGMENTS];

    /* the answer */
    int32_t status, refused; /* fd_status; of LOAD: 1 bad input, 2 no device, and text says why */
    uint64_t bytes;
    char text[FD_WORKER_TEXT];
    fd_arith arith;
    fd_loaded loaded;
    double run_ns[FD_WORKER_TIMES], floor_ns[FD_WORKER_TIMES]; /* of each, and of reading k and v right after it */
    uint32_t conduct;                                          /* bits 1 << fd_conduct that were seen in this request */
    char conduct_text[FD_NUM_CONDUCTS][160];
    int32_t conduct_doing[FD_NUM_CONDUCTS];
    uint64_t stack_low; /* where the main thread's stack ends */
    uint64_t nothing;   /* FD_NUM_TENSORS pages without access: the tensors of a function that may read none */
    fd_crash crash;
} fd_shared;

int fd_cmd_worker(int argc, char **argv); /* the worker's main; ends with the parent */

/* ---- worker_device.c, in the worker ---- */

/* In the environment: compute-sanitizer watches, so inputs end where their memory on the device does. */
#define FD_SANITIZED "FD_SANITIZED"

/* RUN or MERGE on a device; p has its tensors where this process has them. */
fd_status fd_worker_run_there(fd_shared *shared, const fd_device *device, const fd_rung *rung, fd_problem p);

/* ---- worker_crash.c, in the worker ---- */

/* Catches the signals that end a process, on a stack of their own, and leaves in shared->crash what they were. */
void fd_watch_signals(fd_shared *shared);

/* Bytes of address space that this process has. */
uint64_t fd_watch_memory(void);

/* ---- worker_watch.c, in the worker ---- */

/* Remembers descriptors, signal handlers, floating-point environment and folder as they should be. */
void fd_watch_begin(fd_shared *shared);

/* After every call of the plug-in: compares, notes in shared->conduct, and restores. A plug-in that closed the worker's
 * descriptors or left a process behind ends it. counted: threads and descriptors too, which must not grow with every call. */
void fd_watch_end(fd_shared *shared, bool counted);

/* After a run on a GPU: does the plug-in's CUDA runtime hold an error that nobody took? Noted, and taken. */
void fd_watch_cuda(fd_shared *shared);

/* ---- worker_load.c, in the worker ---- */

/* A string of the plug-in's, which may be anything: copied, cut, and without what a terminal would obey. */
void fd_copy_text(char *to, size_t n, const char *from);

/* dlopen(), fd_plugin(), and the descriptor checked into shared->loaded; else shared->refused and text. *device is where it
 * runs; NULL: the host. */
void fd_load_plugin(fd_shared *shared, const fd_rung **rung, const fd_device **device);

/* Takes the last error of the plug-in's CUDA runtime: NULL if there is none, or if nobody can ask. It can be asked
 * if the plug-in includes fd_cuda.h, or links the runtime's shared library. */
const char *fd_take_cuda_error(void);

#endif /* FD_WORKER_PROTOCOL_H */
