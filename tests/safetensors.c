/* safetensors.c: the reader. The header is checked in full, so that a tensor, once found, can be used without care. */
#include "safetensors.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define HEADER_BYTES_MAX 100000000 /* the format's own limit */
#define INTEGER_MAX 0x1p53         /* of a JSON number that a double holds exactly */

typedef struct reader {
    const char *path;
    char *why;
    size_t n;
    FILE *stream;
    char *text;           /* the header */
    int64_t header_bytes; /* of it */
    int64_t data_bytes;   /* behind it */
} reader;

static fd_status fail(const reader *r, const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (char *c = text; *c != '\0'; c++) { /* a name from the file may hold anything; the message stays one line */
        *c = (unsigned char)*c < 32 || *c == 127 ? '?' : *c;
    }
    snprintf(r->why, r->n, "%s: %s", r->path, text);
    return FD_INVALID;
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

static bool take_integer(const cJSON *x, int64_t *value)
{
    if (!cJSON_IsNumber(x) || !(x->valuedouble >= 0.0 && x->valuedouble < INTEGER_MAX)) {
        return false;
    }
    *value = (int64_t)x->valuedouble;
    return (double)*value == x->valuedouble;
}

static fd_status read_dtype(const reader *r, const cJSON *dtype, fd_safetensor *x, int32_t *element_bytes)
{
    for (size_t d = 0; cJSON_IsString(dtype) && d < sizeof dtypes / sizeof *dtypes; d++) {
        if (strcmp(dtype->valuestring, dtypes[d].name) == 0) {
            x->dtype_name = dtypes[d].name;
            x->dtype = dtypes[d].dtype;
            *element_bytes = dtypes[d].bytes;
            return FD_OK;
        }
    }
    return fail(r, "tensor '%.100s': unknown dtype '%.20s'", x->name,
                cJSON_IsString(dtype) ? dtype->valuestring : "(no string)");
}

/* `bytes` becomes the product of the extents and element_bytes. */
static fd_status read_shape(const reader *r, const cJSON *shape, fd_safetensor *x, int32_t element_bytes,
                            int64_t *bytes)
{
    const cJSON *extent;
    bool empty = false, overflows = false;
    if (!cJSON_IsArray(shape)) {
        return fail(r, "tensor '%.100s': shape is not an array", x->name);
    }
    *bytes = element_bytes;
    cJSON_ArrayForEach(extent, shape)
    {
        int64_t value;
        if (!take_integer(extent, &value)) {
            return fail(r, "tensor '%.100s': extent %d of its shape is not an integer 0 .. 2^53", x->name, x->rank);
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

static fd_status read_tensor(const reader *r, const cJSON *entry, unsigned char *data, fd_safetensor *x)
{
    *x = (fd_safetensor){.name = entry->string};
    const cJSON *dtype = cJSON_GetObjectItemCaseSensitive(entry, "dtype");
    const cJSON *shape = cJSON_GetObjectItemCaseSensitive(entry, "shape");
    const cJSON *offsets = cJSON_GetObjectItemCaseSensitive(entry, "data_offsets");
    int32_t element_bytes = 0;
    int64_t bytes = 0, begin, end;
    if (!cJSON_IsObject(entry) || dtype == NULL || shape == NULL || offsets == NULL || cJSON_GetArraySize(entry) != 3) {
        return fail(r, "tensor '%.100s' is not an object of dtype, shape and data_offsets, each once", x->name);
    }
    fd_status status = read_dtype(r, dtype, x, &element_bytes);
    if (status == FD_OK) {
        status = read_shape(r, shape, x, element_bytes, &bytes);
    }
    if (status != FD_OK) {
        return status;
    }
    if (!cJSON_IsArray(offsets) || cJSON_GetArraySize(offsets) != 2 || !take_integer(offsets->child, &begin) ||
        !take_integer(offsets->child->next, &end)) {
        return fail(r, "tensor '%.100s': data_offsets are not two integers 0 .. 2^53", x->name);
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

static fd_status check_metadata(const reader *r, const cJSON *metadata)
{
    const cJSON *entry;
    if (!cJSON_IsObject(metadata)) {
        return fail(r, "__metadata__ is not an object");
    }
    cJSON_ArrayForEach(entry, metadata)
    {
        if (!cJSON_IsString(entry)) {
            return fail(r, "__metadata__ '%.100s' is not a string", entry->string);
        }
    }
    return FD_OK;
}

static fd_status read_tensors(const reader *r, fd_safetensors *file)
{
    const cJSON *header = (const cJSON *)file->header, *entry;
    const int members = cJSON_GetArraySize(header);
    bool metadata = false;
    file->tensors = (fd_safetensor *)calloc((size_t)members + 1, sizeof *file->tensors);
    if (file->tensors == NULL) {
        fail(r, "no memory for %d tensors", members);
        return FD_NO_MEMORY;
    }
    cJSON_ArrayForEach(entry, header)
    {
        fd_status status;
        if (strcmp(entry->string, "__metadata__") == 0) {
            status = metadata ? fail(r, "__metadata__ is there twice") : check_metadata(r, entry);
            metadata = true;
        } else {
            status = read_tensor(r, entry, file->data, &file->tensors[file->count++]);
        }
        if (status != FD_OK) {
            return status;
        }
    }
    qsort(file->tensors, (size_t)file->count, sizeof *file->tensors, by_name);
    for (int32_t x = 1; x < file->count; x++) {
        if (strcmp(file->tensors[x - 1].name, file->tensors[x].name) == 0) {
            return fail(r, "tensor '%.100s' is there twice", file->tensors[x].name);
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
    r->stream = fopen(r->path, "rb");
    if (r->stream == NULL) {
        return fail(r, "cannot be opened: %s; name the folder that holds it, as in FD_DATA=data", strerror(errno));
    }
    if (fseek(r->stream, 0, SEEK_END) == 0) {
        bytes = ftell(r->stream);
    }
    if (bytes < 0 || fseek(r->stream, 0, SEEK_SET) != 0) {
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
    const char *end;
    r->text = (char *)malloc((size_t)r->header_bytes + 1);
    if (r->text == NULL) {
        fail(r, "no memory for its header");
        return FD_NO_MEMORY;
    }
    if (fread(r->text, 1, (size_t)r->header_bytes, r->stream) != (size_t)r->header_bytes) {
        return fail(r, "its header cannot be read");
    }
    r->text[r->header_bytes] = '\0';
    if (r->text[0] != '{') {
        return fail(r, "its header does not begin with {");
    }
    cJSON *header = cJSON_ParseWithOpts(r->text, &end, 0);
    if (header == NULL) {
        return fail(r, "its header is not JSON, from byte %lld of it", (long long)(end - r->text));
    }
    file->header = header;
    end += strspn(end, " \t\r\n"); /* padding */
    if (end != r->text + r->header_bytes) {
        return fail(r, "bytes behind the JSON of its header, from byte %lld of it", (long long)(end - r->text));
    }
    return FD_OK;
}

static fd_status read_data(const reader *r, fd_safetensors *file)
{
    file->data = (unsigned char *)aligned_alloc(64, ((size_t)r->data_bytes / 64 + 1) * 64);
    if (file->data == NULL) {
        fail(r, "no memory for %lld bytes of data", (long long)r->data_bytes);
        return FD_NO_MEMORY;
    }
    if (fread(file->data, 1, (size_t)r->data_bytes, r->stream) != (size_t)r->data_bytes) {
        return fail(r, "its data cannot be read");
    }
    return FD_OK;
}

fd_status fd_safetensors_open(const char *path, fd_safetensors *file, char *why, size_t n)
{
    reader r = {.path = path, .why = why, .n = n};
    *file = (fd_safetensors){.tensors = NULL};
    fd_status status = read_sizes(&r);
    if (status == FD_OK) {
        status = read_header(&r, file);
    }
    if (status == FD_OK) {
        status = read_data(&r, file);
    }
    if (status == FD_OK) {
        status = read_tensors(&r, file);
    }
    if (status != FD_OK) {
        fd_safetensors_close(file);
    }
    if (r.stream != NULL) {
        fclose(r.stream);
    }
    free(r.text);
    return status;
}

void fd_safetensors_close(fd_safetensors *file)
{
    cJSON_Delete((cJSON *)file->header);
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
    const cJSON *metadata = cJSON_GetObjectItemCaseSensitive((const cJSON *)file->header, "__metadata__");
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(metadata, key));
}
