/* fiber.h: stacks of their own for the threads of a block, and the switch between them. A switch saves what the calling
 * convention says a function must preserve and nothing else: about 2 ns, where swapcontext() needs a system call. */
#ifndef FD_EMU_FIBER_H
#define FD_EMU_FIBER_H

#include <stddef.h>

#if !defined(__x86_64__) && !defined(__aarch64__) && !defined(FD_FIBER_UCONTEXT)
#define FD_FIBER_UCONTEXT 1 /* or asked for with -D */
#endif
#ifdef FD_FIBER_UCONTEXT
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#define FD_FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FD_FIBER_ASAN 1
#endif
#endif

typedef struct fd_fiber {
    void *sp;    /* while it does not run: everything else is on its stack */
    void *stack; /* lowest byte, and size; NULL for the stack the program was started on */
    size_t bytes;
    void *fake; /* AddressSanitizer's, while it does not run */
#ifdef FD_FIBER_UCONTEXT
    ucontext_t context;
#endif
} fd_fiber;

/* Stacks of `bytes` each, pages of no access between them; NULL: no memory. Released with munmap by the owner's end. */
void *fd_fiber_stacks(size_t count, size_t bytes);
size_t fd_fiber_stack_stride(size_t bytes); /* from one stack to the next, guard page included */

/* Prepares the fiber so that the first switch to it calls entry(), which must never return. */
void fd_fiber_prepare(fd_fiber *fiber, void *stack, size_t bytes, void (*entry)(void));

/* Leaves `from`, continues `to`. last: `from` is never continued. */
#if defined(FD_FIBER_UCONTEXT) || defined(FD_FIBER_ASAN)
void fd_fiber_switch(fd_fiber *from, fd_fiber *to, int last);
#else
/* Pushes the callee-saved registers, saves the stack pointer, loads the other one, pops. */
void fd_fiber_jump(void **save, void *load);

static inline void fd_fiber_switch(fd_fiber *from, fd_fiber *to, int last)
{
    (void)last;
    fd_fiber_jump(&from->sp, to->sp);
}
#endif

/* Must be called first in entry(): completes the switch that came here. */
void fd_fiber_entered(fd_fiber *self);

#endif /* FD_EMU_FIBER_H */
