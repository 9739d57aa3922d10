/* worker_device.c: in the worker: a run on the emulator or on a GPU, through buffers with guard bytes, which
 * travel there and back; and, on a GPU, its time. */
#define _GNU_SOURCE
#include "worker_protocol.h"
#ifdef __linux__
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef FD_GPU
#include "gpu/measure.h"
#endif

static fd_shared *shared;

static void *data_of(int32_t segment)
{
    return segment < 0 ? NULL : (void *)(uintptr_t)shared->segments[segment].address;
}

static fd_status fill(fd_buffer *buffer, int32_t segment, size_t past)
{
    const size_t bytes = segment < 0 ? 0 : (size_t)shared->segments[segment].bytes;
    const fd_status status = fd_buffer_alloc_past(buffer, bytes, past);
    if (status == FD_OK && bytes > 0) {
        memcpy(buffer->data, data_of(segment), bytes);
    }
    return status;
}

/* ---- Time -------------------------------------------------------------------------------------- */

#ifdef FD_GPU
#define L2_MULTIPLE 6 /* bytes written between two calls, over those of the L2 cache */

typedef struct call {
    const fd_rung *rung;
    const fd_problem *problem;
    fd_context context;
    size_t kv_bytes; /* of k; of v as many are read, padding or not */
    int way;         /* of reading */
} call;

static fd_status call_run(void *data, int number, void *stream)
{
    call *x = (call *)data;
    (void)number;
    x->context.stream = stream;
    return x->rung->run(x->problem, &x->context);
}

static fd_status call_read(void *data, int number, void *stream)
{
    const call *x = (const call *)data;
    (void)number;
    return fd_gpu_read(x->problem->k.data, x->problem->v.data, x->kv_bytes, x->way, stream);
}

/* The way of reading that is fastest on these k and v. */
static fd_status choose_way(call *x, size_t flush, char *why, size_t n)
{
    enum { TRIES = 3 };
    double least = 0.0;
    int best = 0;
    fd_status status = FD_OK;
    for (x->way = 0; x->way < FD_GPU_READ_WAYS && status == FD_OK; x->way++) {
        double ns[TRIES], again[TRIES];
        status = fd_gpu_time_pairs(call_read, x, call_read, x, flush, TRIES, ns, again, why, n);
        for (int i = 0; i < TRIES && status == FD_OK; i++) {
            if (least == 0.0 || again[i] < least) {
                least = again[i];
                best = x->way;
            }
        }
    }
    x->way = best;
    return status;
}

static fd_status time_there(void *data, const fd_rung *rung, const fd_problem *there, const fd_context *context,
                            char *why, size_t n)
{
    const fd_device *device = (const fd_device *)data;
    const size_t flush = (size_t)L2_MULTIPLE * (size_t)device->machine.l2_bytes;
    call x = {.rung = rung, .problem = there, .context = *context};
    x.kv_bytes = (size_t)shared->segments[shared->tensor_segment[1]].bytes / 16 * 16;
    fd_status status = fd_gpu_read(there->k.data, there->v.data, x.kv_bytes, 0, NULL); /* allocates its sink */
    status = status == FD_OK ? choose_way(&x, flush, why, n) : status;
    return status == FD_OK ? fd_gpu_time_pairs(call_run, &x, call_read, &x, flush, shared->repeats, shared->run_ns,
                                               shared->floor_ns, why, n)
                           : status;
}
#endif

/* ---- Merging ----------------------------------------------------------------------------------- */

/* What a device is asked to run instead of run(). */
static struct {
    const fd_rung *rung;
    fd_tensor parts[2 * FD_WORKER_PARTS]; /* o, then lse, of num_parts each */
} merging;

static fd_status merge_as_run(const fd_problem *p, const fd_context *context)
{
    const int32_t n = shared->num_parts;
    return merging.rung->merge(p, n, merging.parts, merging.parts + n, context);
}

/* ---- Running ----------------------------------------------------------------------------------- */

