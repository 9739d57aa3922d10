/* instance.c: a case in memory: layouts, generation, checksums. */
#include "instance.h"

#include <stdio.h>
#include <stdlib.h>

#include "gen.h"

#define PADDING 8  /* elements behind the rows of q and v; o has twice as many. A multiple of a 16-byte vector */
#define KV_SLACK 5 /* slots of k and v behind the longest cache: no multiple of a tile, page or vector */

static uint64_t checksum(uint64_t sum, const fd_buffer *buffer)
{
    const unsigned char *at = buffer->data;
    uint64_t lane[4] = {sum, 1, 2, 3}, word[4];
    size_t left = buffer->bytes;
    for (; left >= sizeof word; left -= sizeof word, at += sizeof word) {
        memcpy(word, at, sizeof word);
        for (int x = 0; x < 4; x++) {
            lane[x] = (lane[x] ^ word[x]) * 0x9e3779b97f4a7c15u;
        }
    }
    for (; left > 0; left--, at++) {
        lane[0] = (lane[0] ^ *at) * 0x9e3779b97f4a7c15u;
    }
    return lane[0] ^ lane[1] << 1 ^ lane[2] << 2 ^ lane[3] << 3;
}

uint64_t fd_instance_checksum(const fd_instance *instance)
{
    const fd_buffer *const inputs[] = {&instance->q, &instance->k, &instance->v, &instance->kv_lens};
    uint64_t sum = 0;
    for (size_t x = 0; x < sizeof inputs / sizeof *inputs; x++) {
        sum = checksum(sum, inputs[x]) + (fd_buffer_intact(inputs[x]) ? 1u : 0u);
    }
    return sum;
}

uint64_t fd_instance_first_checksum(fd_instance *instance, enum fd_poison poison)
{
    if (instance->poisoned != FD_REGION_ALL) {
        return fd_instance_checksum(instance);
    }
    if (!instance->summed[poison]) {
        instance->sums[poison] = fd_instance_checksum(instance);
        instance->summed[poison] = true;
    }
    return instance->sums[poison];
}

static fd_status fill(fd_instance *x, char *why, size_t n)
{
    return x->filler.fill != NULL ? x->filler.fill(x->filler.from, &x->problem, why, n)
                                  : fd_gen_fill(&x->c, &x->problem, why, n);
}

fd_status fd_instance_restore(fd_instance *instance, char *why, size_t n)
{
    const fd_case *c = &instance->c;
    int32_t *kv_lens = (int32_t *)(void *)instance->kv_lens.data;
    fd_buffer *const inputs[] = {&instance->q, &instance->k, &instance->v, &instance->kv_lens};
    for (size_t x = 0; x < sizeof inputs / sizeof *inputs; x++) {
        fd_buffer_guard(inputs[x]);
    }
    memcpy(kv_lens, instance->lens, (size_t)c->batch * sizeof *kv_lens);
    memcpy(kv_lens + c->batch, instance->lens, (size_t)c->batch * sizeof *kv_lens);
    const fd_status status = fill(instance, why, n);
    fd_instance_poison(instance, FD_POISON_NAN);
    memset(instance->summed, 0, sizeof instance->summed);
    return status;
}

/* ---- Shapes ---- */

/* Product of four extents and an element's bytes; false above INT64_MAX. */
static bool size_of(const int64_t extent[4], int32_t dtype, int64_t *bytes)
{
    int64_t product = (int64_t)fd_dtype_bytes(dtype);
    for (int x = 0; x < 4; x++) {
        if (extent[x] < 0 || (extent[x] > 0 && product > INT64_MAX / extent[x])) {
            return false;
        }
        product *= extent[x];
    }
    *bytes = product;
    return true;
}

typedef struct part { /* one tensor of an instance */
    const char *name;
    fd_tensor *tensor;
    fd_buffer *buffer;
    int32_t dtype;
    bool swapped;    /* memory order is that of the extents with the middle two exchanged */
    int64_t padding; /* elements behind each row, which belong to nobody */
    size_t past;     /* bytes of data past a multiple of 256 */
    int64_t extent[4];
} part;

