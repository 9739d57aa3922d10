/* dump_read.c: q, k, v and what describes them, as a problem. Rows stay where they are in the file until an instance
 * asks for them. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "dump.h"
#include "machine.h"
#include "row.h"

enum { HEADS_LAST = 0, HEADS_FIRST }; /* of two dimensions, rows or slots and heads */

typedef struct reader {
    const fd_safetensors *file;
    const fd_safetensor *x[FD_DUMP_TENSORS];
    fd_dump *dump;
    char *why;
    size_t n;
    int order, order_kv;
} reader;

/* Extents of a tensor of rows: blocks (sequences or pages), rows or slots in each, heads, elements. */
typedef struct extents {
    int64_t blocks, rows, heads, dim;
} extents;

#define REFUSE(r, ...) fd_safetensors_refuse((r)->dump->path, (r)->why, (r)->n, __VA_ARGS__)

/* ---- Tensors ----------------------------------------------------------------------------------- */

/* packed: [rows, heads, dim], one block. one_row: [blocks, heads, dim] is taken, too. */
static fd_status view(const reader *r, int which, bool packed, bool one_row, int order, extents *e, fd_tensor *tensor)
{
    const fd_safetensor *x = r->x[which];
    const bool short_one = one_row && !packed && x->rank == 3;
    char shape[120];
    if (x->dtype != FD_F32 && x->dtype != FD_F16 && x->dtype != FD_BF16) {
        return REFUSE(r, "%s is %s; store F32, F16 or BF16", x->name, x->dtype_name);
    }
    if (x->rank != (packed || short_one ? 3 : 4)) {
        return REFUSE(r, "%s is %s, expected %s", x->name, fd_dump_shape(x, shape, sizeof shape),
                      packed ? "three dimensions: rows of all sequences, heads, head_dim"
                      : r->x[FD_DUMP_PAGE_TABLE] && which != FD_DUMP_Q ? "four: pages, slots and heads, head_dim"
                                                                       : "four: batch, rows and heads, head_dim");
    }
    for (int32_t d = 0; d < x->rank; d++) {
        if (x->shape[d] > INT32_MAX) {
            return REFUSE(r, "%s is %s: no dimension can be above 2^31 - 1", x->name,
                          fd_dump_shape(x, shape, sizeof shape));
        }
    }
    const int64_t *s = x->shape, dim = s[x->rank - 1];
    *e = packed                 ? (extents){1, s[0], s[1], dim}
         : short_one            ? (extents){s[0], 1, s[1], dim}
         : order == HEADS_FIRST ? (extents){s[0], s[2], s[1], dim}
                                : (extents){s[0], s[1], s[2], dim};
    if (e->blocks < 1 || e->heads < 1 || dim < 1 || dim > FD_HEAD_DIM_MAX) {
        return REFUSE(r, "%s is %s: nothing but its slots can be 0, and head_dim is at most %d", x->name,
                      fd_dump_shape(x, shape, sizeof shape), FD_HEAD_DIM_MAX);
    }
    const bool first = order == HEADS_FIRST && !packed && !short_one;
    *tensor = (fd_tensor){
        .data = (void *)(uintptr_t)x->data,
        .stride = {packed ? 0 : e->rows * e->heads * dim, first ? dim : e->heads * dim, first ? e->rows * dim : dim, 1},
        .dtype = x->dtype,
        .space = FD_HOST};
    return FD_OK;
}

static fd_status check_integers(const reader *r, int which, int32_t rank)
{
    const fd_safetensor *x = r->x[which];
    char shape[120];
    if (x->dtype != FD_I32 && strcmp(x->dtype_name, "I64") != 0) {
        return REFUSE(r, "%s is %s; store I32 or I64", x->name, x->dtype_name);
    }
    return x->rank == rank ? FD_OK
                           : REFUSE(r, "%s is %s, expected %s", x->name, fd_dump_shape(x, shape, sizeof shape),
                                    rank == 1 ? "one dimension" : "[batch, pages]");
}

