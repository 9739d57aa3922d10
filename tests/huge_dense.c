/* huge_dense.c: a problem that is as large as it looks, and whose answer is known bit for bit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "execute.h"
#include "huge.h"

#define SELECTED 8
#define UNSELECTED_K (-2048.0f) /* with one q of 1 and sm_scale = 1/8: logit -256, whose exp is 0 in fp32 */
#define UNSELECTED_V 77.0f
#define CHUNK ((int64_t)1 << 26) /* bytes written at a time */

typedef struct dense {
    const fd_huge_dense_shape *shape;
    fd_stretch q, k, v, o, lse;
    fd_problem problem;
    int64_t key[SELECTED]; /* of query heads h, h + 8, ... */
} dense;

/* Both ends, the middle, and what 32 bits do not reach: the row behind 2^31 elements and its neighbours. */
static void select_keys(dense *d)
{
    const int64_t n = d->shape->keys, limit = ((int64_t)1 << 31) / d->shape->head_dim;
    const int64_t first = limit < n ? limit : n / 3;
    const int64_t keys[SELECTED] = {0, n - 1, first, first + 1, first - 1, n / 2, n - n / 8, n - 2};
    for (int x = 0; x < SELECTED; x++) {
        d->key[x] = keys[x] < 0 ? 0 : keys[x] < n ? keys[x] : n - 1;
    }
}

/* An integer that fp16 and bf16 hold, another one for neighbours in either direction. */
static float value_of(int64_t key, int32_t i)
{
    return (float)((key * 37 + i * 11) % 127 - 63);
}

static void k_row(const dense *d, int64_t key, float *row)
{
    for (int32_t i = 0; i < d->shape->head_dim; i++) {
        row[i] = i < SELECTED ? UNSELECTED_K : 0.0f;
    }
    for (int x = 0; x < SELECTED; x++) {
        row[x] = d->key[x] == key ? 0.0f : row[x];
    }
}

static void v_row(const dense *d, int64_t key, float *row)
{
    bool selected = false;
    for (int x = 0; x < SELECTED; x++) {
        selected = selected || d->key[x] == key;
    }
    for (int32_t i = 0; i < d->shape->head_dim; i++) {
        row[i] = selected ? value_of(key, i) : UNSELECTED_V;
    }
}

typedef void row_of(const dense *d, int64_t index, float *row);

static void q_row(const dense *d, int64_t h, float *row)
{
    for (int32_t i = 0; i < d->shape->head_dim; i++) {
        row[i] = i == h % SELECTED ? 1.0f : 0.0f;
    }
}

static void store_row(const dense *d, row_of *make, int64_t index, unsigned char *to)
{
    float row[1024];
    const fd_tensor x = {.data = to, .dtype = d->shape->dtype};
    make(d, index, row);
    for (int32_t i = 0; i < d->shape->head_dim; i++) {
        fd_store(&x, i, row[i]);
    }
}

/* A chunk of rows that are all alike, again and again; then the selected ones. */
static fd_status fill_cache(const dense *d, const fd_stretch *x, row_of *make, char *why, size_t n)
{
    const int64_t row = d->shape->head_dim * (int64_t)fd_dtype_bytes(d->shape->dtype), total = d->shape->keys * row;
    const int64_t chunk = total < CHUNK / row * row ? total : CHUNK / row * row;
    unsigned char *rows = (unsigned char *)malloc((size_t)chunk);
    if (rows == NULL) {
        snprintf(why, n, "no memory for %lld bytes of rows", (long long)chunk);
        return FD_NO_MEMORY;
    }
    for (int64_t at = 0; at < chunk; at += row) {
        store_row(d, make, -1, rows + at);
    }
    fd_status status = FD_OK;
    for (int64_t at = 0; at < total && status == FD_OK; at += chunk) {
        status = fd_stretch_write(x, (size_t)at, rows, (size_t)(total - at < chunk ? total - at : chunk), why, n);
    }
    for (int s = 0; s < SELECTED && status == FD_OK; s++) {
        store_row(d, make, d->key[s], rows);
        status = fd_stretch_write(x, (size_t)(d->key[s] * row), rows, (size_t)row, why, n);
    }
    free(rows);
    return status;
}

static fd_status fill_q(const dense *d, char *why, size_t n)
{
    const int64_t row = d->shape->head_dim * (int64_t)fd_dtype_bytes(d->shape->dtype);
    unsigned char rows[SELECTED * 1024 * sizeof(float)];
    fd_status status = FD_OK;
    for (int h = 0; h < SELECTED; h++) {
        store_row(d, q_row, h, rows + h * row);
    }
    for (int64_t h = 0; h < d->shape->heads_q && status == FD_OK; h += SELECTED) {
        const int64_t heads = d->shape->heads_q - h < SELECTED ? d->shape->heads_q - h : SELECTED;
        status = fd_stretch_write(&d->q, (size_t)(h * row), rows, (size_t)(heads * row), why, n);
    }
    return status;
}

static fd_tensor tensor_of(const fd_stretch *x, int64_t dim, int32_t dtype)
{
    return (fd_tensor){
        .data = x->base, .stride = {0, dim, dim, 1}, .dtype = dtype, .space = x->device != NULL ? FD_DEVICE : FD_HOST};
}

