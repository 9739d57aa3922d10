/* dump_lengths.c: how many query rows and keys each sequence has, and where they begin: dense, packed or paged. */
#include <stdlib.h>

#include "dump_parts.h"

static fd_status check_integers(const fd_dump_reader *r, int which, int32_t rank)
{
    const fd_safetensor *x = r->x[which];
    char shape[120];
    if (x->dtype != FD_I32 && strcmp(x->dtype_name, "I64") != 0) {
        return FD_DUMP_REFUSE(r, "%s is %s; store I32 or I64", x->name, x->dtype_name);
    }
    return x->rank == rank ? FD_OK
                           : FD_DUMP_REFUSE(r, "%s is %s, expected %s", x->name, fd_dump_shape(x, shape, sizeof shape),
                                            rank == 1 ? "one dimension" : "[batch, pages]");
}

/* cu_seqlens: 0, then where each sequence ends; the last one ends with the tensor. */
static fd_status read_starts(const fd_dump_reader *r, int which, int64_t rows, const char *of, int64_t **starts)
{
    const fd_safetensor *x = r->x[which];
    const fd_status status = check_integers(r, which, 1);
    if (status != FD_OK) {
        return status;
    }
    if (x->shape[0] < 2) {
        return FD_DUMP_REFUSE(r, "%s has %lld elements, expected batch + 1 of at least one sequence", x->name,
                              (long long)x->shape[0]);
    }
    *starts = calloc((size_t)x->shape[0], sizeof **starts);
    if (*starts == NULL) {
        FD_DUMP_REFUSE(r, "no memory for %s", x->name);
        return FD_NO_MEMORY;
    }
    for (int64_t b = 0; b < x->shape[0]; b++) {
        const int64_t at = fd_dump_integer(x, b), least = b == 0 ? 0 : (*starts)[b - 1], most = b == 0 ? 0 : rows;
        if (at < least || at > most) {
            return FD_DUMP_REFUSE(r, "%s[%lld] = %lld, expected %lld .. %lld: it begins with 0 and does not fall",
                                  x->name, (long long)b, (long long)at, (long long)least, (long long)most);
        }
        (*starts)[b] = at;
    }
    return (*starts)[x->shape[0] - 1] == rows
               ? FD_OK
               : FD_DUMP_REFUSE(r, "%s ends with %lld, but %s has %lld rows", x->name,
                                (long long)(*starts)[x->shape[0] - 1], of, (long long)rows);
}

fd_status fd_dump_read_q_lens(const fd_dump_reader *r, const fd_dump_extents *q)
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
        return FD_DUMP_REFUSE(r, "q has %lld sequences of %lld rows; give at least one row", (long long)batch,
                              (long long)q->rows);
    }
    d->q_lens = calloc((size_t)batch, sizeof *d->q_lens);
    d->kv_lens = calloc((size_t)batch, sizeof *d->kv_lens);
    if (d->q_lens == NULL || d->kv_lens == NULL) {
        FD_DUMP_REFUSE(r, "no memory for the lengths of %lld sequences", (long long)batch);
        return FD_NO_MEMORY;
    }
    p->batch = (int32_t)batch;
    for (int32_t b = 0; b < p->batch; b++) {
        d->q_lens[b] = (int32_t)(d->q_starts != NULL ? d->q_starts[b + 1] - d->q_starts[b] : q->rows);
        p->q_len = d->q_lens[b] > p->q_len ? d->q_lens[b] : p->q_len;
    }
    return p->q_len > 0 ? FD_OK : FD_DUMP_REFUSE(r, "no sequence has a query row; there is nothing to judge");
}

/* Keys that the tensors have room for, of sequence b. */
static int64_t capacity_of(const fd_dump_reader *r, const fd_dump_extents *k, int32_t b)
{
    const fd_dump *d = r->dump;
    return d->kv_starts != NULL    ? d->kv_starts[b + 1] - d->kv_starts[b]
           : d->page_table != NULL ? d->pages_each * k->rows
                                   : k->rows;
}

