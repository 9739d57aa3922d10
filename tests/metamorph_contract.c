#include "metamorph_contract.h"

#include <stdio.h>

#include "metamorph_copy.h"

/* ---- Lengths that plan() does not know --------------------------------------------------------- */

#define LONGER 70 /* keys: another split, or more, with every split size but the largest */

int32_t fd_bounds_variants(const fd_instance *x)
{
    (void)x;
    return 2;
}

fd_status fd_loosen_bounds(const fd_instance *x, int32_t variant, fd_instance *y, char *why, size_t n)
{
    int32_t bounds[FD_CASE_BATCH_MAX];
    for (int32_t b = 0; b < x->c.batch; b++) {
        bounds[b] = x->c.kv_len + LONGER;
    }
    const fd_status status = fd_reshape(x, x->c.batch, bounds, y, why, n);
    for (int32_t b = 0; b < x->c.batch && status == FD_OK; b++) {
        fd_copy_sequence(y, b, x, b);
        ((int32_t *)y->problem.kv_lens.data)[b] = x->c.kv_lens[b]; /* run() reads these; plan() keeps the bounds */
        y->lens[b] = x->c.kv_lens[b];                              /* and behind them there is poison */
    }
    if (status == FD_OK && variant == 1) {
        y->problem.kv_lens_host = NULL;
    }
    return status;
}

static int32_t longest(const fd_instance *x)
{
    int32_t b = 0;
    while (x->c.kv_lens[b] < x->c.kv_len) {
        b++;
    }
    return b;
}

int32_t fd_full_variants(const fd_instance *x)
{
    return x->c.kv_len > 0 ? 1 : 0;
}

fd_status fd_fill_cache(const fd_instance *x, int32_t variant, fd_instance *y, char *why, size_t n)
{
    (void)variant;
    const fd_status status = fd_reshape(x, 1, &x->c.kv_len, y, why, n);
    if (status == FD_OK) {
        fd_copy_sequence(y, 0, x, longest(x));
        y->problem.kv_capacity = x->c.kv_len;
        y->problem.kv_lens.data = NULL;
        y->problem.kv_lens_host = NULL;
        y->problem.features = fd_features(&y->problem);
    }
    return status;
}

bool fd_full_image(const fd_instance *x, int32_t variant, int32_t b, int32_t t, int32_t h, fd_image *image)
{
    (void)variant, (void)t, (void)h;
    image->b = 0;
    return b == longest(x);
}

/* ---- Tensors that lie otherwise ---------------------------------------------------------------- */

enum { ALIGNED_ROWS, ODD_ROWS, GAPS, LAYOUTS };

int32_t fd_layout_variants(const fd_instance *x)
{
    (void)x;
    return LAYOUTS;
}

/* New memory for one tensor. order: its outer dimensions from the outermost in. */
static fd_status lay(fd_tensor *x, fd_buffer *buffer, const int64_t extent[3], const int order[3], int32_t dim,
                     int32_t layout, size_t past)
{
    const int64_t inner = layout == GAPS ? 2 : 1;
    int64_t step = layout == ALIGNED_ROWS ? (dim + 15) / 8 * 8 : (inner * dim + 9) | 1;
    fd_buffer fresh;
    x->stride[3] = inner;
    for (int d = 2; d >= 0; d--) {
        x->stride[order[d]] = step;
        step *= extent[order[d]];
    }
    if (fd_buffer_alloc_past(&fresh, (size_t)step * fd_dtype_bytes(x->dtype), past) != FD_OK) {
        return FD_NO_MEMORY;
    }
    fd_buffer_free(buffer);
    *buffer = fresh;
    x->data = fresh.data;
    fd_poison_fill(fresh.data, fresh.bytes, FD_POISON_NAN);
    return FD_OK;
}