/* cu_seqlens: 0, then where each sequence ends; the last one ends with the tensor. */
static fd_status read_starts(const reader *r, int which, int64_t rows, const char *of, int64_t **starts)
{
    const fd_safetensor *x = r->x[which];
    const fd_status status = check_integers(r, which, 1);
    if (status != FD_OK) {
        return status;
    }
    if (x->shape[0] < 2) {
        return REFUSE(r, "%s has %lld elements, expected batch + 1 of at least one sequence", x->name,
                      (long long)x->shape[0]);
    }
    *starts = calloc((size_t)x->shape[0], sizeof **starts);
    if (*starts == NULL) {
        REFUSE(r, "no memory for %s", x->name);
        return FD_NO_MEMORY;
    }
    for (int64_t b = 0; b < x->shape[0]; b++) {
        const int64_t at = fd_dump_integer(x, b), least = b == 0 ? 0 : (*starts)[b - 1], most = b == 0 ? 0 : rows;
        if (at < least || at > most) {
            return REFUSE(r, "%s[%lld] = %lld, expected %lld .. %lld: it begins with 0 and does not fall", x->name,
                          (long long)b, (long long)at, (long long)least, (long long)most);
        }
        (*starts)[b] = at;
    }
    return (*starts)[x->shape[0] - 1] == rows ? FD_OK
                                              : REFUSE(r, "%s ends with %lld, but %s has %lld rows", x->name,
                                                       (long long)(*starts)[x->shape[0] - 1], of, (long long)rows);
}

/* ---- Lengths ----------------------------------------------------------------------------------- */

static fd_status read_q_lens(const reader *r, const extents *q)
{
    fd_dump *d = r->dump;
    fd_problem *p = &d->problem;
    fd_status status = FD_OK;
    int64_t batch = q->blocks;
    if (r->x[FD_DUMP_CU_SEQLENS_Q] != NULL) {
        status = read_starts(r, FD_DUMP_CU_SEQLENS_Q, q->rows, "q", &d->q_starts);
        batch = status == FD_OK ? r->x[FD_DUMP_CU_SEQLENS_Q]->shape[0] - 1 : 0;
    }
    if (status != FD_OK) {
        return status;
    }
    if (batch > INT32_MAX / 2 || (d->q_starts == NULL && q->rows < 1)) {
        return REFUSE(r, "q has %lld sequences of %lld rows; give at least one row", (long long)batch,
                      (long long)q->rows);
    }
    d->q_lens = calloc((size_t)batch, sizeof *d->q_lens);
    d->kv_lens = calloc((size_t)batch, sizeof *d->kv_lens);
    if (d->q_lens == NULL || d->kv_lens == NULL) {
        REFUSE(r, "no memory for the lengths of %lld sequences", (long long)batch);
        return FD_NO_MEMORY;
    }
    p->batch = (int32_t)batch;
    for (int32_t b = 0; b < p->batch; b++) {
        d->q_lens[b] = (int32_t)(d->q_starts != NULL ? d->q_starts[b + 1] - d->q_starts[b] : q->rows);
        p->q_len = d->q_lens[b] > p->q_len ? d->q_lens[b] : p->q_len;
    }
    return p->q_len > 0 ? FD_OK : REFUSE(r, "no sequence has a query row; there is nothing to judge");
}

/* Keys that the tensors have room for, of sequence b. */
static int64_t capacity_of(const reader *r, const extents *k, int32_t b)
{
    const fd_dump *d = r->dump;
    return d->kv_starts != NULL    ? d->kv_starts[b + 1] - d->kv_starts[b]
           : d->page_table != NULL ? d->pages_each * k->rows
                                   : k->rows;
}

