/* buffer.c: see buffer.h. */
#include "buffer.h"

#include <stdlib.h>

/* Differs from byte to byte, so that no constant fill goes unseen. */
static unsigned char guard_byte(size_t i)
{
    return (unsigned char)(0x5bu + 37u * i);
}

void fd_buffer_guard(const fd_buffer *buffer)
{
    for (size_t i = 0; i < FD_GUARD_BYTES; i++) {
        buffer->base[i] = guard_byte(i);
        buffer->data[buffer->bytes + i] = guard_byte(i + 1);
    }
}

fd_status fd_buffer_alloc_past(fd_buffer *buffer, size_t bytes, size_t past)
{
    *buffer = (fd_buffer){.base = NULL};
    if (bytes > SIZE_MAX - 4 * FD_GUARD_BYTES) {
        return FD_NO_MEMORY;
    }
    const size_t padded = (bytes + past + FD_GUARD_BYTES - 1) / FD_GUARD_BYTES * FD_GUARD_BYTES + 2 * FD_GUARD_BYTES;
    unsigned char *block = (unsigned char *)aligned_alloc(FD_GUARD_BYTES, padded);
    if (block == NULL) {
        return FD_NO_MEMORY;
    }
    *buffer = (fd_buffer){.base = block + past, .data = block + past + FD_GUARD_BYTES, .bytes = bytes, .block = block};
    fd_buffer_guard(buffer);
    return FD_OK;
}

fd_status fd_buffer_alloc(fd_buffer *buffer, size_t bytes)
{
    return fd_buffer_alloc_past(buffer, bytes, 0);
}

void fd_buffer_free(fd_buffer *buffer)
{
    free(buffer->block);
    *buffer = (fd_buffer){.base = NULL};
}

bool fd_buffer_intact(const fd_buffer *buffer)
{
    for (size_t i = 0; i < FD_GUARD_BYTES && buffer->base != NULL; i++) {
        if (buffer->base[i] != guard_byte(i) || buffer->data[buffer->bytes + i] != guard_byte(i + 1)) {
            return false;
        }
    }
    return true;
}

int64_t fd_buffer_first_change(const fd_buffer *buffer)
{
    size_t i = 0, before = FD_GUARD_BYTES;
    while (i < FD_GUARD_BYTES && buffer->data[buffer->bytes + i] == guard_byte(i + 1)) {
        i++;
    }
    if (i < FD_GUARD_BYTES) {
        return (int64_t)(buffer->bytes + i);
    }
    while (before > 0 && buffer->base[before - 1] == guard_byte(before - 1)) {
        before--;
    }
    return (int64_t)before - FD_GUARD_BYTES - 1;
}
