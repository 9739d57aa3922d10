/* safetensors.h: reads a .safetensors file: 8 bytes of header length, a JSON header, then the elements of all
 * tensors, row-major and little-endian. Nothing in the file is believed before it is checked. */
#ifndef FD_SAFETENSORS_H
#define FD_SAFETENSORS_H

#include "fd.h"

#define FD_SAFETENSORS_RANK_MAX 8

typedef struct fd_safetensor {
    const char *name;
    const char *dtype_name;                 /* as in the file: "F32", "BF16", "I64", ... */
    int32_t dtype;                          /* fd_dtype; -1: one that the format knows and fd.h does not */
    int32_t rank;                           /* 0: a scalar, one element */
    int64_t shape[FD_SAFETENSORS_RANK_MAX]; /* [rank], outermost first */
    const void *data;                       /* aligned to its element; never NULL, also when bytes == 0 */
    int64_t bytes;
} fd_safetensor;

typedef struct fd_safetensors {
    fd_safetensor *tensors; /* sorted by name */
    int32_t count;
    void *header; /* the parsed JSON, which owns all names */
    unsigned char *data;
} fd_safetensors;

/* Reads the whole file. FD_OK, FD_INVALID or FD_NO_MEMORY, with one line in why that names the file and what is wrong
 * with it. After a failure nothing needs closing. */
fd_status fd_safetensors_open(const char *path, fd_safetensors *file, char *why, size_t n);
void fd_safetensors_close(fd_safetensors *file);

/* NULL if there is none of that name. */
const fd_safetensor *fd_safetensors_find(const fd_safetensors *file, const char *name);
const char *fd_safetensors_metadata(const fd_safetensors *file, const char *key);

#endif /* FD_SAFETENSORS_H */
