/* dump_read.c: q, k, v and what describes them, as a problem. Rows stay where they are in the file until an instance
 * asks for them. */
#include <stdlib.h>

#include "dump_parts.h"
#include "row.h"

/* ---- Tensors ----------------------------------------------------------------------------------- */

/* packed: [rows, heads, dim], one block. one_row: [blocks, heads, dim] is taken, too. */
static fd_status view(const fd_dump_reader *r, int which, bool packed, bool one_row, int order, fd_dump_extents *e,
                      fd_tensor *tensor)
{
    const fd_safetensor *x = r->x[which];
    const bool short_one = one_row && !packed && x->rank == 3;
    char shape[120];
    if (x->dtype != FD_F32 && x->dtype != FD_F16 && x->dtype != FD_BF16) {
        return FD_DUMP_REFUSE(r, "%s is %s; store F32, F16 or BF16", x->name, x->dtype_name);
    }
    if (x->rank != (packed || short_one ? 3 : 4)) {
        return FD_DUMP_REFUSE(r, "%s is %s, expected %s", x->name, fd_dump_shape(x, shape, sizeof shape),
                              packed ? "three dimensions: rows of all sequences, heads, head_dim"
                              : r->x[FD_DUMP_PAGE_TABLE] && which != FD_DUMP_Q
                                  ? "four: pages, slots and heads, head_dim"
                                  : "four: batch, rows and heads, head_dim");
    }
    for (int32_t d = 0; d < x->rank; d++) {
        if (x->shape[d] > INT32_MAX) {
            return FD_DUMP_REFUSE(r, "%s is %s: no dimension can be above 2^31 - 1", x->name,
                                  fd_dump_shape(x, shape, sizeof shape));
        }
    }
    const int64_t *s = x->shape, dim = s[x->rank - 1];
    *e = packed                    ? (fd_dump_extents){1, s[0], s[1], dim}
         : short_one               ? (fd_dump_extents){s[0], 1, s[1], dim}
         : order == FD_HEADS_FIRST ? (fd_dump_extents){s[0], s[2], s[1], dim}
                                   : (fd_dump_extents){s[0], s[1], s[2], dim};
    if (e->blocks < 1 || e->heads < 1 || dim < 1 || dim > FD_HEAD_DIM_MAX) {
        return FD_DUMP_REFUSE(r, "%s is %s: nothing but its slots can be 0, and head_dim is at most %d", x->name,
                              fd_dump_shape(x, shape, sizeof shape), FD_HEAD_DIM_MAX);
    }
    const bool first = order == FD_HEADS_FIRST && !packed && !short_one;
    *tensor = (fd_tensor){
        .data = (void *)(uintptr_t)x->data,
        .stride = {packed ? 0 : e->rows * e->heads * dim, first ? dim : e->heads * dim, first ? e->rows * dim : dim, 1},
        .dtype = x->dtype,
        .space = FD_HOST};
    return FD_OK;
}

/* ---- The whole --------------------------------------------------------------------------------- */

static fd_status check_needed(const fd_dump_reader *r)
{
    static const struct {
        int which;
        const char *name;
    } needed[] = {{FD_DUMP_Q, "q"}, {FD_DUMP_K, "k"}, {FD_DUMP_V, "v"}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (r->x[needed[i].which] == NULL) {
            return FD_DUMP_REFUSE(r, "there is no tensor %s; q, k and v are needed, and o to be judged",
                                  needed[i].name);
        }
    }
    if (r->x[FD_DUMP_PAGE_TABLE] != NULL && r->x[FD_DUMP_CU_SEQLENS_K] != NULL) {
        return FD_DUMP_REFUSE(r, "%s and %s are both there: keys are in pages, or packed; drop one, and give kv_lens",
                              r->x[FD_DUMP_PAGE_TABLE]->name, r->x[FD_DUMP_CU_SEQLENS_K]->name);
    }
    return FD_OK;
}

static fd_status check_shapes(const fd_dump_reader *r, const fd_dump_extents *q, const fd_dump_extents *k,
                              const fd_dump_extents *v)
{
    const fd_problem *p = &r->dump->problem;
    if (q->dim != k->dim) {
        return FD_DUMP_REFUSE(r, "q has head_dim %lld, k %lld", (long long)q->dim, (long long)k->dim);
    }
    if (k->blocks != v->blocks || k->rows != v->rows || k->heads != v->heads) {
        char shape_k[120], shape_v[120];
        return FD_DUMP_REFUSE(r, "k is %s and v is %s: all but head_dim must agree",
                              fd_dump_shape(r->x[FD_DUMP_K], shape_k, sizeof shape_k),
                              fd_dump_shape(r->x[FD_DUMP_V], shape_v, sizeof shape_v));
    }
    if (p->k.dtype != p->v.dtype) {
        return FD_DUMP_REFUSE(r, "k is %s and v is %s; this judge takes one type of both", r->x[FD_DUMP_K]->dtype_name,
                              r->x[FD_DUMP_V]->dtype_name);
    }
    if (q->heads % k->heads != 0) {
        return FD_DUMP_REFUSE(r, "q has %lld heads, no multiple of the %lld of k; is layout BHSD missing?",
                              (long long)q->heads, (long long)k->heads);
    }
    return FD_OK;
}

fd_status fd_dump_read(const fd_safetensors *file, const char *path, fd_dump *dump, char *why, size_t n)
{
    fd_dump_reader r = {.file = file, .dump = dump, .why = why, .n = n};
    fd_dump_extents q, k, v;
    *dump = (fd_dump){.path = path, .problem = {.size = sizeof(fd_problem)}};
    fd_problem *p = &dump->problem;
    fd_status status = fd_dump_find(file, path, r.x, why, n);
    status = status == FD_OK ? check_needed(&r) : status;
    status = status == FD_OK ? fd_dump_read_metadata(&r) : status;
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
        status = fd_dump_read_q_lens(&r, &q);
    }
    status = status == FD_OK ? fd_dump_read_keys(&r, &k) : status;
    status = status == FD_OK ? fd_dump_read_scale(&r) : status;
    status = status == FD_OK ? fd_dump_read_window(&r) : status;
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
                           .heads_first = r.order == FD_HEADS_FIRST && !packed_q};
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
