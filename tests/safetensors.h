/* safetensors.h: reads and writes .safetensors files: 8 bytes of header length, a JSON header, then the elements of all
 * tensors, row-major and little-endian. Nothing in a file is believed before it is checked. */
#ifndef FD_SAFETENSORS_H
#define FD_SAFETENSORS_H

#include <stdio.h>

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

/* The same from a stream that can be rewound, and stays open; name is what messages call it. */
fd_status fd_safetensors_read(FILE *stream, const char *name, fd_safetensors *file, char *why, size_t n);
void fd_safetensors_close(fd_safetensors *file);

/* NULL if there is none of that name. */
const fd_safetensor *fd_safetensors_find(const fd_safetensors *file, const char *name);
const char *fd_safetensors_metadata(const fd_safetensors *file, const char *key);

/* The first key of the metadata that is none of the known ones and has no dot in it; NULL: there is none. */
const char *fd_safetensors_unknown_key(const fd_safetensors *file, const char *const *known, int count);

/* FD_INVALID, with "path: message" in why, on one line whatever the file's own words hold. */
__attribute__((format(printf, 4, 5))) fd_status fd_safetensors_refuse(const char *path, char *why, size_t n,
                                                                      const char *format, ...);

typedef struct fd_metadata {
    const char *key, *value;
} fd_metadata;

/* Writes tensors (name, dtype_name, rank, shape, data; the rest is not read) and metadata, whole or not at all: beside
 * its place, then renamed. FD_OK, FD_INVALID or FD_NO_MEMORY, with one line in why. safetensors_write.c. */
fd_status fd_safetensors_write(const char *path, const fd_safetensor *tensors, int32_t count,
                               const fd_metadata *metadata, int32_t num_metadata, char *why, size_t n);

/* Bytes of an element of that dtype_name; 0: no such type. */
int32_t fd_safetensors_element_bytes(const char *dtype_name);

#endif /* FD_SAFETENSORS_H */
