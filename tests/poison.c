/* poison.c: what lies in every byte of an instance that is no visible token. */
#include <math.h>

#include "instance.h"

static float poison_value(enum fd_poison poison)
{
    switch (poison) {
    case FD_POISON_INF:
        return INFINITY;
    case FD_POISON_FINITE:
        return 1e4f;
    default:
        return fd_float_from_bits(0xffffffffu); /* a NaN also in each half and each byte */
    }
}

void fd_poison_fill(void *data, size_t bytes, enum fd_poison poison)
{
    unsigned char *to = (unsigned char *)data;
    const float value = poison_value(poison);
    for (size_t i = 0; i < bytes; i += sizeof value) {
        memcpy(to + i, &value, bytes - i < sizeof value ? bytes - i : sizeof value);
    }
}

/* The poison of n elements of any dtype, in that dtype. */
static void poison_elements(const fd_tensor *x, int64_t at, int64_t n, enum fd_poison poison)
{
    const size_t bytes = fd_dtype_bytes(x->dtype);
    const float value = poison_value(poison);
    if (poison == FD_POISON_NAN) {
        memset((unsigned char *)x->data + (size_t)at * bytes, 0xff, (size_t)n * bytes);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        fd_store(x, at + i, value);
    }
}

/* Elements from one row in memory to the next, in whatever order they lie: all strides but 0 are multiples of it. */
static int64_t row_step(const fd_tensor *x)
{
    int64_t step = 0;
    for (int d = 0; d < 3; d++) {
        step = x->stride[d] > 0 && (step == 0 || x->stride[d] < step) ? x->stride[d] : step;
    }
    return step;
}

/* Is the element that lies i behind a row's first one of its own? */
static bool in_row(const fd_tensor *x, int64_t i, int32_t dim)
{
    return i % x->stride[3] == 0 && i / x->stride[3] < dim;
}

/* What lies between the elements of rows of dim, and behind them. */
static void poison_gaps(const fd_tensor *x, int64_t batch, int64_t slots, int64_t heads, int32_t dim,
                        enum fd_poison poison)
{
    const int64_t step = row_step(x);
    for (int64_t b = 0; b < batch; b++) {
        for (int64_t j = 0; j < slots; j++) {
            for (int64_t h = 0; h < heads; h++) {
                const int64_t at = b * x->stride[0] + j * x->stride[1] + h * x->stride[2];
                if (x->stride[3] == 1) { /* the common case, at once */
                    poison_elements(x, at + dim, step - dim, poison);
                    continue;
                }
                for (int64_t i = 0; i < step; i++) {
                    poison_elements(x, at + i, in_row(x, i, dim) ? 0 : 1, poison);
                }
            }
        }
    }
}

static void poison_tails(const fd_instance *x, const fd_tensor *kv, int32_t dim, enum fd_poison poison)
{
    const fd_problem *p = &x->problem;
    for (int32_t b = 0; b < p->batch; b++) {
        const int64_t first = kv->stride[0] > 0 ? x->lens[b] : x->c.kv_len; /* shared: past the longest */
        for (int64_t j = first; j < p->kv_capacity; j++) {
            for (int32_t h = 0; h < p->heads_kv; h++) {
                const int64_t at = fd_kv_at(p, kv, b, j, h);
                const int32_t run = kv->stride[3] == 1 ? dim : 1;
                for (int32_t i = 0; i < dim; i += run) {
                    poison_elements(kv, at + i * kv->stride[3], run, poison);
                }
            }
        }
    }
}

enum fd_poison fd_instance_poison_of(const fd_instance *instance, enum fd_region region, enum fd_poison poison)
{
    return instance->poisoned == FD_REGION_ALL || instance->poisoned == (int32_t)region ? poison : FD_POISON_NAN;
}

void fd_instance_poison(fd_instance *instance, enum fd_poison poison)
{
    const fd_problem *p = &instance->problem;
    const enum fd_poison of_q = fd_instance_poison_of(instance, FD_REGION_Q, poison),
                         of_k = fd_instance_poison_of(instance, FD_REGION_K, poison),
                         of_v = fd_instance_poison_of(instance, FD_REGION_V, poison),
                         of_outputs = fd_instance_poison_of(instance, FD_REGION_OUTPUTS, poison);
    poison_gaps(&p->q, p->batch, p->q_len, p->heads_q, p->head_dim, of_q);
    poison_gaps(&p->k, p->k.stride[0] > 0 ? p->batch : 1, p->kv_capacity, p->heads_kv, p->head_dim, of_k);
    poison_gaps(&p->v, p->v.stride[0] > 0 ? p->batch : 1, p->kv_capacity, p->heads_kv, p->head_dim_v, of_v);
    poison_tails(instance, &p->k, p->head_dim, of_k);
    poison_tails(instance, &p->v, p->head_dim_v, of_v);
    poison_elements(&p->o, 0, (int64_t)(instance->o.bytes / fd_dtype_bytes(p->o.dtype)), of_outputs);
    poison_elements(&p->lse, 0, (int64_t)(instance->lse.bytes / sizeof(float)), of_outputs);
}

/* Is every element of x that belongs to no row still what the poison put there? rows: of dim elements. */
static bool gaps_intact(const fd_tensor *x, const fd_buffer *buffer, int64_t rows, int32_t dim, enum fd_poison poison)
{
    const size_t bytes = fd_dtype_bytes(x->dtype);
    const int64_t step = row_step(x), first = x->stride[3] == 1 ? dim : 0;
    unsigned char expected[8];
    fd_tensor one = *x;
    one.data = expected;
    poison_elements(&one, 0, 1, poison);
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t i = first; i < step; i++) {
            if (!in_row(x, i, dim) && memcmp(buffer->data + (size_t)(row * step + i) * bytes, expected, bytes) != 0) {
                return false;
            }
        }
    }
    return true;
}

bool fd_instance_outputs_intact(const fd_instance *instance, enum fd_poison poison)
{
    const fd_problem *p = &instance->problem;
    const enum fd_poison put = fd_instance_poison_of(instance, FD_REGION_OUTPUTS, poison);
    const int64_t rows = fd_row_count(p);
    return fd_buffer_intact(&instance->o) && fd_buffer_intact(&instance->lse) &&
           gaps_intact(&p->o, &instance->o, rows, p->head_dim_v, put) &&
           gaps_intact(&p->lse, &instance->lse, rows, 1, put);
}

/* Four independent lanes, so that a cache of hundreds of megabytes is summed at the speed of memory. */