static fd_status read_kv_lens(const reader *r, const extents *k)
{
    fd_dump *d = r->dump;
    fd_problem *p = &d->problem;
    const fd_safetensor *x = r->x[FD_DUMP_KV_LENS];
    const fd_status status = x != NULL ? check_integers(r, FD_DUMP_KV_LENS, 1) : FD_OK;
    if (status != FD_OK) {
        return status;
    }
    if (x != NULL && x->shape[0] != p->batch) {
        return REFUSE(r, "%s has %lld elements, but q has %d sequences", x->name, (long long)x->shape[0], p->batch);
    }
    if (x == NULL && d->page_table != NULL) {
        return REFUSE(r, "a paged cache needs kv_lens, [batch] integers; add them");
    }
    for (int32_t b = 0; b < p->batch; b++) {
        const int64_t room = capacity_of(r, k, b), kv_len = x != NULL ? fd_dump_integer(x, b) : room;
        if (kv_len < 0 || kv_len > room) {
            return REFUSE(r, "%s[%d] = %lld, but the cache has room for %lld keys", x->name, b, (long long)kv_len,
                          (long long)room);
        }
        if (kv_len > INT32_MAX - 16) {
            return REFUSE(r, "sequence %d has %lld keys, above the largest kv_len", b, (long long)kv_len);
        }
        d->kv_lens[b] = (int32_t)kv_len;
        p->kv_capacity = kv_len > p->kv_capacity ? kv_len : p->kv_capacity;
    }
    p->kv_lens_host = d->kv_lens;
    return FD_OK;
}

static fd_status read_page_table(const reader *r, const extents *k)
{
    fd_dump *d = r->dump;
    const fd_safetensor *x = r->x[FD_DUMP_PAGE_TABLE];
    fd_status status = check_integers(r, FD_DUMP_PAGE_TABLE, 2);
    if (status == FD_OK && x->shape[0] != d->problem.batch) {
        status =
            REFUSE(r, "%s has %lld rows, but q has %d sequences", x->name, (long long)x->shape[0], d->problem.batch);
    }
    if (status == FD_OK && k->rows == 0) {
        status = REFUSE(r, "k has pages of 0 slots; give it slots");
    }
    if (status == FD_OK && x->shape[1] > INT32_MAX) {
        status = REFUSE(r, "%s has more than 2^31 - 1 pages a sequence", x->name);
    }
    if (status != FD_OK) {
        return status;
    }
    d->pages_each = x->shape[1];
    d->page_table = calloc((size_t)d->problem.batch * (size_t)d->pages_each + 1, sizeof *d->page_table);
    if (d->page_table == NULL) {
        REFUSE(r, "no memory for %s", x->name);
        return FD_NO_MEMORY;
    }
    status = read_kv_lens(r, k); /* which says how far the table is read: behind that, it may hold anything */
    for (int32_t b = 0; b < d->problem.batch && status == FD_OK; b++) {
        for (int64_t i = 0; i * k->rows < d->kv_lens[b]; i++) {
            const int64_t page = fd_dump_integer(x, b * d->pages_each + i);
            if (page < 0 || page >= k->blocks) {
                return REFUSE(r, "%s[%d, %lld] = %lld, but k has %lld pages", x->name, b, (long long)i, (long long)page,
                              (long long)k->blocks);
            }
            d->page_table[b * d->pages_each + i] = (int32_t)page;
        }
    }
    d->problem.page_size = (int32_t)k->rows;
    return status;
}

/* ---- Scalars ----------------------------------------------------------------------------------- */

/* A tensor of one element, or metadata, in decimal or hex; rounded to the float that a kernel is called with. */
static fd_status read_scale(const reader *r)
{
    fd_problem *p = &r->dump->problem;
    const fd_safetensor *x = r->x[FD_DUMP_SM_SCALE];
    const char *text = fd_safetensors_metadata(r->file, "sm_scale");
    char shape[120], *end = NULL;
    double value = 1.0 / sqrt((double)p->head_dim);
    if (x != NULL && (x->bytes != fd_safetensors_element_bytes(x->dtype_name) ||
                      (x->dtype != FD_F32 && strcmp(x->dtype_name, "F64") != 0))) {
        return REFUSE(r, "%s is %s, expected one element, F32 or F64", x->name, fd_dump_shape(x, shape, sizeof shape));
    }
    if (text != NULL) {
        value = strtod(text, &end);
    }
    if (text != NULL && (*text == '\0' || *end != '\0')) {
        return REFUSE(r, "metadata sm_scale is '%.40s', no number", text);
    }
    if (x != NULL) {
        const double stored = x->dtype == FD_F32 ? (double)*(const float *)x->data : *(const double *)x->data;
        if (text != NULL && (float)stored != (float)value) {
            return REFUSE(r, "%s is %.9g, but metadata sm_scale says %.9g; drop one", x->name, stored, value);
        }
        value = stored;
    }
    p->sm_scale = (float)value;
    r->dump->scale_given = x != NULL || text != NULL;
    return isfinite(p->sm_scale) ? FD_OK : REFUSE(r, "sm_scale %g is no finite float", value);
}

