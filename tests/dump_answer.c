/* dump_answer.c: o and lse of a file, in the shapes that implementations give them. */
#include "dump.h"

typedef struct reader {
    const char *path;
    char *why;
    size_t n;
    const fd_rows *rows;
} reader;

static bool has_shape(const fd_safetensor *x, int32_t rank, const int64_t *shape)
{
    return x->rank == rank && memcmp(x->shape, shape, (size_t)rank * sizeof *shape) == 0;
}

/* Strides of [sequence, row, head, element] where a sequence has `t` rows (of a packed tensor: all of them). */
static void set_strides(fd_tensor *x, const fd_rows *rows, int64_t t, int64_t dim, bool heads_first)
{
    x->stride[0] = rows->starts != NULL ? 0 : t * rows->heads_q * dim;
    x->stride[1] = heads_first ? dim : rows->heads_q * dim;
    x->stride[2] = heads_first ? t * dim : dim;
    x->stride[3] = 1;
}

static fd_status read_o(const reader *r, const fd_safetensor *x, fd_dumped *answer)
{
    const fd_rows *rows = r->rows;
    const int64_t t = rows->starts != NULL ? rows->starts[rows->batch] : rows->q_len, h = rows->heads_q;
    const int64_t packed[3] = {t, h, rows->head_dim_v}, flat[3] = {rows->batch, h, rows->head_dim_v};
    const int64_t dense[4] = {rows->batch, rows->heads_first ? h : t, rows->heads_first ? t : h, rows->head_dim_v};
    const bool fits =
        rows->starts != NULL ? has_shape(x, 3, packed) : has_shape(x, 4, dense) || (t == 1 && has_shape(x, 3, flat));
    char shape[120];
    if (x->dtype != FD_F32 && x->dtype != FD_F16 && x->dtype != FD_BF16) {
        return fd_safetensors_refuse(r->path, r->why, r->n,
                                     "%s is %s; store what the implementation returned as F32, F16 or BF16", x->name,
                                     x->dtype_name);
    }
    if (!fits) {
        return rows->starts != NULL
                   ? fd_safetensors_refuse(r->path, r->why, r->n, "%s is %s, expected [%lld, %lld, %d]", x->name,
                                           fd_dump_shape(x, shape, sizeof shape), (long long)t, (long long)h,
                                           rows->head_dim_v)
                   : fd_safetensors_refuse(r->path, r->why, r->n, "%s is %s, expected [%d, %lld, %lld, %d]", x->name,
                                           fd_dump_shape(x, shape, sizeof shape), rows->batch, (long long)dense[1],
                                           (long long)dense[2], rows->head_dim_v);
    }
    answer->o = (fd_tensor){.data = (void *)(uintptr_t)x->data, .dtype = x->dtype, .space = FD_HOST};
    set_strides(&answer->o, rows, t, rows->head_dim_v, rows->heads_first);
    return FD_OK;
}

/* [b, t, h] or [b, h, t], or packed [t, h] or [h, t]: by its shape, and where that says nothing by lse_layout, or else
 * heads last. */
static fd_status read_lse(const reader *r, const fd_safetensors *file, const fd_safetensor *x, fd_dumped *answer)
{
    static const char *const words[] = {"", "BSH", "SH", "BHS", "HS"};
    const fd_rows *rows = r->rows;
    const bool packed = rows->starts != NULL;
    const int64_t t = packed ? rows->starts[rows->batch] : rows->q_len, b = rows->batch, h = rows->heads_q;
    const int64_t last[3] = {b, t, h}, first[3] = {b, h, t}, flat[2] = {b, h};
    const bool is_last =
        packed ? has_shape(x, 2, last + 1) : has_shape(x, 3, last) || (t == 1 && has_shape(x, 2, flat));
    const bool is_first = packed ? has_shape(x, 2, first + 1) : has_shape(x, 3, first);
    int word;
    char shape[120];
    const fd_status status = fd_dump_word(file, r->path, "lse_layout", words, 5, &word, r->why, r->n);
    if (status != FD_OK) {
        return status;
    }
    if (x->dtype != FD_F32) {
        return fd_safetensors_refuse(r->path, r->why, r->n, "%s is %s; store it as F32", x->name, x->dtype_name);
    }
    if ((!is_last && !is_first) || (word >= 3 && !is_first && t != 1) || ((word == 1 || word == 2) && !is_last)) {
        return packed
                   ? fd_safetensors_refuse(r->path, r->why, r->n, "%s is %s, expected [%lld, %lld] or [%lld, %lld]%s",
                                           x->name, fd_dump_shape(x, shape, sizeof shape), (long long)t, (long long)h,
                                           (long long)h, (long long)t, word > 0 ? ", as lse_layout says" : "")
                   : fd_safetensors_refuse(
                         r->path, r->why, r->n, "%s is %s, expected [%lld, %lld, %lld] or [%lld, %lld, %lld]%s",
                         x->name, fd_dump_shape(x, shape, sizeof shape), (long long)b, (long long)t, (long long)h,
                         (long long)b, (long long)h, (long long)t, word > 0 ? ", as lse_layout says" : "");
    }
    answer->lse = (fd_tensor){.data = (void *)(uintptr_t)x->data, .dtype = FD_F32, .space = FD_HOST};
    set_strides(&answer->lse, rows, t, 1, word >= 3 || !is_last);
    return FD_OK;
}

fd_status fd_dumped_read(const fd_safetensors *file, const char *path, const fd_rows *rows, fd_dumped *answer,
                         bool *found, char *why, size_t n)
{
    const reader r = {path, why, n, rows};
    const fd_safetensor *tensors[FD_DUMP_TENSORS];
    fd_status status = fd_dump_find(file, path, tensors, why, n);
    *answer = (fd_dumped){.rows = rows};
    *found = status == FD_OK && tensors[FD_DUMP_O] != NULL;
    if (status == FD_OK && tensors[FD_DUMP_O] == NULL && tensors[FD_DUMP_LSE] != NULL) {
        return fd_safetensors_refuse(path, why, n, "there is an lse, but no o; add o");
    }
    if (*found) {
        status = read_o(&r, tensors[FD_DUMP_O], answer);
    }
    if (status == FD_OK && tensors[FD_DUMP_LSE] != NULL) {
        status = read_lse(&r, file, tensors[FD_DUMP_LSE], answer);
    }
    return status;
}

void fd_dumped_gather(const fd_dumped *answer, const int32_t *sequences, int32_t count, int32_t q_len, float *o,
                      float *lse)
{
    const fd_rows *rows = answer->rows;
    const int32_t heads = rows->heads_q, dims = rows->head_dim_v;
    for (int64_t row = 0; row < (int64_t)count * q_len * heads; row++) {
        const int32_t b = sequences[row / heads / q_len], t = (int32_t)(row / heads % q_len),
                      h = (int32_t)(row % heads);
        const int64_t at_t = t + (rows->starts != NULL ? rows->starts[b] : 0);
        const int64_t at = b * answer->o.stride[0] + at_t * answer->o.stride[1] + h * answer->o.stride[2];
        for (int32_t i = 0; i < dims; i++) {
            o[row * dims + i] = fd_load(&answer->o, at + i);
        }
        lse[row] = answer->lse.data == NULL
                       ? 0.0f
                       : fd_load(&answer->lse,
                                 b * answer->lse.stride[0] + at_t * answer->lse.stride[1] + h * answer->lse.stride[2]);
    }
}
