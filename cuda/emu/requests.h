/* requests.h: counts what the memory system of a GPU would be asked for. The accesses of a warp's lanes at one place, for the
 * same time since all lanes met, make one request. */
#ifndef FD_EMU_REQUESTS_H
#define FD_EMU_REQUESTS_H

#include "block.h"

/* An access of at most 16 bytes, a power of two. place: emu_place_of(). false: no memory. */
bool emu_request(const emu_thread *thread, const void *at, uint32_t bytes, bool write, bool shared, uint32_t place);

/* All lanes of the warp have met, or its block has ended: what was asked for is counted. */
void emu_requests_meet(const emu_warp *warp);

/* One thread moves so many bytes by a single instruction. */
void emu_request_bulk(size_t bytes, bool write, bool shared);

#endif /* FD_EMU_REQUESTS_H */
