/* block.h: inside the emulator: threads, warps and blocks while they run. */
#ifndef FD_EMU_BLOCK_H
#define FD_EMU_BLOCK_H

#include "emulator.h"
#include "fiber.h"

#define EMU_MAX_THREADS 1024 /* of a block */
#define EMU_MAX_WARPS (EMU_MAX_THREADS / FD_WARP)
#define EMU_STACK_BYTES ((size_t)64 << 10)
#define EMU_STACK_STAGGER ((size_t)128)       /* bytes by which a lane's stack begins before the last one's */
#define EMU_SHARED_MAX (227u << 10)           /* bytes of shared memory of a block: of the largest chip there is */
#define EMU_SHARED_STRIDE ((size_t)256 << 10) /* from one block of a cluster to the next: whole pages */
#define EMU_MAX_NESTING 2 /* launches under way at once: an overlapping one, and the one before it */

enum emu_wait {
    WAIT_NOT = 0, /* running, or ready to */
    WAIT_WARP,    /* at a warp operation */
    WAIT_BLOCK,   /* at a block barrier */
    WAIT_SPIN,    /* in fd_spin(): ready, once nobody else is */
    WAIT_MBAR,    /* at a transaction barrier, whose number is in `argument` */
    WAIT_CLUSTER, /* at a cluster barrier */
    WAIT_OVERLAP, /* in fd_overlap_wait() */
    WAIT_GONE     /* has left the kernel */
};

struct emu_block;
struct emu_warp;
struct emu_async; /* async.h */

typedef struct emu_thread {
    fd_emu_identity self; /* first: fd_emu_self points here */
    fd_fiber fiber;
    struct emu_warp *warp;
    int32_t index, lane; /* in the block, in the warp */
    int32_t wait;        /* emu_wait */
    const char *file;    /* of the rendezvous it waits at, or was at last */
    int32_t line;
    int32_t operation, argument; /* of WAIT_WARP: fd_emu_exchange, 0 for __syncwarp */
    uint32_t mask;
    uint64_t value, result;
    int32_t first_copy, last_copy; /* asynchronous copies that it has to wait for; 0: none */
    uint32_t groups;               /* of copies, closed so far */
    struct emu_watch *watch;       /* the observer's, hooked kernels only */
} emu_thread;

typedef struct emu_warp {
    struct emu_block *block;
    emu_thread *threads; /* [lanes] */
    int32_t lanes;
    uint32_t present;                               /* lanes that have not left */
    uint32_t runnable, at_warp, at_block, spinning; /* lanes by emu_wait */
    uint32_t elsewhere;                             /* in any of its other waits */
} emu_warp;

typedef struct emu_block {
    fd_dim index;
    emu_thread *threads; /* [num_threads] */
    emu_warp warps[EMU_MAX_WARPS];
    int32_t num_threads, num_warps;
    int32_t present, arrived; /* threads that have not left; that are at the barrier */
    unsigned char *dynamic;   /* dynamic shared memory, smem bytes */
    bool started;             /* of a cluster: its memory has been opened */
} emu_block;

/* The launch that runs. */
typedef struct emu_launch {
    const char *kernel;
    void (*enter)(const void *args);
    const void *args;
    size_t args_bytes;
    const fd_emu_file *file;
    const fd_launch *launch;
    fd_dim grid, threads;
    bool failed;
    emu_block *blocks; /* [num_blocks] that run together: one, or a cluster */
    int32_t num_blocks;
    fd_fiber scheduler;
    fd_emu_counters *counters;
    int64_t switches;             /* rendezvous so far: what the watchdog looks at */
    int32_t nesting;              /* 1: runs while an overlapping launch waits for it */
    struct emu_async *async;      /* NULL until a thread copies asynchronously */
    int32_t at_cluster_barrier;   /* threads */
    const struct emu_call *prior; /* the launch that fd_overlap_wait() waits for; NULL: it has ended */
    bool overlap_waited;          /* somebody has called fd_overlap_wait() */
} emu_launch;

extern emu_launch *emu_running; /* NULL between launches */
extern fd_emu_options emu_options;

static inline emu_thread *emu_self(void)
{
    return (emu_thread *)(void *)fd_emu_self;
}

/* The next number of the generator that FD_EMU_SHUFFLED draws from. */
uint64_t emu_random(void);

/* Lets others run until the caller's `wait` has been set back to WAIT_NOT. */
void emu_block_self(emu_thread *self, int32_t wait);