/* After a run that went well. */
static fd_status check_guards(const fd_memory *memory)
{
    const struct {
        const fd_buffer *buffer;
        const char *name;
    } written[] = {{memory->o, "o"}, {memory->lse, "lse"}, {memory->workspace, "the workspace"}};
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        const fd_buffer *x = written[i].buffer;
        if (!fd_buffer_intact(x)) {
            const int64_t at = fd_buffer_first_change(x);
            snprintf(shared->text, sizeof shared->text, "wrote %s %s, at byte %lld of %zu, in %s",
                     at < 0 ? "before the start of" : "past the end of", written[i].name, (long long)at, x->bytes,
                     shared->request == FD_ASK_MERGE ? "merge()" : "run()");
            return FD_INVALID;
        }
    }
    return FD_OK;
}

fd_status fd_worker_run_there(fd_shared *where, const fd_device *device, const fd_rung *rung, fd_problem p)
{
    fd_buffer buffers[FD_NUM_TENSORS] = {{.base = NULL}}, workspace = {.base = NULL};
    fd_buffer parts[2 * FD_WORKER_PARTS] = {{.base = NULL}};
    fd_rung merger = *rung;
    fd_memory memory = {.o = &buffers[3], .lse = &buffers[4], .workspace = &workspace};
    fd_tensor *tensors[FD_NUM_TENSORS];
    shared = where;
    memory.tight =
        getenv(FD_SANITIZED) != NULL || strcmp(device->where, "emu") == 0; /* which sees every access itself */
#ifdef FD_GPU
    memory.then = shared->repeats > 0 ? time_there : NULL;
    memory.then_data = (void *)(uintptr_t)device; /* read only */
#endif
    fd_status status = fill(&workspace, shared->workspace_segment, 0);
    fd_problem_tensors(&p, tensors);
    for (int t = 0; t < FD_NUM_TENSORS && status == FD_OK; t++) {
        status = fill(&buffers[t], shared->tensor_segment[t], t < 4 ? FD_PAST_TENSOR : FD_PAST_ELEMENTS);
        if (tensors[t]->data != NULL) {
            tensors[t]->data = buffers[t].data;
        }
        if (t != 3 && t != 4 && tensors[t]->data != NULL &&
            memory.num_inputs < FD_MIRROR_INPUTS - 2 * FD_WORKER_PARTS) {
            memory.inputs[memory.num_inputs++] = &buffers[t];
        }
    }
    merging.rung = rung;
    memory.extra = merging.parts;
    memory.num_extra = shared->request == FD_ASK_MERGE ? 2 * shared->num_parts : 0;
    for (int k = 0; k < memory.num_extra && status == FD_OK; k++) {
        const int lse = k >= shared->num_parts, part = lse ? k - shared->num_parts : k;
        status = fill(&parts[k], shared->part_segment[lse][part], lse ? FD_PAST_ELEMENTS : FD_PAST_TENSOR);
        merging.parts[k] = lse ? shared->part_lse[part] : shared->part_o[part];
        merging.parts[k].data = parts[k].data;
        memory.inputs[memory.num_inputs++] = &parts[k];
    }
    if (status != FD_OK) {
        snprintf(shared->text, sizeof shared->text, "the worker cannot hold copies of the tensors");
        _exit(FD_WORKER_CANNOT);
    }
    shared->doing = memory.num_extra > 0 ? FD_DOING_MERGE : FD_DOING_RUN;
    merger.run = memory.num_extra > 0 ? merge_as_run : rung->run;
    status = fd_run_mirrored(device, &merger, &p, (const fd_plan *)data_of(shared->plan_segment), &memory, shared->text,
                             sizeof shared->text);
    status = status == FD_OK ? check_guards(&memory) : status;
    for (int t = 3; t <= 4; t++) {
        if (tensors[t]->data != NULL && buffers[t].bytes > 0) {
            memcpy(data_of(shared->tensor_segment[t]), buffers[t].data, buffers[t].bytes);
        }
    }
    for (int t = 0; t < FD_NUM_TENSORS; t++) {
        fd_buffer_free(&buffers[t]);
    }
    for (int k = 0; k < 2 * FD_WORKER_PARTS; k++) {
        fd_buffer_free(&parts[k]);
    }
    fd_buffer_free(&workspace);
    if (status != FD_DEVICE_ERROR && strcmp(device->where, "gpu") == 0) {
        fd_watch_cuda(shared);
    }
    return status;
}
#endif
