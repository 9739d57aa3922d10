/* fault.h: most kernels of this folder have one fault, and do the same rightly when args.right is set. A line that a
 * report may name ends in the comment FAULT. tests/test_emulator.c runs them, compiled plain and with hooks. */
#ifndef FD_FAULT_H
#define FD_FAULT_H

#include "fd_cuda.h"

#define FD_FAULT_FLOATS 300 /* of device memory, zero, not one byte more */

typedef struct fd_fault_args {
    float *x; /* [FD_FAULT_FLOATS] */
    int32_t n, right;
} fd_fault_args;

#if FD_EMU_HOOKED
#define FD_FAULT_SYMBOL(fault) fd_hooked_fault_##fault
#else
#define FD_FAULT_SYMBOL(fault) fd_fault_##fault
#endif

/* Two rungs, the wrong one first: run() launches fd_k_<fault> on the workspace with the rest as the launch. */
#define FD_FAULT(fault, ...)                                                                                           \
    static fd_status fault##_launch(const fd_context *context, int32_t right)                                          \
    {                                                                                                                  \
        const fd_fault_args args = {(float *)context->workspace, FD_FAULT_FLOATS, right};                              \
        const fd_launch launch = {__VA_ARGS__};                                                                        \
        return FD_LAUNCH(fd_k_##fault, launch, args);                                                                  \
    }                                                                                                                  \
    FD_FAULT_RUNGS(fault)

/* The same for a file that has its own <fault>_launch(). */
#define FD_FAULT_RUNGS(fault)                                                                                          \
    static fd_status fault##_wrong(const fd_problem *problem, const fd_context *context)                               \
    {                                                                                                                  \
        (void)problem;                                                                                                 \
        return fault##_launch(context, 0);                                                                             \
    }                                                                                                                  \
    static fd_status fault##_right(const fd_problem *problem, const fd_context *context)                               \
    {                                                                                                                  \
        (void)problem;                                                                                                 \
        return fault##_launch(context, 1);                                                                             \
    }                                                                                                                  \
    extern const fd_rung FD_FAULT_SYMBOL(fault)[2];                                                                    \
    const fd_rung FD_FAULT_SYMBOL(fault)[2] = {                                                                        \
        {.size = sizeof(fd_rung), .abi = FD_ABI, .name = #fault, .run = fault##_wrong},                                \
        {.size = sizeof(fd_rung), .abi = FD_ABI, .name = #fault, .run = fault##_right},                                \
    };

#endif /* FD_FAULT_H */
