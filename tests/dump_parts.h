/* dump_parts.h: what the files share that make a problem of a dump: dump_read.c (tensors and the whole), dump_lengths.c,
 * dump_scalars.c. Everyone else includes dump.h. */
#ifndef FD_DUMP_PARTS_H
#define FD_DUMP_PARTS_H

#include "dump.h"

enum { FD_HEADS_LAST = 0, FD_HEADS_FIRST }; /* of two dimensions, rows or slots and heads */

typedef struct fd_dump_reader {
    const fd_safetensors *file;
    const fd_safetensor *x[FD_DUMP_TENSORS];
    fd_dump *dump;
    char *why;
    size_t n;
    int order, order_kv;
} fd_dump_reader;

/* Extents of a tensor of rows: blocks (sequences or pages), rows or slots in each, heads, elements. */
typedef struct fd_dump_extents {
    int64_t blocks, rows, heads, dim;
} fd_dump_extents;

#define FD_DUMP_REFUSE(r, ...) fd_safetensors_refuse((r)->dump->path, (r)->why, (r)->n, __VA_ARGS__)

/* Batch, q_len and where query rows begin. */
fd_status fd_dump_read_q_lens(const fd_dump_reader *r, const fd_dump_extents *q);

/* Page table or starts, and kv_lens; after the query rows. */
fd_status fd_dump_read_keys(const fd_dump_reader *r, const fd_dump_extents *k);

/* Layout, mask and split_size from the metadata. */
fd_status fd_dump_read_metadata(fd_dump_reader *r);
fd_status fd_dump_read_scale(const fd_dump_reader *r);
fd_status fd_dump_read_window(const fd_dump_reader *r);

#endif /* FD_DUMP_PARTS_H */
