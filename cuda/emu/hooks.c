/* hooks.c: the functions that -fsanitize=thread and -fsanitize=bounds call, for hooked .cu files. No sanitizer is linked:
 * every load and store comes here instead, with the place it came from as the return address. */
#include "observe.h"

#define HOOK(name, bytes, write, aligned)                                                                              \
    void name(const void *at);                                                                                         \
    void name(const void *at)                                                                                          \
    {                                                                                                                  \
        emu_observe_hook(at, bytes, write, aligned, __builtin_return_address(0));                                      \
    }

#define HOOKS(bytes)                                                                                                   \
    HOOK(__tsan_read##bytes, bytes, false, true)                                                                       \
    HOOK(__tsan_write##bytes, bytes, true, true)                                                                       \
    HOOK(__tsan_unaligned_read##bytes, bytes, false, false)                                                            \
    HOOK(__tsan_unaligned_write##bytes, bytes, true, false)

HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

void __tsan_read_range(const void *at, size_t bytes);
void __tsan_read_range(const void *at, size_t bytes)
{
    emu_observe_hook(at, bytes, false, false, __builtin_return_address(0));
}

void __tsan_write_range(const void *at, size_t bytes);
void __tsan_write_range(const void *at, size_t bytes)
{
    emu_observe_hook(at, bytes, true, false, __builtin_return_address(0));
}

/* The Makefile makes memcpy and its like in a hooked object call these. */
void *__tsan_memcpy(void *to, const void *from, size_t bytes);
void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
    emu_observe_hook(from, bytes, false, false, __builtin_return_address(0));
    emu_observe_hook(to, bytes, true, false, __builtin_return_address(0));
    return memcpy(to, from, bytes);
}

void *__tsan_memmove(void *to, const void *from, size_t bytes);
void *__tsan_memmove(void *to, const void *from, size_t bytes)
{
    emu_observe_hook(from, bytes, false, false, __builtin_return_address(0));
    emu_observe_hook(to, bytes, true, false, __builtin_return_address(0));
    return memmove(to, from, bytes);
}

void *__tsan_memset(void *to, int value, size_t bytes);
void *__tsan_memset(void *to, int value, size_t bytes)
{
    emu_observe_hook(to, bytes, true, false, __builtin_return_address(0));
    return memset(to, value, bytes);
}

void __tsan_init(void);
void __tsan_init(void)
{
}

void __tsan_func_entry(const void *caller);
void __tsan_func_entry(const void *caller)
{
    (void)caller;
}

void __tsan_func_exit(void);
void __tsan_func_exit(void)
{
}

/* What -fsanitize=bounds passes: where the index is, and types that are of no interest here. */
typedef struct bounds_data {
    const char *file;
    uint32_t line, column;
} bounds_data;

/* __ubsan_handle_out_of_bounds, under a name that a real UBSan in the same program does not have. */
void fd_emu_out_of_bounds(const bounds_data *data, uintptr_t index);
void fd_emu_out_of_bounds(const bounds_data *data, uintptr_t index)
{
    if (emu_running == NULL || fd_emu_self == NULL) {
        return; /* host code of the file, which other builds check */
    }
    emu_report(FD_EMU_INDEX, data->file, (int)data->line, "index %lld is outside its array", (long long)index);
    emu_fail();
}
