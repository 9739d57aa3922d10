/* safetensors.c: the reader. The header is checked in full, so that a tensor, once found, can be used without care. */
#include "safetensors.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "machine.h"

#define HEADER_BYTES_MAX 100000000 /* the format's own limit */

typedef struct reader {
    const char *path;
    char *why;
    size_t n;
    FILE *stream;
    char *text;           /* the header */
    int64_t header_bytes; /* of it */
    int64_t data_bytes;   /* behind it */
} reader;

static fd_status refuse(const char *path, char *why, size_t n, const char *format, va_list arguments)
{
    char text[400];
    vsnprintf(text, sizeof text, format, arguments);
    for (char *c = text; *c != '\0'; c++) { /* a name from the file may hold anything; the message stays one line */
        *c = (unsigned char)*c < 32 || *c == 127 ? '?' : *c;
    }
    snprintf(why, n, "%.*s: %s", (int)(n / 2), path, text); /* of a long path the beginning: the cure is at the end */
    return FD_INVALID;
}

fd_status fd_safetensors_refuse(const char *path, char *why, size_t n, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const fd_status status = refuse(path, why, n, format, arguments);
    va_end(arguments);
    return status;
}

__attribute__((format(printf, 2, 3))) static fd_status fail(const reader *r, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const fd_status status = refuse(r->path, r->why, r->n, format, arguments);
    va_end(arguments);
    return status;
}

/* ---- One tensor ---- */

static const struct {
    const char *name;
    int32_t dtype, bytes;
} dtypes[] = {{"F32", FD_F32, 4},
              {"F16", FD_F16, 2},
              {"BF16", FD_BF16, 2},
              {"F8_E4M3", FD_F8E4M3, 1},
              {"F8_E5M2", FD_F8E5M2, 1},
              {"I8", FD_I8, 1},
              {"I32", FD_I32, 4},
              {"F64", -1, 8},
              {"I64", -1, 8},
              {"U64", -1, 8},
              {"U32", -1, 4},
              {"I16", -1, 2},
              {"U16", -1, 2},
              {"U8", -1, 1},
              {"BOOL", -1, 1}};

int32_t fd_safetensors_element_bytes(const char *dtype_name)
{
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        if (strcmp(dtype_name, dtypes[d].name) == 0) {
            return dtypes[d].bytes;
        }
    }
    return 0;
}

/* The library keeps integers of JSON as 64 bits, exactly, and refuses larger ones; 1.0 and 1e3 are no integers. */
static bool take_integer(const json_t *x, int64_t *value)
{
    if (!json_is_integer(x) || json_integer_value(x) < 0) {
        return false;
    }
    *value = json_integer_value(x);
    return true;
}

static fd_status read_dtype(const reader *r, const json_t *dtype, fd_safetensor *x, int32_t *element_bytes)
{
    const char *name = json_string_value(dtype); /* NULL: no string */
    for (size_t d = 0; name != NULL && d < sizeof dtypes / sizeof *dtypes; d++) {
        if (strcmp(name, dtypes[d].name) == 0) {
            x->dtype_name = dtypes[d].name;
            x->dtype = dtypes[d].dtype;
            *element_bytes = dtypes[d].bytes;
            return FD_OK;
        }
    }
    return fail(r, "tensor '%.100s': unknown dtype '%.20s'", x->name, name != NULL ? name : "(no string)");
}

/* `bytes` becomes the product of the extents and element_bytes. */
static fd_status read_shape(const reader *r, const json_t *shape, fd_safetensor *x, int32_t element_bytes,
                            int64_t *bytes)
{
    bool empty = false, overflows = false;
    if (!json_is_array(shape)) {
        return fail(r, "tensor '%.100s': shape is not an array", x->name);
    }
    *bytes = element_bytes;
    for (size_t at = 0; at < json_array_size(shape); at++) {
        int64_t value;
        if (!take_integer(json_array_get(shape, at), &value)) {
            return fail(r, "tensor '%.100s': extent %d of its shape is not an integer 0 .. 2^63 - 1", x->name, x->rank);
        }
        if (x->rank == FD_SAFETENSORS_RANK_MAX) {
            return fail(r, "tensor '%.100s': more than %d dimensions", x->name, FD_SAFETENSORS_RANK_MAX);
        }
        x->shape[x->rank++] = value;
        empty = empty || value == 0;
        overflows = overflows || (value > 0 && *bytes > INT64_MAX / value);
        *bytes = overflows ? 0 : *bytes * (value > 0 ? value : 1);
    }
    if (overflows && !empty) {
        return fail(r, "tensor '%.100s': its shape has more bytes than 2^63", x->name);
    }
    *bytes = empty ? 0 : *bytes;
    return FD_OK;
}

