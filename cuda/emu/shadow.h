/* shadow.h: what the observer remembers of each piece of memory: who wrote it last, who read it last, and where. A cell
 * stands for 4 bytes, until something smaller is touched: then the region is split into cells of 2 or 1. */
#ifndef FD_EMU_SHADOW_H
#define FD_EMU_SHADOW_H

#include "block.h"

/* An access: the thread's number in the grid, the time (order.h), and the place in the program. */
typedef struct emu_who {
    uint32_t thread, time, place; /* place: emu_place_of() */
} emu_who;

/* Readers: the last one; the last other thread, the last thread of another warp, and of another block, than that one's.
 * All readers since the last barrier would be exact; these four are where barriers and whole warps order accesses. */
enum { READER_LAST = 0, READER_THREAD, READER_WARP, READER_BLOCK, NUM_READERS };

typedef struct emu_cell {
    emu_who writer, reader[NUM_READERS];
    uint32_t in_flight; /* an asynchronous copy has been issued and not been waited for */
} emu_cell;

typedef struct emu_shadow {
    const unsigned char *base;
    size_t bytes;
    int shift; /* a cell is 1 << shift bytes */
    emu_cell *cells;
    size_t map_bytes;
} emu_shadow;

/* Zeroed cells, which take memory only once they are touched. NULL: no memory. */
emu_shadow *emu_shadow_new(const void *base, size_t bytes);
void emu_shadow_free(emu_shadow *shadow);

/* The cells of an access within the region: the first, and how many. Splits the region if need be; NULL: no memory. */
emu_cell *emu_shadow_cells(emu_shadow *shadow, const void *at, size_t bytes, size_t *count);

/* A program counter in 31 bits, and back; the top bit marks an atomic access. */
#define PLACE_ATOMIC 0x80000000u
uint32_t emu_place_of(const void *pc);
const void *emu_pc_of(uint32_t place);

#endif /* FD_EMU_SHADOW_H */
