/* buffer.h: memory with guard bytes around it. */
#ifndef FD_BUFFER_H
#define FD_BUFFER_H

#include <stdbool.h>

#include "fd.h"

#define FD_GUARD_BYTES 256 /* before and after every buffer that a rung may write */

/* A guarded allocation. data is 256-byte aligned, or that many bytes past a multiple of 256: what relies on more
 * than the contract promises is found out. Calls with bytes == 0 are legal. */
typedef struct fd_buffer {
    unsigned char *base, *data;
    size_t bytes;
    void *block; /* what free() takes */
} fd_buffer;

fd_status fd_buffer_alloc(fd_buffer *buffer, size_t bytes);
fd_status fd_buffer_alloc_past(fd_buffer *buffer, size_t bytes, size_t past); /* past < 256 */

/* As far as data of a tensor lies past a multiple of 256: FD_TENSOR_ALIGNMENT for q, k, v and o, which is none of
 * 32; four bytes for the others, whose elements have as many. */
#define FD_PAST_TENSOR ((size_t)FD_TENSOR_ALIGNMENT)
#define FD_PAST_ELEMENTS ((size_t)4)
void fd_buffer_free(fd_buffer *buffer);
void fd_buffer_guard(const fd_buffer *buffer);  /* writes the guards again */
bool fd_buffer_intact(const fd_buffer *buffer); /* guards hold what alloc wrote there */

/* Of one that is not intact: the byte nearest to its data that changed; below 0 it lies before them. */
int64_t fd_buffer_first_change(const fd_buffer *buffer);

#endif /* FD_BUFFER_H */