static fd_status read_tensor(const reader *r, const char *name, const json_t *entry, unsigned char *data,
                             fd_safetensor *x)
{
    *x = (fd_safetensor){.name = name};
    const json_t *dtype = json_object_get(entry, "dtype");
    const json_t *shape = json_object_get(entry, "shape");
    const json_t *offsets = json_object_get(entry, "data_offsets");
    int32_t element_bytes = 0;
    int64_t bytes = 0, begin, end;
    if (!json_is_object(entry) || dtype == NULL || shape == NULL || offsets == NULL || json_object_size(entry) != 3) {
        return fail(r, "tensor '%.100s' is not an object of dtype, shape and data_offsets", x->name);
    }
    fd_status status = read_dtype(r, dtype, x, &element_bytes);
    if (status == FD_OK) {
        status = read_shape(r, shape, x, element_bytes, &bytes);
    }
    if (status != FD_OK) {
        return status;
    }
    if (json_array_size(offsets) != 2 || !take_integer(json_array_get(offsets, 0), &begin) ||
        !take_integer(json_array_get(offsets, 1), &end)) {
        return fail(r, "tensor '%.100s': data_offsets are not two integers 0 .. 2^63 - 1", x->name);
    }
    if (begin > end) {
        return fail(r, "tensor '%.100s': data_offsets [%lld, %lld] run backwards", x->name, (long long)begin,
                    (long long)end);
    }
    if (end > r->data_bytes) {
        return fail(r, "tensor '%.100s' ends at byte %lld, but the file has %lld bytes of data: is it cut off?",
                    x->name, (long long)end, (long long)r->data_bytes);
    }
    if (end - begin != bytes) {
        return fail(r, "tensor '%.100s': dtype and shape make %lld bytes, data_offsets %lld", x->name, (long long)bytes,
                    (long long)(end - begin));
    }
    if (begin % element_bytes != 0) {
        return fail(r, "tensor '%.100s' begins at byte %lld, no multiple of its %d-byte elements; write it aligned",
                    x->name, (long long)begin, element_bytes);
    }
    x->data = data + begin;
    x->bytes = bytes;
    return FD_OK;
}

/* ---- All tensors ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const fd_safetensor *)a)->name, ((const fd_safetensor *)b)->name);
}

static int by_place(const void *a, const void *b)
{
    const fd_safetensor *x = (const fd_safetensor *)a, *y = (const fd_safetensor *)b;
    const unsigned char *p = (const unsigned char *)x->data, *q = (const unsigned char *)y->data;
    return p != q ? (p > q) - (p < q) : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Every byte of the data belongs to one tensor. */
static fd_status check_cover(const reader *r, const fd_safetensors *file)
{
    int64_t covered = 0;
    qsort(file->tensors, (size_t)file->count, sizeof *file->tensors, by_place);
    for (int32_t x = 0; x < file->count; x++) {
        const fd_safetensor *t = &file->tensors[x];
        const int64_t begin = (const unsigned char *)t->data - file->data;
        if (begin < covered) {
            return fail(r, "tensors '%.100s' and '%.100s' overlap", file->tensors[x - 1].name, t->name);
        }
        if (begin > covered) {
            return fail(r, "a hole of %lld bytes before tensor '%.100s'", (long long)(begin - covered), t->name);
        }
        covered += t->bytes;
    }
    if (covered != r->data_bytes) {
        return fail(r, "%lld bytes behind the last tensor belong to none", (long long)(r->data_bytes - covered));
    }
    return FD_OK;
}

static fd_status check_metadata(const reader *r, json_t *metadata)
{
    const char *key;
    json_t *value;
    if (!json_is_object(metadata)) {
        return fail(r, "__metadata__ is not an object");
    }
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value)) {
            return fail(r, "__metadata__ '%.100s' is not a string", key);
        }
    }
    return FD_OK;
}

static fd_status read_tensors(const reader *r, fd_safetensors *file)
{
    json_t *header = (json_t *)file->header, *entry;
    const char *name;
    const size_t members = json_object_size(header);
    file->tensors = (fd_safetensor *)calloc(members + 1, sizeof *file->tensors);
    if (file->tensors == NULL) {
        fail(r, "no memory for %zu tensors", members);
        return FD_NO_MEMORY;
    }
    json_object_foreach(header, name, entry)
    {
        const fd_status status = strcmp(name, "__metadata__") == 0
                                     ? check_metadata(r, entry)
                                     : read_tensor(r, name, entry, file->data, &file->tensors[file->count++]);
        if (status != FD_OK) {
            return status;
        }
    }
    const fd_status status = check_cover(r, file);
    qsort(file->tensors, (size_t)file->count, sizeof *file->tensors, by_name);
    return status;
}

/* ---- The file ---- */

