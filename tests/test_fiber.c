/* test_fiber.c: both ways to switch stacks: the emulator's own for this processor, and ucontext for any other. */
#define _DEFAULT_SOURCE 1

#include <criterion/criterion.h>

#include <stdint.h>
#include <string.h>

#include "emu/fiber.h"

/* The other build of fiber.c, with names of its own. */
#define fd_fiber_stack_stride ucontext_stack_stride
#define fd_fiber_stacks ucontext_stacks
#define fd_fiber_prepare ucontext_prepare
#define fd_fiber_switch ucontext_switch
#define fd_fiber_entered ucontext_entered
#define fd_fiber ucontext_fiber
#define FD_FIBER_UCONTEXT 1
#undef FD_EMU_FIBER_H
#undef _DEFAULT_SOURCE
#include "../cuda/emu/fiber.c"
#undef fd_fiber_stack_stride
#undef fd_fiber_stacks
#undef fd_fiber_prepare
#undef fd_fiber_switch
#undef fd_fiber_entered
#undef fd_fiber

#define NUM 3
#define ROUNDS 1000
#define STACK ((size_t)64 << 10)

/* NUM fibers add to a sum in turn; what each keeps on its stack and in registers must survive the others. */
#define DEFINE(kind, type, prefix)                                                                                     \
    static type kind##_main, kind##_fibers[NUM];                                                                       \
    static int kind##_turn, kind##_done;                                                                               \
    static double kind##_sums[NUM];                                                                                    \
    static void kind##_entry(void)                                                                                     \
    {                                                                                                                  \
        const int me = kind##_turn;                                                                                    \
        volatile unsigned char frame[4096];                                                                            \
        double sum = 0.0;                                                                                              \
        prefix##_entered(&kind##_fibers[me]);                                                                          \
        memset((void *)(uintptr_t)frame, me + 1, sizeof frame);                                                        \
        for (int round = 0; round < ROUNDS; round++) {                                                                 \
            sum += (double)(me + 1) * round;                                                                           \
            kind##_turn = (me + 1) % NUM;                                                                              \
            prefix##_switch(&kind##_fibers[me], &kind##_fibers[(me + 1) % NUM], 0);                                    \
        }                                                                                                              \
        for (size_t i = 0; i < sizeof frame; i++) {                                                                    \
            sum += frame[i] == me + 1 ? 0.0 : 1e9;                                                                     \
        }                                                                                                              \
        kind##_sums[me] = sum;                                                                                         \
        kind##_turn = (me + 1) % NUM;                                                                                  \
        prefix##_switch(&kind##_fibers[me], ++kind##_done < NUM ? &kind##_fibers[kind##_turn] : &kind##_main, 1);      \
    }                                                                                                                  \
    Test(fiber, kind##_keeps_stacks_and_registers)                                                                     \
    {                                                                                                                  \
        unsigned char *stacks = (unsigned char *)prefix##_stacks(NUM, STACK);                                          \
        cr_assert_not_null(stacks);                                                                                    \
        for (int i = 0; i < NUM; i++) {                                                                                \
            prefix##_prepare(&kind##_fibers[i], stacks + (size_t)i * prefix##_stack_stride(STACK), STACK,              \
                             kind##_entry);                                                                            \
        }                                                                                                              \
        prefix##_switch(&kind##_main, &kind##_fibers[0], 0);                                                           \
        for (int i = 0; i < NUM; i++) {                                                                                \
            cr_assert_eq(kind##_sums[i], (i + 1) * (ROUNDS * (ROUNDS - 1) / 2.0), "fiber %d: %g", i, kind##_sums[i]);  \
        }                                                                                                              \
    }

DEFINE(own, fd_fiber, fd_fiber)
DEFINE(ucontext, ucontext_fiber, ucontext)