static fd_status read_metadata(reader *r)
{
    static const char *const orders[] = {"BSHD", "BHSD", "NHD", "HND"}, *const answers[] = {"false", "true"};
    fd_problem *p = &r->dump->problem;
    int word = 0, word_kv = 0, causal = 0;
    int64_t window_right = -1;
    fd_status status = fd_dump_check_metadata(r->file, r->dump->path, r->why, r->n);
    status = status == FD_OK ? fd_dump_word(r->file, r->dump->path, "layout", orders, 4, &word, r->why, r->n) : status;
    status =
        status == FD_OK ? fd_dump_word(r->file, r->dump->path, "kv_layout", orders, 4, &word_kv, r->why, r->n) : status;
    status =
        status == FD_OK ? fd_dump_word(r->file, r->dump->path, "causal", answers, 2, &causal, r->why, r->n) : status;
    status = status == FD_OK ? fd_dump_number(r->file, r->dump->path, "window_right", -1, INT32_MAX / 2, &window_right,
                                              r->why, r->n)
                             : status;
    status = status == FD_OK ? fd_dump_number(r->file, r->dump->path, "split_size", 0, INT32_MAX,
                                              &p->split_size_request, r->why, r->n)
                             : status;
    if (status == FD_OK && causal == 0 && window_right >= 0 && fd_safetensors_metadata(r->file, "causal") != NULL) {
        return REFUSE(r, "metadata window_right is %lld, but causal is false; drop one", (long long)window_right);
    }
    r->order = word % 2 == 0 ? HEADS_LAST : HEADS_FIRST;
    r->order_kv = fd_safetensors_metadata(r->file, "kv_layout") == NULL ? r->order
                  : word_kv % 2 == 0                                    ? HEADS_LAST
                                                                        : HEADS_FIRST;
    p->window_left = -1;
    p->window_right = causal != 0 && window_right < 0 ? 0 : (int32_t)window_right;
    return status;
}

/* ---- The whole --------------------------------------------------------------------------------- */

static fd_status check_needed(const reader *r)
{
    static const struct {
        int which;
        const char *name;
    } needed[] = {{FD_DUMP_Q, "q"}, {FD_DUMP_K, "k"}, {FD_DUMP_V, "v"}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (r->x[needed[i].which] == NULL) {
            return REFUSE(r, "there is no tensor %s; q, k and v are needed, and o to be judged", needed[i].name);
        }
    }
    if (r->x[FD_DUMP_PAGE_TABLE] != NULL && r->x[FD_DUMP_CU_SEQLENS_K] != NULL) {
        return REFUSE(r, "%s and %s are both there: keys are in pages, or packed; drop one, and give kv_lens",
                      r->x[FD_DUMP_PAGE_TABLE]->name, r->x[FD_DUMP_CU_SEQLENS_K]->name);
    }
    return FD_OK;
}