static fd_status make(dense *d, const fd_device *device, char *why, size_t n)
{
    const fd_huge_dense_shape *s = d->shape;
    const int64_t element = (int64_t)fd_dtype_bytes(s->dtype), cache = s->keys * s->head_dim * element;
    const struct {
        fd_stretch *x;
        int64_t bytes;
    } parts[] = {{&d->q, (int64_t)s->heads_q * s->head_dim * element},
                 {&d->k, cache},
                 {&d->v, cache},
                 {&d->o, (int64_t)s->heads_q * s->head_dim * 4},
                 {&d->lse, (int64_t)s->heads_q * 4}};
    fd_status status = FD_OK;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && status == FD_OK; i++) {
        status = fd_stretch_take(parts[i].x, device, (size_t)parts[i].bytes, why, n);
    }
    if (status != FD_OK) {
        return status;
    }
    d->problem = (fd_problem){.size = sizeof(fd_problem),
                              .batch = 1,
                              .heads_q = s->heads_q,
                              .heads_kv = 1,
                              .q_len = 1,
                              .head_dim = s->head_dim,
                              .head_dim_v = s->head_dim,
                              .kv_capacity = s->keys,
                              .q = tensor_of(&d->q, s->head_dim, s->dtype),
                              .k = tensor_of(&d->k, s->head_dim, s->dtype),
                              .v = tensor_of(&d->v, s->head_dim, s->dtype),
                              .o = tensor_of(&d->o, s->head_dim, FD_F32),
                              .lse = tensor_of(&d->lse, 1, FD_F32),
                              .sm_scale = 0.125f,
                              .window_left = -1,
                              .window_right = -1,
                              .split_size_request = s->split_size};
    d->problem.features = fd_features(&d->problem);
    return FD_OK;
}

/* Every o and lse, bit for bit. */
static fd_status compare(const dense *d, fd_huge_outcome *out, char *why, size_t n)
{
    const int64_t dim = d->shape->head_dim, heads = d->shape->heads_q;
    float *o = (float *)malloc((size_t)(heads * dim) * sizeof *o), *lse = (float *)malloc((size_t)heads * sizeof *lse);
    fd_status status = o != NULL && lse != NULL ? FD_OK : FD_NO_MEMORY;
    if (status != FD_OK) {
        snprintf(why, n, "no memory for %lld rows", (long long)heads);
    }
    status = status == FD_OK ? fd_stretch_read(&d->o, 0, o, (size_t)(heads * dim) * sizeof *o, why, n) : status;
    status = status == FD_OK ? fd_stretch_read(&d->lse, 0, lse, (size_t)heads * sizeof *lse, why, n) : status;
    for (int64_t h = 0; h < heads && status == FD_OK && out->verdict == FD_PASS; h++) {
        const int64_t key = d->key[h % SELECTED];
        int64_t i = 0;
        while (i < dim && o[h * dim + i] == value_of(key, (int32_t)i)) {
            i++;
        }
        if (i < dim || !(lse[h] == 0.0f)) {
            out->verdict = FD_FAIL;
            snprintf(out->reason, sizeof out->reason,
                     "head %lld selects key %lld: o[%lld] is %a instead of %a, lse %a instead of 0", (long long)h,
                     (long long)key, (long long)(i < dim ? i : 0), (double)o[h * dim + (i < dim ? i : 0)],
                     (double)value_of(key, (int32_t)(i < dim ? i : 0)), (double)lse[h]);
        }
    }
    free(o);
    free(lse);
    return status;
}

fd_status fd_huge_dense(const fd_rung *rung, const fd_huge_dense_shape *shape, fd_huge_outcome *out, char *why,
                        size_t n)
{
    dense d = {.shape = shape};
    fd_plan *plan = NULL;
    int64_t workspace = 0;
    *out = (fd_huge_outcome){.verdict = FD_PASS};
    const fd_device *device = fd_device_for(rung, why, n);
    if (shape->head_dim < SELECTED || shape->head_dim > 1024 || shape->keys < 1 ||
        (device == NULL && !fd_runs_on_host(rung))) {
        snprintf(why, n, "huge: head_dim %d or keys %lld is out of range, or there is no device", shape->head_dim,
                 (long long)shape->keys);
        return FD_INVALID;
    }
    select_keys(&d);
    fd_status status = make(&d, device, why, n);
    if (status == FD_OK) {
        status = fd_supports(rung, &d.problem, why, n);
    }
    if (status == FD_OK) {
        status = fill_q(&d, why, n);
        status = status == FD_OK ? fill_cache(&d, &d.k, k_row, why, n) : status;
        status = status == FD_OK ? fill_cache(&d, &d.v, v_row, why, n) : status;
        status = status == FD_OK ? fd_plan_for(rung, &d.problem, &plan, why, n) : status;
        status = status == FD_OK ? fd_huge_run(rung, device, &d.problem, plan, &workspace, why, n) : status;
        if (status == FD_DEVICE_ERROR || status == FD_INVALID) {
            out->verdict = FD_FAIL;
            snprintf(out->reason, sizeof out->reason, "%.200s", why);
            status = FD_OK;
        } else if (status == FD_OK) {
            status = compare(&d, out, why, n);
        }
    }
    if (status == FD_UNSUPPORTED || status == FD_NO_MEMORY) {
        out->verdict = FD_SKIP;
        snprintf(out->reason, sizeof out->reason, "%.200s", why);
        status = FD_OK;
    }
    const int64_t cache = shape->keys * shape->head_dim;
    out->elements = workspace / 4 > cache ? workspace / 4 : cache;
    out->bytes = 2 * cache * (int64_t)fd_dtype_bytes(shape->dtype) + workspace;
    fd_stretch *const stretches[] = {&d.q, &d.k, &d.v, &d.o, &d.lse};
    for (size_t i = 0; i < sizeof stretches / sizeof *stretches; i++) {
        fd_stretch_free(stretches[i]);
    }
    free(plan);
    return status;
}