static fd_status create_part(const part *x, bool outline, char *why, size_t n)
{
    const int64_t *e = x->extent, extent[4] = {e[0], e[1], e[2], e[3] + x->padding};
    int64_t bytes = 0;
    size_of(extent, x->dtype, &bytes);
    if (outline) {
        x->buffer->data = (unsigned char *)(uintptr_t)FD_GUARD_BYTES;
    } else if (fd_buffer_alloc_past(x->buffer, (size_t)bytes, x->past) != FD_OK) {
        snprintf(why, n, "no memory for %s, %.1f MiB; make the case smaller", x->name, (double)bytes / 1048576.0);
        return FD_NO_MEMORY;
    }
    *x->tensor =
        (fd_tensor){.data = x->buffer->data,
                    .stride = {extent[1] * extent[2] * extent[3], x->swapped ? extent[3] : extent[2] * extent[3],
                               x->swapped ? extent[1] * extent[3] : extent[3], 1},
                    .dtype = x->dtype,
                    .space = FD_HOST};
    return FD_OK;
}

static fd_status create_tensors(fd_instance *x, bool outline, char *why, size_t n)
{
    const fd_case *c = &x->c;
    fd_problem *p = &x->problem;
    const bool swapped = c->layout == FD_LAYOUT_BHSD, shared = strcmp(c->family, "real") == 0;
    const int64_t batch_kv = shared ? 1 : c->batch; /* real: one text, which every row of the batch reads */
    /* kv_lens begins behind the host's bounds: no multiple of 8 there, either. */
    const size_t past = FD_PAST_TENSOR, past_lens = c->batch % 2 == 0 ? FD_PAST_ELEMENTS : 0;
    const part parts[] = {
        {"q", &p->q, &x->q, c->dtype_q, false, PADDING, past, {c->batch, c->q_len, c->heads_q, c->head_dim}},
        {"k", &p->k, &x->k, c->dtype_kv, swapped, 0, past, {batch_kv, p->kv_capacity, c->heads_kv, c->head_dim}},
        {"v",
         &p->v,
         &x->v,
         c->dtype_kv,
         swapped,
         PADDING,
         past,
         {batch_kv, p->kv_capacity, c->heads_kv, c->head_dim_v}},
        {"o", &p->o, &x->o, c->dtype_o, false, 2 * PADDING, past, {c->batch, c->q_len, c->heads_q, c->head_dim_v}},
        {"lse", &p->lse, &x->lse, FD_F32, false, 1, FD_PAST_ELEMENTS, {c->batch, c->q_len, c->heads_q, 1}},
        {"kv_lens", &p->kv_lens, &x->kv_lens, FD_I32, false, 0, past_lens, {2, c->batch, 1, 1}},
    };
    const size_t num_parts = sizeof parts / sizeof *parts;
    for (size_t t = 0; t < num_parts; t++) { /* all sizes, before the first byte is allocated */
        const int64_t *extent = parts[t].extent;
        int64_t bytes;
        const int64_t padded[4] = {extent[0], extent[1], extent[2], extent[3] + parts[t].padding};
        if (!size_of(padded, parts[t].dtype, &bytes) || (uint64_t)bytes > SIZE_MAX) {
            snprintf(why, n,
                     "%s [%lld, %lld, %lld, %lld] has more bytes than an address can count; "
                     "make the case smaller",
                     parts[t].name, (long long)extent[0], (long long)extent[1], (long long)extent[2],
                     (long long)extent[3]);
            return FD_INVALID;
        }
    }
    for (size_t t = 0; t < num_parts; t++) {
        const fd_status status = create_part(&parts[t], outline, why, n);
        if (status != FD_OK) {
            return status;
        }
    }
    /* The host's bounds, then the tensor, whose end meets the guard. Not x->c.kv_lens: an instance may be moved. */
    int32_t *kv_lens = (int32_t *)(void *)x->kv_lens.data;
    if (!outline) {
        memcpy(kv_lens, x->lens, (size_t)c->batch * sizeof *kv_lens);
        memcpy(kv_lens + c->batch, x->lens, (size_t)c->batch * sizeof *kv_lens);
    }
    p->kv_lens_host = outline ? x->lens : kv_lens;
    p->kv_lens =
        (fd_tensor){.data = outline ? x->lens : kv_lens + c->batch, .stride = {1}, .dtype = FD_I32, .space = FD_HOST};
    if (shared) {
        p->k.stride[0] = 0;
        p->v.stride[0] = 0;
    }
    return FD_OK;
}

static fd_status check_case(const fd_case *c, char *why, size_t n)
{
    bool fits = c->batch >= 1 && c->batch <= FD_CASE_BATCH_MAX && c->heads_kv >= 1 && c->heads_q >= c->heads_kv &&
                c->heads_q % c->heads_kv == 0 && c->head_dim >= 1 && c->head_dim_v >= 1 && c->split_size >= 0 &&
                c->q_len >= 1 && c->ahead >= 0;
    for (int32_t b = 0; fits && b < c->batch; b++) {
        fits = c->kv_lens[b] >= 0 && c->kv_lens[b] <= c->kv_len;
    }
    if (!fits) {
        snprintf(why, n, "case %.95s has a size below 1, heads that do not divide or a kv_lens above kv_len", c->name);
        return FD_INVALID;
    }
    return fd_gen_check(c, why, n);
}