static fd_status check_shapes(const reader *r, const extents *q, const extents *k, const extents *v)
{
    const fd_problem *p = &r->dump->problem;
    if (q->dim != k->dim) {
        return REFUSE(r, "q has head_dim %lld, k %lld", (long long)q->dim, (long long)k->dim);
    }
    if (k->blocks != v->blocks || k->rows != v->rows || k->heads != v->heads) {
        char shape_k[120], shape_v[120];
        return REFUSE(r, "k is %s and v is %s: all but head_dim must agree",
                      fd_dump_shape(r->x[FD_DUMP_K], shape_k, sizeof shape_k),
                      fd_dump_shape(r->x[FD_DUMP_V], shape_v, sizeof shape_v));
    }
    if (p->k.dtype != p->v.dtype) {
        return REFUSE(r, "k is %s and v is %s; this judge takes one type of both", r->x[FD_DUMP_K]->dtype_name,
                      r->x[FD_DUMP_V]->dtype_name);
    }
    if (q->heads % k->heads != 0) {
        return REFUSE(r, "q has %lld heads, no multiple of the %lld of k; is layout BHSD missing?", (long long)q->heads,
                      (long long)k->heads);
    }
    return FD_OK;
}

static fd_status read_keys(const reader *r, const extents *k)
{
    fd_dump *d = r->dump;
    if (r->x[FD_DUMP_PAGE_TABLE] != NULL) {
        return read_page_table(r, k);
    }
    int64_t batch = k->blocks;
    if (r->x[FD_DUMP_CU_SEQLENS_K] != NULL) {
        const fd_status status = read_starts(r, FD_DUMP_CU_SEQLENS_K, k->rows, "k", &d->kv_starts);
        if (status != FD_OK) {
            return status;
        }
        batch = r->x[FD_DUMP_CU_SEQLENS_K]->shape[0] - 1;
    }
    return batch == d->problem.batch ? read_kv_lens(r, k)
                                     : REFUSE(r, "q has %d sequences, k %lld", d->problem.batch, (long long)batch);
}

fd_status fd_dump_read(const fd_safetensors *file, const char *path, fd_dump *dump, char *why, size_t n)
{
    reader r = {.file = file, .dump = dump, .why = why, .n = n};
    extents q, k, v;
    *dump = (fd_dump){.path = path, .problem = {.size = sizeof(fd_problem)}};
    fd_problem *p = &dump->problem;
    fd_status status = fd_dump_find(file, path, r.x, why, n);
    status = status == FD_OK ? check_needed(&r) : status;
    status = status == FD_OK ? read_metadata(&r) : status;
    const bool packed_q = r.x[FD_DUMP_CU_SEQLENS_Q] != NULL, packed_k = r.x[FD_DUMP_CU_SEQLENS_K] != NULL;
    status = status == FD_OK ? view(&r, FD_DUMP_Q, packed_q, true, r.order, &q, &p->q) : status;
    status = status == FD_OK ? view(&r, FD_DUMP_K, packed_k, false, r.order_kv, &k, &p->k) : status;
    status = status == FD_OK ? view(&r, FD_DUMP_V, packed_k, false, r.order_kv, &v, &p->v) : status;
    status = status == FD_OK ? check_shapes(&r, &q, &k, &v) : status;
    if (status == FD_OK) {
        p->heads_q = (int32_t)q.heads;
        p->heads_kv = (int32_t)k.heads;
        p->head_dim = (int32_t)q.dim;
        p->head_dim_v = (int32_t)v.dim;
        status = read_q_lens(&r, &q);
    }
    status = status == FD_OK ? read_keys(&r, &k) : status;
    status = status == FD_OK ? read_scale(&r) : status;
    if (status != FD_OK) {
        fd_dump_free(dump);
        return status;
    }
    dump->rows = (fd_rows){.batch = p->batch,
                           .heads_q = p->heads_q,
                           .head_dim_v = p->head_dim_v,
                           .q_len = p->q_len,
                           .q_lens = dump->q_lens,
                           .starts = dump->q_starts,
                           .heads_first = r.order == HEADS_FIRST && !packed_q};
    return FD_OK;
}

void fd_dump_free(fd_dump *dump)
{
    free(dump->q_lens);
    free(dump->kv_lens);
    free(dump->q_starts);
    free(dump->kv_starts);
    free(dump->page_table);
    *dump = (fd_dump){.path = NULL};
}

/* ---- An instance ------------------------------------------------------------------------------- */