static fd_status read_kv_lens(const fd_dump_reader *r, const fd_dump_extents *k)
{
    fd_dump *d = r->dump;
    fd_problem *p = &d->problem;
    const fd_safetensor *x = r->x[FD_DUMP_KV_LENS];
    const fd_status status = x != NULL ? check_integers(r, FD_DUMP_KV_LENS, 1) : FD_OK;
    if (status != FD_OK) {
        return status;
    }
    if (x != NULL && x->shape[0] != p->batch) {
        return FD_DUMP_REFUSE(r, "%s has %lld elements, but q has %d sequences", x->name, (long long)x->shape[0],
                              p->batch);
    }
    if (x == NULL && d->page_table != NULL) {
        return FD_DUMP_REFUSE(r, "a paged cache needs kv_lens, [batch] integers; add them");
    }
    for (int32_t b = 0; b < p->batch; b++) {
        const int64_t room = capacity_of(r, k, b), kv_len = x != NULL ? fd_dump_integer(x, b) : room;
        if (kv_len < 0 || kv_len > room) {
            return FD_DUMP_REFUSE(r, "%s[%d] = %lld, but the cache has room for %lld keys", x->name, b,
                                  (long long)kv_len, (long long)room);
        }
        if (kv_len > INT32_MAX - 16) {
            return FD_DUMP_REFUSE(r, "sequence %d has %lld keys, above the largest kv_len", b, (long long)kv_len);
        }
        d->kv_lens[b] = (int32_t)kv_len;
        p->kv_capacity = kv_len > p->kv_capacity ? kv_len : p->kv_capacity;
    }
    p->kv_lens_host = d->kv_lens;
    d->lens_given = x != NULL || d->kv_starts != NULL;
    return FD_OK;
}

static fd_status read_page_table(const fd_dump_reader *r, const fd_dump_extents *k)
{
    fd_dump *d = r->dump;
    const fd_safetensor *x = r->x[FD_DUMP_PAGE_TABLE];
    fd_status status = check_integers(r, FD_DUMP_PAGE_TABLE, 2);
    if (status == FD_OK && x->shape[0] != d->problem.batch) {
        status = FD_DUMP_REFUSE(r, "%s has %lld rows, but q has %d sequences", x->name, (long long)x->shape[0],
                                d->problem.batch);
    }
    if (status == FD_OK && k->rows == 0) {
        status = FD_DUMP_REFUSE(r, "k has pages of 0 slots; give it slots");
    }
    if (status == FD_OK && x->shape[1] > INT32_MAX) {
        status = FD_DUMP_REFUSE(r, "%s has more than 2^31 - 1 pages a sequence", x->name);
    }
    if (status != FD_OK) {
        return status;
    }
    d->pages_each = x->shape[1];
    d->page_table = calloc((size_t)d->problem.batch * (size_t)d->pages_each + 1, sizeof *d->page_table);
    if (d->page_table == NULL) {
        FD_DUMP_REFUSE(r, "no memory for %s", x->name);
        return FD_NO_MEMORY;
    }
    status = read_kv_lens(r, k); /* which says how far the table is read: behind that, it may hold anything */
    for (int32_t b = 0; b < d->problem.batch && status == FD_OK; b++) {
        for (int64_t i = 0; i * k->rows < d->kv_lens[b]; i++) {
            const int64_t page = fd_dump_integer(x, b * d->pages_each + i);
            if (page < 0 || page >= k->blocks) {
                return FD_DUMP_REFUSE(r, "%s[%d, %lld] = %lld, but k has %lld pages", x->name, b, (long long)i,
                                      (long long)page, (long long)k->blocks);
            }
            d->page_table[b * d->pages_each + i] = (int32_t)page;
        }
    }
    d->problem.page_size = (int32_t)k->rows;
    return status;
}

fd_status fd_dump_read_keys(const fd_dump_reader *r, const fd_dump_extents *k)
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
    return batch == d->problem.batch
               ? read_kv_lens(r, k)
               : FD_DUMP_REFUSE(r, "q has %d sequences, k %lld", d->problem.batch, (long long)batch);
}
