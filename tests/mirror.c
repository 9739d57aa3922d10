/* mirror.c: see mirror.h. */
#include "mirror.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_PARTS (FD_MIRROR_INPUTS + 4) /* o, lse, workspace, plan */
#define ALIGNED 256                      /* bytes: device memory */
#define CHUNK ((size_t)1 << 20)          /* bytes compared at a time: no second copy of a large cache on the host */

typedef struct part {
    const fd_buffer *host;
    void *block;         /* of the device's memory */
    unsigned char *base; /* in it, as far past a multiple of 256 as the host's: its bytes, guards included */
    size_t bytes;
} part;

typedef struct mirror {
    const fd_device *device;
    part parts[MAX_PARTS];
    int count;
} mirror;

static size_t whole(const fd_buffer *buffer)
{
    return buffer->bytes + 2 * FD_GUARD_BYTES;
}

/* bytes: of the host's, from its base, that travel. */
static fd_status add(mirror *m, const fd_buffer *buffer, size_t bytes, char *why, size_t n)
{
    const size_t past = (uintptr_t)buffer->base % ALIGNED;
    void *block = NULL;
    fd_status status = m->device->alloc(&block, past + bytes, why, n);
    if (status == FD_OK) {
        unsigned char *base = (unsigned char *)block + past;
        m->parts[m->count++] = (part){.host = buffer, .block = block, .base = base, .bytes = bytes};
        status = m->device->write(base, buffer->base, bytes, why, n);
    }
    return status;
}

static void release(mirror *m)
{
    while (m->count > 0) {
        m->device->release(m->parts[--m->count].block);
    }
}

static const part *part_of(const mirror *m, const fd_buffer *buffer)
{
    int k = 0;
    while (m->parts[k].host != buffer) {
        k++;
    }
    return &m->parts[k];
}

/* ---- There ------------------------------------------------------------------------------------- */

const char *const fd_tensor_names[FD_NUM_TENSORS] = {
    "q", "k", "v", "o", "lse", "kv_lens", "page_table", "sinks", "k_scale", "v_scale", "kv_total_lens"};

void fd_problem_tensors(fd_problem *p, fd_tensor *tensors[FD_NUM_TENSORS])
{
    fd_tensor *const all[FD_NUM_TENSORS] = {
        &p->q,          &p->k,     &p->v,       &p->o,       &p->lse,          &p->kv_lens,
        &p->page_table, &p->sinks, &p->k_scale, &p->v_scale, &p->kv_total_lens};
    memcpy(tensors, all, sizeof all);
}

fd_problem fd_problem_on_device(const fd_problem *problem)
{
    fd_problem p = *problem;
    fd_tensor *tensors[FD_NUM_TENSORS];
    fd_problem_tensors(&p, tensors);
    for (size_t t = 0; t < FD_NUM_TENSORS; t++) {
        tensors[t]->space = FD_DEVICE;
    }
    return p;
}

static fd_status move_tensor(const mirror *m, fd_tensor *x, char *why, size_t n)
{
    const uintptr_t at = (uintptr_t)x->data;
    for (int k = 0; k < m->count; k++) {
        const uintptr_t base = (uintptr_t)m->parts[k].host->base;
        if (at >= base && at - base < whole(m->parts[k].host)) {
            x->data = m->parts[k].base + (at - base);
            return FD_OK;
        }
    }
    snprintf(why, n, "a tensor lies in none of the buffers that go to the device");
    return FD_INVALID;
}

static fd_status move_problem(const mirror *m, fd_problem *p, char *why, size_t n)
{
    fd_status status = FD_OK;
    fd_tensor *tensors[FD_NUM_TENSORS];
    fd_problem_tensors(p, tensors);
    for (size_t t = 0; t < FD_NUM_TENSORS && status == FD_OK; t++) {
        status = tensors[t]->data != NULL ? move_tensor(m, tensors[t], why, n) : FD_OK;
    }
    return status;
}

/* ---- And back ---------------------------------------------------------------------------------- */

static fd_status read_back(const mirror *m, fd_buffer *buffer, char *why, size_t n)
{
    return m->device->read(buffer->base, part_of(m, buffer)->base, whole(buffer), why, n);
}

