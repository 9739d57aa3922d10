/* memory.c: the emulated device's memory. Each allocation has pages of its own that end right behind it, with a page that
 * nobody may touch on either side, and is closed to the host except while a copy is made. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shadow.h"

#define ALIGNMENT 256u

#define KEPT_MAX 32                       /* mappings kept for the next allocation of their size, */
#define KEPT_BYTES_MAX ((size_t)64 << 20) /* with so many bytes at most: fresh pages cost a fault each */

static emu_allocation *allocations; /* [num], in no order */
static size_t num, room;
static bool is_open;

static struct kept {
    unsigned char *map;
    size_t map_bytes;
} kept[KEPT_MAX];
static size_t num_kept, kept_bytes;

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void protect(emu_allocation *a, bool open)
{
    if (a->open != open) {
        mprotect(a->map + page_bytes(), a->map_bytes - 2 * page_bytes(), open ? PROT_READ | PROT_WRITE : PROT_NONE);
        a->open = open;
    }
}

void emu_open_memory(bool open)
{
    is_open = open;
    for (size_t i = 0; i < num; i++) {
        protect(&allocations[i], open);
    }
}

void emu_open_range(const void *at, size_t bytes, bool open)
{
    const emu_allocation *a = emu_allocation_at(at);
    const size_t page = page_bytes(), first = a != NULL ? (size_t)((const unsigned char *)at - a->map) / page : 0;
    const size_t last = a != NULL ? a->map_bytes / page - 1 : 0; /* page that nobody may touch */
    const size_t end = first + (bytes + (uintptr_t)at % page + page - 1) / page;
    if (a != NULL && !is_open && first > 0 && first < last) {
        mprotect(a->map + first * page, ((end < last ? end : last) - first) * page,
                 open ? PROT_READ | PROT_WRITE : PROT_NONE);
    }
}

/* A closed mapping of that size: one that was released, or a new one. NULL: no memory. */
static unsigned char *take_map(size_t map_bytes)
{
    for (size_t i = 0; i < num_kept; i++) {
        if (kept[i].map_bytes == map_bytes) {
            unsigned char *map = kept[i].map;
            kept[i] = kept[--num_kept];
            kept_bytes -= map_bytes;
            return map;
        }
    }
    void *map = mmap(NULL, map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return map == MAP_FAILED ? NULL : (unsigned char *)map;
}

/* A kept mapping stays closed: whoever uses released memory is caught until somebody else gets it. */
static void leave_map(emu_allocation *a)
{
    if (num_kept == KEPT_MAX || kept_bytes + a->map_bytes > KEPT_BYTES_MAX) {
        munmap(a->map, a->map_bytes);
        return;
    }
    protect(a, false);
    kept[num_kept++] = (struct kept){a->map, a->map_bytes};
    kept_bytes += a->map_bytes;
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
    unsigned char *map = take_map(map_bytes);
    if (map == NULL) {
        snprintf(why, n, "no memory for %zu bytes", bytes);
        return FD_NO_MEMORY;
    }
    allocations[num] = (emu_allocation){map + page + pages - padded, map, bytes, map_bytes, false, NULL};
    protect(&allocations[num], is_open);
    *data = allocations[num++].data;
    return FD_OK;
}

void emu_release(void *data)
{
    for (size_t i = 0; i < num; i++) {
        if (allocations[i].data == (unsigned char *)data) {
            leave_map(&allocations[i]);
            emu_shadow_free(allocations[i].shadow);
            allocations[i] = allocations[--num];
            return;
        }
    }
}

emu_allocation *emu_allocation_at(const void *at)
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

/* Of shared memory, the running block's; false if it is somewhere else. */
static bool describe_shared(uintptr_t x, char *text, size_t n)
{
    const emu_launch *run = emu_running;
    const uintptr_t start = run != NULL ? (uintptr_t)run->file->shared : 0;
    if (start != 0 && x >= start && x < (uintptr_t)run->file->shared_end) {
        snprintf(text, n, "byte %" PRIuPTR " of the static shared memory", x - start);
        return true;
    }
    for (int32_t b = 0; run != NULL && b < run->num_blocks; b++) {
        const uintptr_t begin = (uintptr_t)run->blocks[b].dynamic, smem = run->launch->smem;
        if (begin == 0 || x - begin >= EMU_SHARED_MAX) {
            continue;
        }
        if (x - begin < smem) {
            snprintf(text, n, "byte %" PRIuPTR " of the dynamic shared memory", x - begin);
        } else {
            snprintf(text, n, "byte %" PRIuPTR " past the end of %" PRIuPTR " bytes of dynamic shared memory",
                     x - begin - smem + 1, smem);
        }
        return true;
    }
    return false;
}

void emu_describe_address(const void *at, char *text, size_t n)
{
    const uintptr_t x = (uintptr_t)at;
    const emu_allocation *a = emu_allocation_at(at);
    if (a == NULL && describe_shared(x, text, n)) {
        return;
    }
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
        snprintf(text, n, "byte %" PRIuPTR " past the end of a device allocation of %zu bytes", x - end + 1, a->bytes);
    } else {
        snprintf(text, n, "byte %" PRIuPTR " of a device allocation of %zu bytes", x - begin, a->bytes);
    }
}

/* ---- Shared memory ---- */

size_t emu_static_shared(unsigned char **begin)
{
    *begin = emu_running->file->shared;
    return (size_t)(emu_running->file->shared_end - emu_running->file->shared);
}

static bool within(const void *at, size_t bytes, const void *begin, size_t size)
{
    const uintptr_t x = (uintptr_t)at, start = (uintptr_t)begin;
    return x >= start && bytes <= size && x - start <= size - bytes;
}

/* Static arrays are somewhere among the program's data under AddressSanitizer: whatever is nothing else. */
static bool is_static(const void *at, size_t bytes)
{
#ifdef FD_EMU_ASAN
    for (int32_t b = 0; b < emu_running->num_blocks; b++) {
        if (within(at, 1, emu_running->blocks[b].dynamic, EMU_SHARED_STRIDE)) {
            return false;
        }
    }
    return bytes > 0 && emu_allocation_at(at) == NULL;
#else
    unsigned char *begin;
    const size_t size = emu_static_shared(&begin);
    return within(at, bytes, begin, size);
#endif
}

bool emu_is_own_shared(const emu_block *block, const void *at, size_t bytes)
{
    return within(at, bytes, block->dynamic, emu_running->launch->smem) || is_static(at, bytes);
}

bool emu_is_shared(const void *at, size_t bytes)
{
    const emu_launch *run = emu_running;
    if (run != NULL && within(at, bytes, run->file->shared, (size_t)(run->file->shared_end - run->file->shared))) {
        return true;
    }
    for (int32_t b = 0; run != NULL && b < run->num_blocks; b++) {
        if (within(at, bytes, run->blocks[b].dynamic, run->launch->smem)) {
            return true;
        }
    }
    return false;
}

void emu_poison_statics(void)
{
    unsigned char *begin;
    const size_t size = emu_static_shared(&begin);
    if (size > 0) {
        memset(begin, 0xff, size); /* NaN in every format */
    }
}

bool emu_statics_untouched(void)
{
    unsigned char *begin;
    const size_t size = emu_static_shared(&begin);
    for (size_t i = 0; i < size; i++) {
        if (begin[i] != 0xff) {
            return false;
        }
    }
    return true;
}

void emu_poison_shared(emu_block *block, uint32_t dynamic_bytes)
{
    memset(block->dynamic, 0xff, dynamic_bytes);
    emu_poison_statics();
}
