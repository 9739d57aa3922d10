/* safetensors_write.c: the writer. Tensors go into the file by the size of their elements, largest first, so that each
 * begins at a multiple of its own; the header is padded to 8 bytes. */
#include <jansson.h>
#include <stdlib.h>

#include "csv.h"
#include "safetensors.h"

typedef struct place {
    const fd_safetensor *x;
    int32_t element_bytes;
    int64_t bytes;
} place;

static int by_element(const void *a, const void *b)
{
    const place *x = (const place *)a, *y = (const place *)b;
    return x->element_bytes != y->element_bytes ? y->element_bytes - x->element_bytes : strcmp(x->x->name, y->x->name);
}

/* Bytes of a tensor; false if its type is unknown or its shape has too many. */
static bool measure(place *p)
{
    int64_t bytes = p->element_bytes = fd_safetensors_element_bytes(p->x->dtype_name);
    for (int32_t d = 0; d < p->x->rank; d++) {
        const int64_t extent = p->x->shape[d];
        if (extent < 0 || (extent > 0 && bytes > INT64_MAX / 2 / extent)) {
            return false;
        }
        bytes *= extent;
    }
    p->bytes = bytes;
    return p->element_bytes > 0;
}

static json_t *entry_of(const place *p, int64_t begin)
{
    json_t *shape = json_array();
    for (int32_t d = 0; d < p->x->rank; d++) {
        json_array_append_new(shape, json_integer(p->x->shape[d]));
    }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", p->x->dtype_name, "shape", shape, "data_offsets",
                     (json_int_t)begin, (json_int_t)(begin + p->bytes));
}

/* The header as text, padded; NULL without memory, or for a name that is no UTF-8. */
static char *header_of(const place *places, int32_t count, const fd_metadata *metadata, int32_t num_metadata)
{
    json_t *header = json_object(), *pairs = json_object();
    int64_t begin = 0;
    bool good = header != NULL && pairs != NULL;
    for (int32_t m = 0; m < num_metadata && good; m++) {
        good = json_object_set_new(pairs, metadata[m].key, json_string(metadata[m].value)) == 0;
    }
    good = good && (num_metadata == 0 || json_object_set(header, "__metadata__", pairs) == 0);
    for (int32_t t = 0; t < count && good; t++) {
        good = json_object_set_new(header, places[t].x->name, entry_of(&places[t], begin)) == 0;
        begin += places[t].bytes;
    }
    char *text = good ? json_dumps(header, JSON_COMPACT) : NULL;
    json_decref(pairs);
    json_decref(header);
    const size_t length = text != NULL ? strlen(text) : 0, padded = (length + 7) / 8 * 8;
    char *longer = text != NULL ? realloc(text, padded + 1) : NULL;
    if (longer == NULL) {
        free(text);
        return NULL;
    }
    memset(longer + length, ' ', padded - length);
    longer[padded] = '\0';
    return longer;
}

fd_status fd_safetensors_write(const char *path, const fd_safetensor *tensors, int32_t count,
                               const fd_metadata *metadata, int32_t num_metadata, char *why, size_t n)
{
    place *places = calloc((size_t)count + 1, sizeof *places);
    char *header = NULL;
    fd_csv file = {.file = NULL};
    fd_status status = FD_OK;
    for (int32_t t = 0; t < count && places != NULL && status == FD_OK; t++) {
        places[t].x = &tensors[t];
        if (!measure(&places[t])) {
            status = fd_safetensors_refuse(path, why, n, "tensor '%.100s' has no known dtype or too large a shape",
                                           tensors[t].name);
        }
    }
    if (places != NULL && status == FD_OK) {
        qsort(places, (size_t)count, sizeof *places, by_element);
        header = header_of(places, count, metadata, num_metadata);
    }
    if (status == FD_OK && header == NULL) {
        fd_safetensors_refuse(path, why, n, "no memory for its header, or a name in it is not UTF-8");
        status = FD_NO_MEMORY;
    }
    if (status == FD_OK) {
        status = fd_csv_open(&file, path, why, n);
    }
    if (status == FD_OK) {
        const uint64_t length = strlen(header);
        unsigned char head[8];
        for (int x = 0; x < 8; x++) {
            head[x] = (unsigned char)(length >> 8 * x);
        }
        fwrite(head, 1, sizeof head, file.file); /* a failed write is found by the commit */
        fwrite(header, 1, length, file.file);
        for (int32_t t = 0; t < count; t++) {
            fwrite(places[t].x->data, 1, (size_t)places[t].bytes, file.file);
        }
        status = fd_csv_commit(&file, why, n);
    }
    free(header);
    free(places);
    return status;
}
