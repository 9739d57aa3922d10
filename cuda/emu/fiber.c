#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

#include "fiber.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef FD_FIBER_ASAN
#include <sanitizer/common_interface_defs.h>
#define LEAVE(from, to, last) __sanitizer_start_switch_fiber((last) ? NULL : &(from)->fake, (to)->stack, (to)->bytes)
#define ENTERED(self) __sanitizer_finish_switch_fiber((self)->fake, NULL, NULL)
#else
#define LEAVE(from, to, last) ((void)(last))
#define ENTERED(self) ((void)(self))
#endif

size_t fd_fiber_stack_stride(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page + page;
}

void *fd_fiber_stacks(size_t count, size_t bytes)
{
    const size_t stride = fd_fiber_stack_stride(bytes), page = (size_t)sysconf(_SC_PAGESIZE);
    if (count == 0 || stride > SIZE_MAX / count - page) {
        return NULL;
    }
    unsigned char *base = (unsigned char *)mmap(NULL, count * stride + page, PROT_READ | PROT_WRITE,
                                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == (unsigned char *)MAP_FAILED) {
        return NULL;
    }
    for (size_t i = 0; i <= count; i++) { /* below each stack, and above the last */
        mprotect(base + i * stride, page, PROT_NONE);
    }
    return base + page;
}

#ifndef FD_FIBER_UCONTEXT

#ifdef FD_FIBER_ASAN
void fd_fiber_jump(void **save, void *load);
#endif

#if defined(__x86_64__)
enum { SAVED = 6, FRAME = 8 }; /* words: registers; with the entry and the return address of entry(), 0 */
__asm__(".text\n"
        ".globl fd_fiber_jump\n"
        ".type fd_fiber_jump, @function\n"
        "fd_fiber_jump:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n"
        ".size fd_fiber_jump, .-fd_fiber_jump\n");
#else /* aarch64: x19-x28, fp, lr, d8-d15 */
enum { SAVED = 11, FRAME = 20 }; /* word 11 is lr: where the jump returns to */
__asm__(".text\n"
        ".globl fd_fiber_jump\n"
        ".type fd_fiber_jump, %function\n"
        "fd_fiber_jump:\n"
        "  sub sp, sp, #160\n"
        "  stp x19, x20, [sp, #0]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
        "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n"
        "  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
        "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
        "  ldp x19, x20, [sp, #0]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n"
        "  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n"
        "  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
        "  add sp, sp, #160\n"
        "  ret\n"
        ".size fd_fiber_jump, .-fd_fiber_jump\n");
#endif

void fd_fiber_prepare(fd_fiber *fiber, void *stack, size_t bytes, void (*entry)(void))
{
    uintptr_t *frame = (uintptr_t *)(void *)((unsigned char *)stack + bytes / 16 * 16) - FRAME;
    for (int i = 0; i < FRAME; i++) {
        frame[i] = 0; /* a frame pointer and a return address of 0 end a debugger's backtrace */
    }
    frame[SAVED] = (uintptr_t)entry;
    *fiber = (fd_fiber){.sp = frame, .stack = stack, .bytes = bytes};
}

#ifdef FD_FIBER_ASAN
void fd_fiber_switch(fd_fiber *from, fd_fiber *to, int last)
{
    LEAVE(from, to, last);
    fd_fiber_jump(&from->sp, to->sp);
    ENTERED(from);
}
#endif

#else

void fd_fiber_prepare(fd_fiber *fiber, void *stack, size_t bytes, void (*entry)(void))
{
    *fiber = (fd_fiber){.stack = stack, .bytes = bytes};
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = stack;
    fiber->context.uc_stack.ss_size = bytes;
    fiber->context.uc_link = NULL;
    makecontext(&fiber->context, entry, 0);
}

void fd_fiber_switch(fd_fiber *from, fd_fiber *to, int last)
{
    LEAVE(from, to, last);
    swapcontext(&from->context, &to->context);
    ENTERED(from);
}

#endif

void fd_fiber_entered(fd_fiber *self)
{
    ENTERED(self);
}