static fd_status read_sizes(reader *r)
{
    unsigned char head[8];
    uint64_t length = 0;
    long bytes = -1;
    if (fseek(r->stream, 0, SEEK_END) == 0) {
        bytes = ftell(r->stream);
    }
    /* A folder opens as a file does, and says that its end is at LONG_MAX. */
    if (bytes < 0 || bytes == LONG_MAX || fseek(r->stream, 0, SEEK_SET) != 0) {
        return fail(r, "cannot be read: no regular file");
    }
    if (bytes < 8 || fread(head, 1, sizeof head, r->stream) != sizeof head) {
        return fail(r, "%ld bytes are no safetensors file, which begins with 8 bytes of header length", bytes);
    }
    for (int x = 7; x >= 0; x--) {
        length = length << 8 | head[x];
    }
    if (length > HEADER_BYTES_MAX) {
        return fail(r, "header length %llu is above %d: no safetensors file", (unsigned long long)length,
                    HEADER_BYTES_MAX);
    }
    if (length > (uint64_t)bytes - 8) {
        return fail(r, "header length %llu, but only %ld bytes follow it: is the file cut off?",
                    (unsigned long long)length, bytes - 8);
    }
    r->header_bytes = (int64_t)length;
    r->data_bytes = (int64_t)bytes - 8 - r->header_bytes;
    return FD_OK;
}

static fd_status read_header(reader *r, fd_safetensors *file)
{
    json_error_t error;
    r->text = (char *)malloc((size_t)r->header_bytes + 1);
    if (r->text == NULL) {
        fail(r, "no memory for its header");
        return FD_NO_MEMORY;
    }
    if (fread(r->text, 1, (size_t)r->header_bytes, r->stream) != (size_t)r->header_bytes) {
        return fail(r, "its header cannot be read");
    }
    if (r->header_bytes == 0 || r->text[0] != '{') {
        return fail(r, "its header does not begin with {");
    }
    file->header = json_loadb(r->text, (size_t)r->header_bytes, JSON_REJECT_DUPLICATES, &error);
    if (file->header == NULL) {
        return fail(r, "its header %s, near byte %d of it: %s",
                    json_error_code(&error) == json_error_duplicate_key ? "has a name twice" : "is not JSON",
                    error.position, error.text);
    }
    return FD_OK;
}

/* Room for the data; no page of it is there before the header was checked. */
static fd_status reserve_data(const reader *r, fd_safetensors *file)
{
    if (r->data_bytes < fd_memory_available()) {
        file->data = (unsigned char *)aligned_alloc(64, ((size_t)r->data_bytes / 64 + 1) * 64);
    }
    if (file->data == NULL) {
        fail(r, "no memory for %lld bytes of data", (long long)r->data_bytes);
        return FD_NO_MEMORY;
    }
    return FD_OK;
}

static fd_status read_data(const reader *r, fd_safetensors *file)
{
    return fread(file->data, 1, (size_t)r->data_bytes, r->stream) == (size_t)r->data_bytes
               ? FD_OK
               : fail(r, "its data cannot be read");
}

fd_status fd_safetensors_open(const char *path, fd_safetensors *file, char *why, size_t n)
{
    *file = (fd_safetensors){.tensors = NULL};
    struct stat is;
    if (stat(path, &is) == 0 && !S_ISREG(is.st_mode)) { /* opening a pipe waits for who writes into it */
        return fd_safetensors_refuse(path, why, n, "cannot be read: no regular file");
    }
    FILE *stream = fopen(path, "rb");
    if (stream == NULL) {
        return fd_safetensors_refuse(path, why, n, "cannot be opened: %s; check the path", strerror(errno));
    }
    const fd_status status = fd_safetensors_read(stream, path, file, why, n);
    fclose(stream);
    return status;
}

fd_status fd_safetensors_read(FILE *stream, const char *name, fd_safetensors *file, char *why, size_t n)
{
    reader r = {.path = name, .why = why, .n = n, .stream = stream};
    *file = (fd_safetensors){.tensors = NULL};
    fd_status status = read_sizes(&r);
    if (status == FD_OK) {
        status = read_header(&r, file);
    }
    if (status == FD_OK) {
        status = reserve_data(&r, file);
    }
    if (status == FD_OK) {
        status = read_tensors(&r, file);
    }
    if (status == FD_OK) {
        status = read_data(&r, file);
    }
    if (status != FD_OK) {
        fd_safetensors_close(file);
    }
    free(r.text);
    return status;
}

void fd_safetensors_close(fd_safetensors *file)
{
    json_decref((json_t *)file->header);
    free(file->tensors);
    free(file->data);
    *file = (fd_safetensors){.tensors = NULL};
}

const fd_safetensor *fd_safetensors_find(const fd_safetensors *file, const char *name)
{
    const fd_safetensor key = {.name = name};
    return file->count == 0 ? NULL
                            : (const fd_safetensor *)bsearch(&key, file->tensors, (size_t)file->count,
                                                             sizeof *file->tensors, by_name);
}

const char *fd_safetensors_metadata(const fd_safetensors *file, const char *key)
{
    return json_string_value(json_object_get(json_object_get((const json_t *)file->header, "__metadata__"), key));
}

const char *fd_safetensors_unknown_key(const fd_safetensors *file, const char *const *known, int count)
{
    const char *key;
    json_t *value, *metadata = json_object_get((const json_t *)file->header, "__metadata__");
    json_object_foreach(metadata, key, value)
    {
        bool found = strchr(key, '.') != NULL;
        for (int k = 0; k < count; k++) {
            found = found || strcmp(key, known[k]) == 0;
        }
        if (!found) {
            return key;
        }
    }
    return NULL;
}
