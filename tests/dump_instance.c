/* dump_instance.c: the rows of a dump, wherever they are in the file, as an instance: a dense problem with padding, guards
 * and poison, on which rungs and mutants can run. */
#include <math.h>
#include <stdlib.h>

#include "dump.h"
#include "machine.h"

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

/* A row of q, k or v, by its place in the file; false, with a line in why, if an element is not finite. */
static bool copy_row(const fd_dump *d, char name, const int64_t place[3], const fd_tensor *from, int64_t from_at,
                     const fd_tensor *to, int64_t to_at, char *why, size_t n)
{
    const size_t bytes = fd_dtype_bytes(from->dtype);
    const int32_t dim = name == 'v' ? d->problem.head_dim_v : d->problem.head_dim;
    memcpy((unsigned char *)to->data + (size_t)to_at * bytes,
           (const unsigned char *)from->data + (size_t)from_at * bytes, (size_t)dim * bytes);
    for (int32_t i = 0; i < dim; i++) {
        const float x = fd_load(from, from_at + i);
        if (!isfinite(x)) {
            fd_safetensors_refuse(
                d->path, why, n,
                "%c[%lld, %lld, %lld, %d] (sequence, row, head, element) is %g; visible inputs must be "
                "finite",
                name, (long long)place[0], (long long)place[1], (long long)place[2], i, (double)x);
            return false;
        }
    }
    return true;
}

static fd_status fill(void *from, const fd_problem *p, char *why, size_t n)
{
    const fd_dump_part *part = from;
    const fd_dump *d = part->dump;
    const fd_tensor *q = &d->problem.q, *k = &d->problem.k, *v = &d->problem.v;
    bool good = true;
    for (int32_t b = 0; b < part->count && good; b++) {
        const int32_t s = part->sequences[b];
        for (int32_t t = 0; t < p->q_len && good; t++) {
            const int64_t row = t + (d->q_starts != NULL ? d->q_starts[s] : 0);
            for (int32_t h = 0; h < p->heads_q && good; h++) {
                const int64_t place[3] = {s, t, h}, at = s * q->stride[0] + row * q->stride[1] + h * q->stride[2];
                good = copy_row(d, 'q', place, q, at, &p->q, fd_row_at(&p->q, b, t, h), why, n);
            }
        }
        for (int64_t j = 0; j < d->kv_lens[s] && good; j++) {
            for (int32_t h = 0; h < p->heads_kv && good; h++) {
                const int64_t place[3] = {s, j, h};
                good = copy_row(d, 'k', place, k, key_at(d, k, s, j, h), &p->k, fd_kv_at(p, &p->k, b, j, h), why, n) &&
                       copy_row(d, 'v', place, v, key_at(d, v, s, j, h), &p->v, fd_kv_at(p, &p->v, b, j, h), why, n);
            }
        }
    }
    return good ? FD_OK : FD_INVALID;
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