/* Puts a waiting thread back among the runnable ones. */
void emu_wake(emu_thread *thread);

/* The same for lanes that all wait alike: `waiting` is where their warp keeps them. */
static inline void emu_wake_lanes(emu_warp *warp, uint32_t lanes, uint32_t *waiting)
{
    *waiting &= ~lanes;
    warp->runnable |= lanes;
    for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
        warp->threads[__builtin_ctz(rest)].wait = WAIT_NOT;
    }
}

/* report.c. A report of the running thread; file may be NULL. emu_fail() ends the launch: it does not return when called
 * by a kernel's thread. */
void emu_report(int32_t fault, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void emu_report_at(int32_t fault, const emu_thread *thread, const void *pc, const char *file, int line,
                   const char *format, ...) __attribute__((format(printf, 6, 7)));
_Noreturn void emu_fail(void);

/* A report of two accesses: what the thread does at pc, after what was done at `earlier`. */
void emu_report_pair(int32_t fault, const emu_thread *thread, const void *pc, const void *earlier, const char *format,
                     ...) __attribute__((format(printf, 5, 6)));

fd_emu_counters *emu_counters_of(const char *kernel);

/* stream.c, launch.c. A launch as it was asked for. */
typedef struct emu_call {
    const char *kernel;
    void (*enter)(const void *args);
    int max_threads;
    const fd_emu_file *file;
    fd_launch launch;
    const void *args;
    size_t args_bytes;
} emu_call;

/* Runs it. prior: a launch to run once the first blocks wait for it; it has run afterwards in any case. */
fd_status emu_launch_now(const emu_call *call, const emu_call *prior);
/* Between them a launch may wait for the next one; the end runs, or forgets, the one that waits. */
void emu_stream_begin(void *given); /* the stream that run() was given; NULL: none */
void emu_stream_end(bool discard);

/* async.c, mbar.c */
void emu_async_begin_blocks(emu_launch *run); /* these: only where run->async is there */
void emu_async_end_launch(emu_launch *run);
void emu_async_end_thread(const emu_thread *self); /* it has copies that nobody waited for */
void emu_async_end_block(const emu_block *block);
bool emu_async_progress(emu_launch *run); /* nobody can run: completes a bulk copy, if there is one */
void emu_mbar_report_stuck(const emu_block *block);

/* cluster.c */
void emu_cluster_thread_left(emu_launch *run);
void emu_cluster_prepare(emu_block *block); /* from here on: clusters of more than one block only */
void emu_cluster_enter(emu_block *block);
void emu_cluster_leave(const emu_block *block);
void emu_cluster_end(emu_launch *run);
/* Is that shared memory of a block that has not started, or has left? */
bool emu_cluster_describe(const void *at, char *text, size_t n);

/* mma.c. All lanes have met. */
void emu_matrix(const emu_warp *warp, int operation);

/* memory.c */
typedef struct emu_allocation {
    unsigned char *data, *map; /* data: what the host got; map: with its guard pages */
    size_t bytes, map_bytes;
    bool open;
    struct emu_shadow *shadow; /* the observer's; NULL until a hooked kernel touches it */
} emu_allocation;

fd_status emu_alloc(void **data, size_t bytes, char *why, size_t n);
void emu_release(void *data);
void emu_open_range(const void *at, size_t bytes,
                    bool open);  /* pages of one allocation, for a copy; the rest stays closed */
void emu_open_memory(bool open); /* device memory can be touched only while a kernel runs or a copy is made */
/* The allocation whose pages hold the address, guard pages included, or NULL. */
emu_allocation *emu_allocation_at(const void *at);
/* Where is it: "12 bytes past the end of an allocation of 4096 bytes". */
void emu_describe_address(const void *at, char *text, size_t n);

/* Shared memory of the running block, and of its cluster's: the static arrays of the kernel's file, and dynamic. */
bool emu_is_shared(const void *at, size_t bytes);
bool emu_is_own_shared(const emu_block *block, const void *at, size_t bytes);
size_t emu_static_shared(unsigned char **begin); /* bytes of the running kernel's file; 0 under AddressSanitizer */
void emu_poison_statics(void);
bool emu_statics_untouched(void); /* since then */
void emu_poison_shared(emu_block *block, uint32_t dynamic_bytes);

#endif /* FD_EMU_BLOCK_H */
