/* worker_arena.h: where the tensors of one question lie in the memory that both processes map. Each has pages of its own; its
 * bytes end with them or begin with them, so that the worker's forbidden pages are met at once, and what alignment leaves
 * over holds a pattern. */
#ifndef FD_WORKER_ARENA_H
#define FD_WORKER_ARENA_H

#include "worker.h"

typedef struct fd_arena {
    fd_segment segments[FD_WORKER_SEGMENTS];
    const void *from[FD_WORKER_SEGMENTS]; /* what is copied in; NULL: nothing */
    int32_t count;
    bool at_start; /* data begins with its pages, instead of ending with them */
    uint64_t bytes;
} fd_arena;

/* Bytes of tensor t (of FD_NUM_TENSORS) from its element [0, 0, 0, 0] to the last that the strides reach: where the view ends. */
uint64_t fd_view_bytes(const fd_problem *p, int t, const fd_tensor *x);

/* Adds a segment and returns its index. alignment: a power of two. The address modulo 64, too, is the same at both ends of
 * the pages, so that code which depends on it rounds alike in every run. */
int32_t fd_arena_place(fd_arena *l, const char *name, uint64_t bytes, uint64_t alignment, bool writable,
                       const void *from);

/* The segment added last: its address becomes no multiple of 32, if it is one, and its end lies 16 bytes before
 * that of its pages. */
void fd_arena_no_more_than_16(fd_arena *l);

/* Copies everything in, and tells the worker where it is. false: no memory. */
bool fd_arena_fill(const fd_arena *l, fd_process *process);

/* After an answer: are the bytes of the pages that are not the segment's what they were? Else *at is the first that is not,
 * counted from the segment's data. */
bool fd_slack_intact(const fd_segment *x, const unsigned char *pages, int64_t *at);

#endif /* FD_WORKER_ARENA_H */
