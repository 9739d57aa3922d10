#include "emulate.h"

#include <stdio.h>
#include <stdlib.h>

/* Product of extents and an element's bytes. The instance has the same tensor with padding, and has checked its size. */
static size_t bytes_of(const int64_t extent[4], int32_t dtype)
{
    return (size_t)(extent[0] * extent[1] * extent[2] * extent[3]) * fd_dtype_bytes(dtype);
}

/* The dense tensor of those extents, in device memory; middle two exchanged in memory if they are in `from`. */
static fd_status allocate(const fd_tensor *from, const int64_t e[4], fd_tensor *to, char *why, size_t n)
{
    const bool swapped = from->stride[1] < from->stride[2];
    *to = (fd_tensor){.stride = {e[1] * e[2] * e[3], swapped ? e[3] : e[2] * e[3], swapped ? e[1] * e[3] : e[3], 1},
                      .dtype = from->dtype,
                      .space = FD_DEVICE};
    return fd_device_emu()->alloc(&to->data, bytes_of(e, from->dtype), why, n);
}

static fd_status copy_rows(const fd_tensor *from, const int64_t e[4], const fd_tensor *to, char *why, size_t n)
{
    const size_t bytes = bytes_of(e, from->dtype), element = fd_dtype_bytes(from->dtype);
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

fd_status fd_emulation_create(fd_emulation *x, const fd_instance *instance, char *why, size_t n)
{
    const fd_problem *from = &instance->problem;
    fd_problem *p = &x->problem;
    *x = (fd_emulation){.problem = *from};
    p->kv_capacity = instance->c.kv_len > 0 ? instance->c.kv_len : 1;
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
        status = allocate(parts[i].from, parts[i].extent, parts[i].to, why, n);
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

static fd_status poison(void *device_data, size_t bytes, void *staged, char *why, size_t n)
{
    fd_poison_fill(staged, bytes, FD_POISON_NAN);
    return fd_device_emu()->write(device_data, staged, bytes, why, n);
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
    if (status == FD_OK && poison(workspace, bytes, staged, why, n) == FD_OK &&
        poison(p->o.data, x->o_bytes, o, why, n) == FD_OK && poison(p->lse.data, x->lse_bytes, lse, why, n) == FD_OK) {
        const fd_context context = {
            .size = sizeof context, .plan = plan, .plan_device = plan_device, .workspace = workspace};
        status = device->run(rung, p, &context, why, n);
    }
    if (status == FD_OK && device->read(o, p->o.data, x->o_bytes, why, n) == FD_OK) {
        status = device->read(lse, p->lse.data, x->lse_bytes, why, n);
    }

done:
    device->release(workspace);
    device->release(plan_device);
    free(staged);
    free(plan);
    return status;
}