static int64_t key_at(const fd_dump *d, const fd_tensor *x, int32_t b, int64_t j, int32_t h)
{
    int64_t block = b, slot = j;
    if (d->page_table != NULL) {
        block = d->page_table[b * d->pages_each + j / d->problem.page_size];
        slot = j % d->problem.page_size;
    } else if (d->kv_starts != NULL) {
        slot = d->kv_starts[b] + j;
    }
    return block * x->stride[0] + slot * x->stride[1] + h * x->stride[2];
}

static void copy_row(const fd_tensor *to, int64_t to_at, const fd_tensor *from, int64_t from_at, int32_t dim)
{
    const size_t bytes = fd_dtype_bytes(from->dtype);
    memcpy((unsigned char *)to->data + (size_t)to_at * bytes,
           (const unsigned char *)from->data + (size_t)from_at * bytes, (size_t)dim * bytes);
}

static fd_status fill(void *from, const fd_problem *p, char *why, size_t n)
{
    const fd_dump_part *part = from;
    const fd_dump *d = part->dump;
    const fd_tensor *q = &d->problem.q;
    (void)why;
    (void)n;
    for (int32_t b = 0; b < part->count; b++) {
        const int32_t s = part->sequences[b];
        for (int32_t t = 0; t < p->q_len; t++) {
            const int64_t row = t + (d->q_starts != NULL ? d->q_starts[s] : 0);
            for (int32_t h = 0; h < p->heads_q; h++) {
                copy_row(&p->q, fd_row_at(&p->q, b, t, h), q, s * q->stride[0] + row * q->stride[1] + h * q->stride[2],
                         p->head_dim);
            }
        }
        for (int64_t j = 0; j < d->kv_lens[s]; j++) {
            for (int32_t h = 0; h < p->heads_kv; h++) {
                copy_row(&p->k, fd_kv_at(p, &p->k, b, j, h), &d->problem.k, key_at(d, &d->problem.k, s, j, h),
                         p->head_dim);
                copy_row(&p->v, fd_kv_at(p, &p->v, b, j, h), &d->problem.v, key_at(d, &d->problem.v, s, j, h),
                         p->head_dim_v);
            }
        }
    }
    return FD_OK;
}

fd_status fd_dump_instance(const fd_dump_part *part, const char *name, int32_t dtype_o, fd_instance *instance,
                           char *why, size_t n)
{
    const fd_dump *d = part->dump;
    fd_problem shape = d->problem;
    int32_t *kv_lens = calloc((size_t)part->count, sizeof *kv_lens);
    int64_t longest = 0;
    *instance = (fd_instance){.lens = NULL};
    if (kv_lens == NULL) {
        fd_safetensors_refuse(d->path, why, n, "no memory for the lengths of %d sequences", part->count);
        return FD_NO_MEMORY;
    }
    for (int32_t b = 0; b < part->count; b++) {
        kv_lens[b] = d->kv_lens[part->sequences[b]];
        longest = kv_lens[b] > longest ? kv_lens[b] : longest;
    }
    shape.batch = part->count;
    shape.q_len = part->q_len;
    shape.kv_lens_host = kv_lens;
    shape.o = (fd_tensor){.dtype = dtype_o};

    /* Every sequence gets the room of the longest one: of a packed or paged cache, that can be far more than the file. */
    const double bytes = (double)part->count * ((double)longest + 16.0) * shape.heads_kv *
                         ((double)shape.head_dim + shape.head_dim_v + 16.0) * (double)fd_dtype_bytes(shape.k.dtype);
    fd_status status = FD_OK;
    if (bytes > 0.8 * (double)fd_memory_available()) {
        fd_safetensors_refuse(d->path, why, n,
                              "%d sequences of up to %lld keys take %.1f GiB, more than there is; give fewer "
                              "sequences a file",
                              part->count, (long long)longest, bytes / 1073741824.0);
        status = FD_NO_MEMORY;
    }
    if (status == FD_OK) {
        status = fd_instance_create_from(instance, &shape, name, (fd_filler){fill, (void *)(uintptr_t)part}, why, n);
    }
    free(kv_lens);
    return status;
}
