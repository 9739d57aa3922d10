/* emulator.h: the host's side of the emulator: how it schedules, what went wrong, what was counted.
 *
 * Every CUDA thread of a block is a fiber. A block runs to its end before the next one starts (the blocks of a cluster
 * together), so `__shared__` arrays are plain static ones. Limits, stated once: memory is sequentially consistent, so a
 * missing __threadfence() is not found here; bits may differ from a GPU's, whose expf and fused multiply-adds are its
 * own; and no time is ever reported.
 *
 * Of what is asynchronous: fd_fence_async() is asked for between a barrier's init and its first copy, not between ordinary
 * writes to a buffer and a copy into it. A wait for a phase that is over passes, on a GPU too; a wrong parity shows in the
 * poison that is read, in a copy or a phase that nobody waits for, or in a wait that never ends. A block that touches
 * another one's shared memory too early or too late is caught if it does so in the schedule that runs. Barriers belong to
 * their own block. Overlapping launches overlap in plain builds only (stream.c), and not under AddressSanitizer. */
#ifndef FD_EMU_EMULATOR_H
#define FD_EMU_EMULATOR_H

#include <stdbool.h>

#include "../device.h"
#include "../fd_cuda.h"

/* In which order blocks, warps and lanes run between two rendezvous. */
enum fd_emu_schedule { FD_EMU_SEQUENTIAL = 0, FD_EMU_REVERSED, FD_EMU_SHUFFLED, FD_EMU_NUM_SCHEDULES };

/* When an asynchronous copy happens: as late as the program allows, or at once. */
enum fd_emu_async { FD_EMU_LATEST = 0, FD_EMU_EARLIEST };

/* How a tensor core adds the 16 products of one output element to its accumulator. */
enum fd_emu_mma { FD_EMU_MMA_SEQUENTIAL = 0, FD_EMU_MMA_EXACT, FD_EMU_MMA_TRUNCATED, FD_EMU_NUM_MMA };

typedef struct fd_emu_options {
    int32_t schedule, async, mma;
    uint64_t seed;       /* of FD_EMU_SHUFFLED and of exp2_ulps */
    int32_t exp2_ulps;   /* fd_exp2_approx is off by up to so many ulps, at random */
    int32_t num_units;   /* multiprocessors that plans are made for */
    double spin_seconds; /* a thread that runs so long without a rendezvous is reported */
} fd_emu_options;

/* From the next launch on. NULL: the defaults: sequential, latest, sequential, 16 multiprocessors, 10 s. */
void fd_emu_configure(const fd_emu_options *options);
const fd_emu_options *fd_emu_current(void);

enum fd_emu_fault {
    FD_EMU_LAUNCH = 1, /* a grid, block or shared memory size that no GPU takes */
    FD_EMU_BARRIER,    /* threads of a block at different barriers, or some have left */
    FD_EMU_WARP,       /* lanes of a mask at different warp operations, or some have left; a mask without the caller */
    FD_EMU_DEADLOCK,   /* everybody waits */
    FD_EMU_SPIN,       /* a loop without fd_spin() that does not end */
    FD_EMU_ACCESS,     /* memory that is nobody's, or not the device's */
    FD_EMU_ALIGNMENT,  /* a 16-byte access off its boundary */
    FD_EMU_INDEX,      /* past the end of an array whose size the compiler knows */
    FD_EMU_UNINITIALISED, /* shared memory read before anybody wrote it */
    FD_EMU_RACE,          /* two threads, one of them writing, no barrier between */
    FD_EMU_ASYNC,         /* an asynchronous copy, a transaction barrier or an overlapping launch used wrongly */
    FD_EMU_CLUSTER,       /* shared memory of another block before that started, or after it left; a wrong rank */
    FD_EMU_HOST           /* host code touched device memory */
};

/* One kind of fault at one line: the first to do it, and how often it happened. */
typedef struct fd_emu_report {
    int32_t fault;
    char kernel[48];
    fd_dim block, thread;
    const char *file; /* where the kernel was; NULL: unknown, then pc may help */
    int32_t line;
    const void *pc;
    const void *earlier; /* of a race: where the other access was */
    char text[200];      /* one sentence */
    int64_t count;
} fd_emu_report;

const char *fd_emu_fault_name(int32_t fault);

/* The reports since the last fd_emu_clear(), at most FD_EMU_MAX_REPORTS. */
#define FD_EMU_MAX_REPORTS 16
int fd_emu_reports(const fd_emu_report **reports);
void fd_emu_clear(void);

/* "file.cu:12"; "" if nobody knows. */
void fd_emu_locate(const fd_emu_report *report, char *place, size_t n);

/* One line: "race: kernel fd_k_x, block (0,0,0), thread 33, file.cu:12: ...". */
void fd_emu_describe(const fd_emu_report *report, char *line, size_t n);

/* What was counted of one kernel since the last fd_emu_clear(). The first block of numbers is always counted; the second
 * only for kernels compiled with hooks (observe.h). A request is one instruction of one warp: the accesses of its lanes at
 * one place, for the same time since all lanes met at a barrier or a warp operation.
 *
 * Nsight Compute counts the same on a GPU, as (ld for loads, st for stores)
 *   requests     l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum; shared: smsp__inst_executed_op_shared_ld.sum
 *   sectors      l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum
 *   wavefronts   l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum
 *   conflicts    l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum: here wavefronts less ideal ones
 * where arbitration makes its wavefronts and conflicts somewhat larger, its compiler may merge or repeat accesses, and the
 * shared requests include instructions that a warp passes with every lane predicated off. tutorials/emulator.md has both
 * side by side. */
typedef struct fd_emu_counters {
    char kernel[48];
    int64_t launches, blocks, threads;
    int64_t barriers;   /* __syncthreads(), once a block */
    int64_t warp_syncs; /* __syncwarp(), once a warp */
    int64_t shuffles;   /* shuffles and votes, once a warp */
    int64_t fences, atomics;

    int64_t global_loads, global_stores;                 /* requests */
    int64_t global_load_sectors, global_store_sectors;   /* of 32 bytes, distinct within a request */
    int64_t global_load_bytes, global_store_bytes;       /* asked for by the lanes */
    int64_t global_load_distinct, global_store_distinct; /* bytes, each counted once a launch */
    int64_t shared_loads, shared_stores;                 /* requests */
    int64_t shared_load_wavefronts,
        shared_store_wavefronts;                   /* passes over the 32 banks, 4 bytes wide; 8-byte accesses in */
                                                   /* half-warps, 16-byte ones in quarter-warps; loads of one */
                                                   /* address in a warp, in half-warps */
    int64_t shared_load_ideal, shared_store_ideal; /* passes that the bytes alone would need */
    int64_t uncounted; /* accesses left out of all this: a million requests between two meetings are the most */
} fd_emu_counters;

#define FD_EMU_MAX_KERNELS 16
int fd_emu_counts(const fd_emu_counters **counters); /* in order of first launch */

/* The CUDA rung of that number, compiled with hooks; NULL: there is none. */
const fd_rung *fd_hooked_find(int32_t number);

#endif /* FD_EMU_EMULATOR_H */