/* From instance->c, lens to be copied, filler, and a problem whose tensors are yet to come. */
static fd_status create(fd_instance *instance, const int32_t *lens, bool outline, char *why, size_t n)
{
    fd_problem *p = &instance->problem;
    const size_t bytes = (size_t)instance->c.batch * sizeof *lens;
    instance->lens = malloc(bytes);
    if (instance->lens == NULL) {
        snprintf(why, n, "no memory for the lengths of %d sequences", instance->c.batch);
        return FD_NO_MEMORY;
    }
    memcpy(instance->lens, lens, bytes);
    fd_status status = create_tensors(instance, outline, why, n);
    if (status == FD_OK) {
        p->features = fd_features(p);
        status = fd_check_problem(p, why, n);
    }
    if (status == FD_OK && !outline) {
        status = fill(instance, why, n);
    }
    if (status != FD_OK) {
        fd_instance_free(instance);
        return status;
    }
    if (!outline) {
        fd_instance_poison(instance, FD_POISON_NAN);
    }
    return FD_OK;
}

/* outline: the tensors are nowhere, and nothing is generated. */
static fd_status create_case(fd_instance *instance, const fd_case *c, bool outline, char *why, size_t n)
{
    fd_case copy = *c; /* c may be instance->c */
    copy.q_len = copy.q_len == 0 ? 1 : copy.q_len;
    memset(instance, 0, sizeof *instance);
    instance->c = copy;
    const fd_status status = check_case(&copy, why, n);
    if (status != FD_OK) {
        return status;
    }
    instance->problem = (fd_problem){.size = sizeof(fd_problem),
                                     .batch = copy.batch,
                                     .heads_q = copy.heads_q,
                                     .heads_kv = copy.heads_kv,
                                     .q_len = copy.q_len,
                                     .head_dim = copy.head_dim,
                                     .head_dim_v = copy.head_dim_v,
                                     .kv_capacity = (int64_t)copy.kv_len + KV_SLACK,
                                     .sm_scale = fd_gen_sm_scale(&copy),
                                     .window_left = -1,
                                     .window_right = copy.causal ? copy.ahead : -1,
                                     .split_size_request = copy.split_size};
    return create(instance, copy.kv_lens, outline, why, n);
}

fd_status fd_instance_create(fd_instance *instance, const fd_case *c, char *why, size_t n)
{
    return create_case(instance, c, false, why, n);
}

fd_status fd_instance_outline(fd_instance *instance, const fd_case *c, char *why, size_t n)
{
    return create_case(instance, c, true, why, n);
}

fd_status fd_instance_create_from(fd_instance *instance, const fd_problem *shape, const char *name, fd_filler filler,
                                  char *why, size_t n)
{
    fd_case c = {.dtype_q = shape->q.dtype,
                 .dtype_kv = shape->k.dtype,
                 .dtype_o = shape->o.dtype,
                 .batch = shape->batch,
                 .heads_q = shape->heads_q,
                 .heads_kv = shape->heads_kv,
                 .head_dim = shape->head_dim,
                 .head_dim_v = shape->head_dim_v,
                 .q_len = shape->q_len,
                 .causal = shape->window_right >= 0,
                 .ahead = shape->window_right >= 0 ? shape->window_right : 0};
    for (int32_t b = 0; b < shape->batch; b++) {
        c.kv_len = shape->kv_lens_host[b] > c.kv_len ? shape->kv_lens_host[b] : c.kv_len;
    }
    snprintf(c.name, sizeof c.name, "%s", name);
    *instance = (fd_instance){.c = c, .problem = *shape, .filler = filler};
    instance->problem.kv_capacity = (int64_t)c.kv_len + KV_SLACK;
    instance->problem.page_size = 0;
    instance->problem.num_pages = 0;
    return create(instance, shape->kv_lens_host, false, why, n);
}

void fd_instance_free(fd_instance *instance)
{
    fd_buffer *const buffers[] = {&instance->q, &instance->k,   &instance->v,
                                  &instance->o, &instance->lse, &instance->kv_lens};
    for (size_t x = 0; x < sizeof buffers / sizeof *buffers; x++) {
        fd_buffer_free(buffers[x]);
    }
    free(instance->lens);
    instance->lens = NULL;
    instance->problem = (fd_problem){.size = 0};
}
