#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

#include "shadow.h"

#include <stdlib.h>
#include <sys/mman.h>

extern const char __ehdr_start[]; /* set by the linker: where the program was loaded */

uint32_t emu_place_of(const void *pc)
{
    return (uint32_t)((uintptr_t)pc - (uintptr_t)__ehdr_start) & ~PLACE_ATOMIC;
}

const void *emu_pc_of(uint32_t place)
{
    return __ehdr_start + (place & ~PLACE_ATOMIC);
}

static size_t num_cells(const emu_shadow *s, int shift)
{
    return (s->bytes + ((size_t)1 << shift) - 1) >> shift;
}

static emu_cell *map_cells(size_t count, size_t *map_bytes)
{
    *map_bytes = (count + 1) * sizeof(emu_cell);
    void *map = count > SIZE_MAX / 2 / sizeof(emu_cell) ? MAP_FAILED
                                                        : mmap(NULL, *map_bytes, PROT_READ | PROT_WRITE,
                                                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return map == MAP_FAILED ? NULL : (emu_cell *)map;
}

emu_shadow *emu_shadow_new(const void *base, size_t bytes)
{
    emu_shadow *s = (emu_shadow *)malloc(sizeof *s);
    if (s == NULL) {
        return NULL;
    }
    *s = (emu_shadow){.base = (const unsigned char *)base, .bytes = bytes, .shift = 2};
    s->cells = map_cells(num_cells(s, s->shift), &s->map_bytes);
    if (s->cells == NULL) {
        free(s);
        return NULL;
    }
    return s;
}

void emu_shadow_free(emu_shadow *s)
{
    if (s != NULL) {
        munmap(s->cells, s->map_bytes);
        free(s);
    }
}

static bool split(emu_shadow *s, int shift)
{
    const size_t count = num_cells(s, shift);
    const int by = s->shift - shift;
    size_t map_bytes;
    emu_cell *cells = map_cells(count, &map_bytes);
    if (cells == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const emu_cell *from = &s->cells[i >> by];
        if (from->writer.time != 0 || from->reader[READER_LAST].time != 0 || from->in_flight != 0) {
            cells[i] = *from;
        }
    }
    munmap(s->cells, s->map_bytes);
    s->cells = cells;
    s->map_bytes = map_bytes;
    s->shift = shift;
    return true;
}

emu_cell *emu_shadow_cells(emu_shadow *s, const void *at, size_t bytes, size_t *count)
{
    const size_t first = (size_t)((const unsigned char *)at - s->base);
    const size_t parts = first | bytes; /* its lowest bit is the largest piece that first and bytes are multiples of */
    const int shift = (parts & 1u) != 0 ? 0 : (parts & 2u) != 0 ? 1 : 2;
    if (shift < s->shift && !split(s, shift)) {
        return NULL;
    }
    *count = bytes >> s->shift;
    return &s->cells[first >> s->shift];
}