/* Every second element, the others 0: who takes them for neighbours sees empty sequences. The bounds come first, as ever. */
static fd_status spread_lens(fd_instance *y)
{
    const size_t batch = (size_t)y->c.batch;
    fd_buffer fresh;
    if (fd_buffer_alloc_past(&fresh, 3 * batch * sizeof(int32_t), FD_PAST_ELEMENTS) != FD_OK) {
        return FD_NO_MEMORY;
    }
    int32_t *lens = (int32_t *)(void *)fresh.data;
    memset(lens, 0, fresh.bytes);
    for (size_t b = 0; b < batch; b++) {
        lens[b] = lens[batch + 2 * b] = y->lens[b];
    }
    fd_buffer_free(&y->kv_lens);
    y->kv_lens = fresh;
    y->problem.kv_lens_host = lens;
    y->problem.kv_lens.data = lens + batch;
    y->problem.kv_lens.stride[0] = 2;
    return FD_OK;
}

fd_status fd_lay_otherwise(const fd_instance *x, int32_t variant, fd_instance *y, char *why, size_t n)
{
    fd_status status = fd_reshape(x, x->c.batch, x->c.kv_lens, y, why, n);
    if (status != FD_OK) {
        return status;
    }
    fd_problem *p = &y->problem;
    const int64_t rows[3] = {p->batch, p->q_len, p->heads_q}, slots[3] = {p->batch, p->kv_capacity, p->heads_kv};
    /* Heads outermost; sequences innermost; [slot, batch, head]; and for lse the heads before the query rows. */
    const struct {
        fd_tensor *tensor;
        fd_buffer *buffer;
        const int64_t *extent;
        int order[3];
        int32_t dim;
    } parts[] = {{&p->q, &y->q, rows, {2, 0, 1}, p->head_dim},
                 {&p->k, &y->k, slots, {2, 1, 0}, p->head_dim},
                 {&p->v, &y->v, slots, {1, 0, 2}, p->head_dim_v},
                 {&p->o, &y->o, rows, {1, 2, 0}, p->head_dim_v},
                 {&p->lse, &y->lse, rows, {0, 2, 1}, 1}};
    for (size_t t = 0; t < sizeof parts / sizeof *parts && status == FD_OK; t++) {
        const bool is_lse = parts[t].tensor == &p->lse;
        status = lay(parts[t].tensor, parts[t].buffer, parts[t].extent, parts[t].order, parts[t].dim,
                     is_lse ? ODD_ROWS : variant, is_lse ? FD_PAST_ELEMENTS : FD_PAST_TENSOR);
    }
    status = status == FD_OK ? spread_lens(y) : status;
    if (status != FD_OK) {
        snprintf(why, n, "no memory for tensors of another layout");
        fd_instance_free(y);
        return status;
    }
    for (int32_t b = 0; b < p->batch; b++) {
        fd_copy_sequence(y, b, x, b);
    }
    p->features = fd_features(p);
    fd_instance_poison(y, FD_POISON_NAN);
    return FD_OK;
}

int32_t fd_broadcast_variants(const fd_instance *x)
{
    return x->c.heads_kv > 1 ? 1 : 0;
}

fd_status fd_broadcast_heads(const fd_instance *x, int32_t variant, fd_instance *y, char *why, size_t n)
{
    (void)variant;
    const fd_status status = fd_clone(x, y, why, n);
    for (int32_t b = 0; b < x->c.batch && status == FD_OK; b++) {
        for (int32_t h = 0; h < x->c.heads_q; h++) {
            fd_copy_q(y, b, h, x, b, h % fd_group(&x->problem));
        }
    }
    y->problem.k.stride[2] = 0;
    y->problem.v.stride[2] = 0;
    return status;
}

/* Group 0, found where the last group is. */
bool fd_broadcast_image(const fd_instance *x, int32_t variant, int32_t b, int32_t t, int32_t h, fd_image *image)
{
    (void)variant, (void)b, (void)t;
    const int32_t group = fd_group(&x->problem);
    image->h = (x->c.heads_kv - 1) * group + h;
    return h < group;
}
