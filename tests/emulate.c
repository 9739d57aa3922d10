#include "emulate.h"

#include <stdio.h>
#include <stdlib.h>

/* Product of extents and an element's bytes. The instance has the same tensor with padding, and checked its size. */
static size_t bytes_of(const int64_t extent[4], int32_t dtype)
{
    return (size_t)(extent[0] * extent[1] * extent[2] * extent[3]) * fd_dtype_bytes(dtype);
}

/* From one row to the next in memory, padding included. */
static int64_t row_step(const fd_tensor *x)
{
    return x->stride[1] < x->stride[2] ? x->stride[1] : x->stride[2];
}

static size_t allocated_bytes(const fd_tensor *x, const int64_t e[4])
{
    const int64_t padded[4] = {e[0], e[1], e[2], row_step(x)};
    return bytes_of(padded, x->dtype);
}

/* The tensor of those extents, in device memory: dense, or with the padding behind its rows that `from` has; middle two
 * exchanged in memory if they are in `from`. */
static fd_status allocate(const fd_tensor *from, const int64_t e[4], bool padded, fd_tensor *to, char *why, size_t n)
{
    const bool swapped = from->stride[1] < from->stride[2];
    const int64_t row = padded && row_step(from) > e[3] ? row_step(from) : e[3];
    *to = (fd_tensor){.stride = {e[1] * e[2] * row, swapped ? row : e[2] * row, swapped ? e[1] * row : row, 1},
                      .dtype = from->dtype,
                      .space = FD_DEVICE};
    return fd_device_emu()->alloc(&to->data, allocated_bytes(to, e), why, n);
}

static fd_status copy_rows(const fd_tensor *from, const int64_t e[4], const fd_tensor *to, char *why, size_t n)
{
    const size_t bytes = allocated_bytes(to, e), element = fd_dtype_bytes(from->dtype);
    unsigned char *staged = (unsigned char *)malloc(bytes > 0 ? bytes : 1);
    if (staged == NULL) {
        snprintf(why, n, "no memory for a copy of %zu bytes", bytes);
        return FD_NO_MEMORY;
    }
    for (int64_t b = 0; b < e[0]; b++) {
        for (int64_t s = 0; s < e[1]; s++) {
            for (int64_t h = 0; h < e[2]; h++) {
                const int64_t at = b * from->stride[0] + s * from->stride[1] + h * from->stride[2];
                memcpy(staged + (size_t)(b * to->stride[0] + s * to->stride[1] + h * to->stride[2]) * element,
                       (const unsigned char *)from->data + (size_t)at * element, (size_t)e[3] * element);
            }
        }
    }
    const fd_status status = fd_device_emu()->write(to->data, staged, bytes, why, n);
    free(staged);
    return status;
}

fd_status fd_emulation_create(fd_emulation *x, const fd_instance *instance, bool padded, char *why, size_t n)
{
    const fd_problem *from = &instance->problem;
    fd_problem *p = &x->problem;
    *x = (fd_emulation){.problem = *from};
    if (!padded) {
        p->kv_capacity = instance->c.kv_len > 0 ? instance->c.kv_len : 1;
    }
    p->q.data = p->k.data = p->v.data = p->o.data = p->lse.data = p->kv_lens.data = NULL;
    const int64_t kv_batch = from->k.stride[0] > 0 ? p->batch : 1; /* one cache for all sequences */
    const struct {
        const fd_tensor *from;
        fd_tensor *to;
        bool input;
        int64_t extent[4];
    } parts[] = {
        {&from->q, &p->q, true, {p->batch, 1, p->heads_q, p->head_dim}},
        {&from->k, &p->k, true, {kv_batch, p->kv_capacity, p->heads_kv, p->head_dim}},
        {&from->v, &p->v, true, {kv_batch, p->kv_capacity, p->heads_kv, p->head_dim_v}},
        {&from->kv_lens, &p->kv_lens, true, {p->batch, 1, 1, 1}},
        {&from->o, &p->o, false, {p->batch, 1, p->heads_q, p->head_dim_v}},
        {&from->lse, &p->lse, false, {p->batch, 1, p->heads_q, 1}},
    };
    fd_status status = FD_OK;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && status == FD_OK; i++) {
        status = allocate(parts[i].from, parts[i].extent, padded, parts[i].to, why, n);
        if (status == FD_OK && parts[i].input) {
            status = copy_rows(parts[i].from, parts[i].extent, parts[i].to, why, n);
        }
    }
    if (from->k.stride[0] == 0) {
        p->k.stride[0] = p->v.stride[0] = 0;
    }
    x->o_bytes = bytes_of(parts[4].extent, p->o.dtype);
    x->lse_bytes = bytes_of(parts[5].extent, FD_F32);
    p->features = fd_features(p);
    if (status != FD_OK) {
        fd_emulation_free(x);
    }
    return status;
}

