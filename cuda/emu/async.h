/* async.h: inside the emulator: asynchronous copies and the transaction barriers that count them. All of it belongs to one
 * launch, and is made when a kernel first asks for it: other kernels pay one test of a pointer. */
#ifndef FD_EMU_ASYNC_H
#define FD_EMU_ASYNC_H

#include "block.h"

#define EMU_GRANULE 16u /* bytes: every asynchronous copy writes whole ones */

/* A copy between its issue and the wait that completes it. */
typedef struct emu_copy {
    unsigned char *to;
    const unsigned char *from;
    uint32_t size, bytes; /* written; read, the rest is zeros */
    emu_thread *by;
    const char *file; /* of its issue */
    int32_t line;
    const void *pc;
    int32_t next;   /* of the thread's copies, of the bulk copies or of the free ones; 0: none */
    uint32_t group; /* cp.async: groups that the thread had closed before */
    int32_t bar;    /* bulk: the barrier that it reports to; 0: cp.async */
    int64_t phase;  /* bulk: of the barrier when it was issued */
} emu_copy;

/* A transaction barrier. The 8 bytes in shared memory hold its number: whoever overwrites them is found out. */
typedef struct emu_mbar {
    uint64_t *at;
    emu_thread *by; /* that initialised it */
    const char *file;
    int32_t line;
    int32_t expected, pending; /* arrivals of a phase; that are missing in this one */
    int64_t bytes;             /* PTX's tx-count: still to come; negative: came before they were announced */
    int64_t phase;             /* completed ones */
    int64_t waited, carried;   /* last phase whose end somebody has seen; last one that bytes came in; -1: none */
    bool fenced;               /* fd_fence_async() since its init: copies may use it */
    bool carries;              /* bytes come in this phase */
    int32_t waiting, woken;    /* threads in fd_mbar_wait(); that may go on, but have not yet */
    const emu_thread *last_woken;
    const char *expect_file; /* of the last fd_mbar_expect() */
    int32_t expect_line;
    emu_thread *expect_by;
} emu_mbar;

typedef struct emu_async {
    emu_copy *copies; /* [room_copies], 1-based: number 0 is nobody's */
    int32_t num_copies, room_copies, free;
    int32_t first_bulk, last_bulk;
    emu_mbar *bars; /* [room_bars], 1-based */
    int32_t num_bars, room_bars;
    int32_t *owner; /* [granules] of shared memory: the copy that is on its way there */
    size_t granules;
    bool scheduler; /* a copy completes while no thread runs */
} emu_async;

/* async.c. Of the launch that runs; it fails where there is no memory for it. */
emu_async *emu_async_get(void);
/* Reports have been made: ends the launch. Returns only while no thread runs; then the caller returns too. */
void emu_async_fail(emu_async *a);
/* A bulk copy of the barrier's present phase that is under way, or NULL. */
const emu_copy *emu_async_outstanding(const emu_async *a, int32_t bar, int64_t phase);

/* mbar.c */
/* The number of a barrier of the caller's block, fit for use by `what`; otherwise it reports and ends the launch. */
int32_t emu_mbar_find(emu_async *a, const uint64_t *at, const char *what, const char *file, int line);
/* Bytes of a bulk copy have arrived. */
void emu_mbar_complete(emu_async *a, int32_t bar, uint32_t bytes);
void emu_mbar_end_block(emu_async *a, const emu_block *block);

#endif /* FD_EMU_ASYNC_H */