/* FD_INVALID, and `changed` as the reason, if the device's copy is not what was sent. */
static fd_status compare(const mirror *m, const fd_buffer *buffer, unsigned char *chunk, const char *changed, char *why,
                         size_t n)
{
    const part *there = part_of(m, buffer);
    fd_status status = FD_OK;
    for (size_t at = 0; at < there->bytes && status == FD_OK; at += CHUNK) {
        const size_t bytes = there->bytes - at < CHUNK ? there->bytes - at : CHUNK;
        status = m->device->read(chunk, there->base + at, bytes, why, n);
        if (status == FD_OK && memcmp(chunk, buffer->base + at, bytes) != 0) {
            status = FD_INVALID;
            snprintf(why, n, "%s", changed);
        }
    }
    return status;
}

/* The outputs come last: a reason found earlier stands, and the caller looks at guards only after FD_OK. */
static fd_status fetch(const mirror *m, const fd_memory *x, const fd_buffer *plan, char *why, size_t n)
{
    unsigned char *chunk = (unsigned char *)malloc(CHUNK);
    fd_status status = chunk != NULL ? FD_OK : FD_NO_MEMORY;
    if (status != FD_OK) {
        snprintf(why, n, "no memory to compare with the device's");
    }
    for (int k = 0; k < x->num_inputs && status == FD_OK; k++) {
        status = compare(m, x->inputs[k], chunk, "wrote to its inputs", why, n);
    }
    if (status == FD_OK && plan->base != NULL) {
        status = compare(m, plan, chunk, "changed its plan", why, n);
    }
    free(chunk);
    status = status == FD_OK ? read_back(m, x->workspace, why, n) : status;
    status = status == FD_OK ? read_back(m, x->o, why, n) : status;
    return status == FD_OK ? read_back(m, x->lse, why, n) : status;
}

/* ---- A run ------------------------------------------------------------------------------------- */

fd_status fd_run_mirrored(const fd_device *device, const fd_rung *rung, const fd_problem *problem, const fd_plan *plan,
                          const fd_memory *x, char *why, size_t n)
{
    mirror m = {.device = device};
    fd_buffer plan_copy = {.base = NULL};
    fd_problem p = fd_problem_on_device(problem);
    static char stream; /* the emulator knows it by its address; a GPU's device puts its own in its place */
    fd_context context = {.size = sizeof context, .plan = plan, .stream = &stream};

    fd_status status = plan != NULL ? fd_buffer_alloc(&plan_copy, plan->size) : FD_OK;
    if (status != FD_OK) {
        snprintf(why, n, "no memory for a copy of the plan, %u bytes", plan->size);
        return status;
    }
    for (int k = 0; k < x->num_inputs && status == FD_OK; k++) {
        status = add(&m, x->inputs[k], whole(x->inputs[k]) - (x->tight ? FD_GUARD_BYTES : 0), why, n);
    }
    fd_buffer *const written[] = {x->o, x->lse, x->workspace};
    for (size_t k = 0; k < sizeof written / sizeof *written && status == FD_OK; k++) {
        status = add(&m, written[k], whole(written[k]), why, n);
    }
    if (status == FD_OK && plan != NULL) {
        memcpy(plan_copy.data, plan, plan->size);
        status = add(&m, &plan_copy, whole(&plan_copy), why, n);
    }
    if (status == FD_OK) {
        status = move_problem(&m, &p, why, n);
    }
    for (int k = 0; k < x->num_extra && status == FD_OK; k++) {
        x->extra[k].space = FD_DEVICE;
        status = move_tensor(&m, &x->extra[k], why, n);
    }
    if (status == FD_OK) {
        context.workspace = part_of(&m, x->workspace)->base + FD_GUARD_BYTES;
        if (plan != NULL) {
            context.plan_device = (const fd_plan *)(const void *)(part_of(&m, &plan_copy)->base + FD_GUARD_BYTES);
        }
        status = device->run(rung, &p, &context, why, n);
    }
    if (status == FD_OK && x->then != NULL) {
        status = x->then(x->then_data, rung, &p, &context, why, n);
    }
    if (status == FD_OK) {
        status = fetch(&m, x, &plan_copy, why, n);
    }
    release(&m);
    fd_buffer_free(&plan_copy);
    return status;
}