void fd_emulation_free(fd_emulation *x)
{
    fd_problem *p = &x->problem;
    void *const owned[] = {p->q.data, p->k.data, p->v.data, p->kv_lens.data, p->o.data, p->lse.data};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) {
        fd_device_emu()->release(owned[i]);
    }
    *x = (fd_emulation){.o_bytes = 0};
}

/* o or lse, without the padding between rows: [batch, heads_q, dim] <- device memory, or poison -> device memory. */
enum direction { READ, POISON };

static fd_status move_rows(enum direction direction, const fd_problem *p, const fd_tensor *x, int32_t dim, void *dense,
                           char *why, size_t n)
{
    const fd_device *device = fd_device_emu();
    const size_t element = fd_dtype_bytes(x->dtype), row_bytes = (size_t)dim * element;
    unsigned char *row = (unsigned char *)dense;
    fd_status status = FD_OK;
    for (int32_t b = 0; b < p->batch && status == FD_OK; b++) {
        for (int32_t h = 0; h < p->heads_q && status == FD_OK; h++, row += row_bytes) {
            unsigned char *there = (unsigned char *)x->data + (size_t)fd_row_at(x, b, 0, h) * element;
            if (direction == POISON) {
                fd_poison_fill(row, row_bytes, FD_POISON_NAN);
            }
            status = direction == POISON ? device->write(there, row, row_bytes, why, n)
                                         : device->read(row, there, row_bytes, why, n);
        }
    }
    return status;
}

static fd_status move_results(enum direction direction, const fd_problem *p, void *o, void *lse, char *why, size_t n)
{
    const fd_status status = move_rows(direction, p, &p->o, p->head_dim_v, o, why, n);
    return status == FD_OK ? move_rows(direction, p, &p->lse, 1, lse, why, n) : status;
}

static fd_status plan_for(const fd_emulation *x, const fd_rung *rung, fd_plan **plan, char *why, size_t n)
{
    const fd_machine *machine = &fd_device_emu()->machine;
    const size_t bytes = fd_plan_bytes(rung, &x->problem, machine);
    *plan = NULL;
    if (bytes == 0) {
        return FD_OK;
    }
    *plan = (fd_plan *)calloc(1, bytes < sizeof(fd_plan) ? sizeof(fd_plan) : bytes);
    if (*plan == NULL) {
        snprintf(why, n, "no memory for a plan of %zu bytes", bytes);
        return FD_NO_MEMORY;
    }
    const fd_status status = fd_make_plan(rung, &x->problem, machine, *plan);
    if (status != FD_OK) {
        snprintf(why, n, "plan() returned %s", fd_status_name(status));
    }
    return status;
}

fd_status fd_emulation_run(const fd_emulation *x, const fd_rung *rung, void *o, void *lse, int32_t *num_splits,
                           char *why, size_t n)
{
    const fd_device *device = fd_device_emu();
    const fd_problem *p = &x->problem;
    fd_plan *plan = NULL;
    void *workspace = NULL, *plan_device = NULL, *staged = NULL;
    fd_status status = fd_supports(rung, p, why, n);
    if (status == FD_OK) {
        status = plan_for(x, rung, &plan, why, n);
    }
    if (status != FD_OK) {
        goto done;
    }
    const size_t bytes = fd_workspace_bytes(rung, p, plan);
    *num_splits = plan != NULL ? plan->num_splits : 1;
    staged = malloc(bytes > 0 ? bytes : 1);
    if (staged == NULL) {
        snprintf(why, n, "no memory for a workspace of %zu bytes", bytes);
        status = FD_NO_MEMORY;
        goto done;
    }
    const struct {
        void **data;
        size_t bytes;
    } fresh[] = {{&workspace, bytes}, {&plan_device, plan != NULL ? plan->size : 0}};
    for (size_t i = 0; i < 2 && status == FD_OK; i++) {
        status = device->alloc(fresh[i].data, fresh[i].bytes, why, n);
    }
    if (status == FD_OK && plan != NULL) {
        status = device->write(plan_device, plan, plan->size, why, n);
    }
    if (status == FD_OK) {
        fd_poison_fill(staged, bytes, FD_POISON_NAN);
        status = device->write(workspace, staged, bytes, why, n);
    }
    status = status == FD_OK ? move_results(POISON, p, o, lse, why, n) : status;
    if (status == FD_OK) {
        const fd_context context = {
            .size = sizeof context, .plan = plan, .plan_device = plan_device, .workspace = workspace};
        status = device->run(rung, p, &context, why, n);
    }
    status = status == FD_OK ? move_results(READ, p, o, lse, why, n) : status;

done:
    device->release(workspace);
    device->release(plan_device);
    free(staged);
    free(plan);
    return status;
}
