/* memory.c: the emulated device's memory. Each allocation has pages of its own that end right behind it, with a page that
 * nobody may touch on either side, and is closed to the host except while a copy is made. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "block.h"

#define ALIGNMENT 256u

static emu_allocation *allocations; /* [num], in no order */
static size_t num, room;
static bool is_open;

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void protect(const emu_allocation *a, bool open)
{
    mprotect(a->map + page_bytes(), a->map_bytes - 2 * page_bytes(), open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void emu_open_memory(bool open)
{
    is_open = open;
    for (size_t i = 0; i < num; i++) {
        protect(&allocations[i], open);
    }
}

fd_status emu_alloc(void **data, size_t bytes, char *why, size_t n)
{
    const size_t page = page_bytes();
    *data = NULL;
    if (num == room) {
        const size_t more = room == 0 ? 16 : 2 * room;
        emu_allocation *larger = (emu_allocation *)realloc(allocations, more * sizeof *larger);
        if (larger == NULL) {
            snprintf(why, n, "no memory");
            return FD_NO_MEMORY;
        }
        allocations = larger;
        room = more;
    }
    if (bytes > SIZE_MAX / 2) {
        snprintf(why, n, "no memory for %zu bytes", bytes);
        return FD_NO_MEMORY;
    }
    const size_t padded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    const size_t pages = (padded + page - 1) / page * page, map_bytes = pages + 2 * page;
    unsigned char *map =
        (unsigned char *)mmap(NULL, map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == (unsigned char *)MAP_FAILED) {
        snprintf(why, n, "no memory for %zu bytes", bytes);
        return FD_NO_MEMORY;
    }
    allocations[num] = (emu_allocation){map + page + pages - padded, map, bytes, map_bytes};
    protect(&allocations[num], is_open);
    *data = allocations[num++].data;
    return FD_OK;
}

void emu_release(void *data)
{
    for (size_t i = 0; i < num; i++) {
        if (allocations[i].data == (unsigned char *)data) {
            munmap(allocations[i].map, allocations[i].map_bytes);
            allocations[i] = allocations[--num];
            return;
        }
    }
}

const emu_allocation *emu_allocation_at(const void *at)
{
    static size_t last; /* most accesses hit where the one before did */
    const uintptr_t x = (uintptr_t)at;
    for (size_t i = 0; i < num; i++) {
        const size_t k = (last + i) % num;
        const uintptr_t map = (uintptr_t)allocations[k].map;
        if (x >= map && x < map + allocations[k].map_bytes) {
            last = k;
            return &allocations[k];
        }
    }
    return NULL;
}

void emu_describe_address(const void *at, char *text, size_t n)
{
    const uintptr_t x = (uintptr_t)at;
    const emu_allocation *a = emu_allocation_at(at);
    if (a == NULL) {
        snprintf(text, n,
                 x < 4096 ? "a null pointer (address %#" PRIxPTR ")"
                          : "address %#" PRIxPTR ", which is no device memory",
                 x);
        return;
    }
    const uintptr_t begin = (uintptr_t)a->data, end = begin + a->bytes;
    if (x < begin) {
        snprintf(text, n, "%" PRIuPTR " bytes before a device allocation of %zu bytes", begin - x, a->bytes);
    } else if (x >= end) {
        snprintf(text, n, "%" PRIuPTR " bytes past the end of a device allocation of %zu bytes", x - end, a->bytes);
    } else {
        snprintf(text, n, "byte %" PRIuPTR " of a device allocation of %zu bytes", x - begin, a->bytes);
    }
}

/* ---- Shared memory ---- */

/* Set by the linker around the section that __shared__ arrays are in; absent if no kernel has any. */
extern unsigned char __start_fd_shared[] __attribute__((weak));
extern unsigned char __stop_fd_shared[] __attribute__((weak));

bool emu_is_shared(const void *at, size_t bytes)
{
    const uintptr_t x = (uintptr_t)at, start = (uintptr_t)__start_fd_shared, stop = (uintptr_t)__stop_fd_shared;
    if (x >= start && x + bytes <= stop) {
        return true;
    }
    for (int32_t b = 0; emu_running != NULL && b < emu_running->num_blocks; b++) {
        const uintptr_t dynamic = (uintptr_t)emu_running->blocks[b].dynamic;
        if (x >= dynamic && x + bytes <= dynamic + emu_running->launch->smem) {
            return true;
        }
    }
    return false;
}

void emu_poison_shared(emu_block *block, uint32_t dynamic_bytes)
{
    memset(block->dynamic, 0xff, dynamic_bytes); /* NaN in every format */
    if (__start_fd_shared != NULL) {
        memset(__start_fd_shared, 0xff, (size_t)(__stop_fd_shared - __start_fd_shared));
    }
}
