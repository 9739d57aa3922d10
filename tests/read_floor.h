/* read_floor.h: how long memory takes. The floor of a kernel is one read of the K and V bytes that it must read. */
#ifndef FD_READ_FLOOR_H
#define FD_READ_FLOOR_H

#include "fd.h"

/* Adds all 64-bit words (and then bytes) of a buffer, as fast as `threads` threads can load them. The sum is returned
 * so that no compiler drops the loads. Any alignment; without OpenMP one thread. */
uint64_t fd_read_sum(const void *data, size_t bytes, int32_t threads);

#endif /* FD_READ_FLOOR_H */
