/* races.h: what an access does to the cells it touches, and what is wrong with it. */
#ifndef FD_EMU_RACES_H
#define FD_EMU_RACES_H

#include "order.h"

typedef struct emu_access {
    const emu_thread *thread;
    const void *at;
    size_t bytes;
    bool write, atomic;
    bool shared;    /* memory of a block: written by nobody when the block starts */
    uint32_t start; /* what happened until then is of no interest */
    const void *pc;
} emu_access;

/* Reports races, uninitialised reads and touched copies, at most one of each an access, and remembers the access. Returns
 * how many bytes of the region nobody had touched in this way before. */
size_t emu_race_check(const emu_access *access, emu_cell *cells, size_t count, size_t cell_bytes);

#endif /* FD_EMU_RACES_H */
