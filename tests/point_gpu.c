/* point_gpu.c: see point_gpu.h. */
#include "point_gpu.h"

#ifdef FD_GPU

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "execute.h"
#include "gpu/measure.h"

#define L2_MULTIPLE 6 /* the sets hold so many L2 caches */
#define CALLS_MIN 8   /* of a graph: its ends weigh little */
#define REPLAYS 101   /* at most */

/* ---- Calls ------------------------------------------------------------------------------------- */

static fd_problem problem_of(const fd_point *x, int set)
{
    fd_problem p = x->problem;
    p.k.data = x->k + set * x->kv_bytes;
    p.v.data = x->v + set * x->kv_bytes;
    p.q.data = x->q + set * x->q_bytes;
    p.o.data = x->o + set * x->o_bytes;
    return p;
}

fd_status fd_point_call(void *data, int call, void *stream)
{
    fd_point *x = (fd_point *)data;
    const fd_problem p = problem_of(x, call % x->sets);
    x->context.stream = stream;
    return x->rung->run(&p, &x->context);
}

fd_status fd_point_read(void *data, int call, void *stream)
{
    const fd_point *x = (const fd_point *)data;
    const fd_problem p = problem_of(x, call % x->sets);
    return fd_gpu_read(p.k.data, p.v.data, (size_t)x->kv_bytes, x->way, stream);
}

static fd_status call_nothing(void *data, int call, void *stream)
{
    (void)data, (void)call;
    return fd_gpu_nothing(stream);
}

fd_status fd_point_time(fd_point_work *work, void *data, int calls, int part, double seconds, fd_timing *t, int *parts,
                        char *why, size_t n)
{
    double ns[REPLAYS];
    int of;
    const fd_status status = fd_gpu_time_part(work, data, calls, part, &of, seconds, ns, REPLAYS, &t->replays, why, n);
    if (status == FD_OK) {
        fd_sort(ns, t->replays);
        t->median = fd_quantile(ns, t->replays, 0.5);
        t->p25 = fd_quantile(ns, t->replays, 0.25);
        t->p75 = fd_quantile(ns, t->replays, 0.75);
        if (parts != NULL) {
            *parts = of;
        }
    }
    return status;
}

/* The first call allocates, which a graph cannot. */
fd_status fd_point_floor(fd_point *x, double seconds, double *floor_ns, char *why, size_t n)
{
    fd_status status = fd_gpu_read(x->k, x->v, (size_t)x->kv_bytes, 0, NULL);
    *floor_ns = HUGE_VAL;
    for (x->way = 0; x->way < FD_GPU_READ_WAYS && status == FD_OK; x->way++) {
        fd_timing t;
        status = fd_point_time(fd_point_read, x, x->calls, -1, seconds, &t, NULL, why, n);
        *floor_ns = status == FD_OK ? fmin(*floor_ns, t.median) : *floor_ns;
    }
    return status;
}

fd_status fd_point_launch(double seconds, double *launch_ns, char *why, size_t n)
{
    fd_timing t;
    const fd_status status = fd_point_time(call_nothing, NULL, 256, -1, seconds, &t, NULL, why, n);
    *launch_ns = status == FD_OK ? t.median : 0.0;
    return status;
}

/* ---- Memory ------------------------------------------------------------------------------------ */

void fd_point_free(fd_point *x)
{
    unsigned char *const blocks[] = {x->k, x->v, x->q, x->o, x->lse};
    for (size_t i = 0; x->gpu != NULL && i < sizeof blocks / sizeof *blocks; i++) {
        x->gpu->release(blocks[i]);
    }
    *x = (fd_point){.sets = 0};
}

static fd_status take(const fd_device *gpu, unsigned char **block, int64_t bytes, char *why, size_t n)
{
    void *data = NULL;
    const fd_status status = gpu->alloc(&data, (size_t)bytes, why, n);
    *block = (unsigned char *)data;
    return status;
}

static int64_t aligned(int64_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

fd_status fd_point_make(const fd_device *gpu, const fd_bench_shape *shape, fd_point *x, char *why, size_t n)
{
    const int64_t d = shape->head_dim, q_rows = (int64_t)shape->batch * shape->heads_q;
    const int64_t kv = fd_bench_kv_bytes(shape) / 2;
    const int64_t kv_elements = kv / (int64_t)fd_dtype_bytes(shape->dtype_kv);
    *x = (fd_point){.gpu = gpu, .kv_bytes = aligned(kv)};
    x->q_bytes = aligned(q_rows * d * (int64_t)fd_dtype_bytes(shape->dtype_q));
    x->o_bytes = aligned(q_rows * d * (int64_t)fd_dtype_bytes(shape->dtype_o));
    x->bytes = 2 * kv + q_rows * (d * (int64_t)(fd_dtype_bytes(shape->dtype_q) + fd_dtype_bytes(shape->dtype_o)) + 4);
    x->sets = (int)((L2_MULTIPLE * gpu->machine.l2_bytes + 2 * kv - 1) / (2 * kv));
    x->sets = x->sets < 2 ? 2 : x->sets;
    x->calls = (CALLS_MIN + x->sets - 1) / x->sets * x->sets;
    x->problem = (fd_problem){
        .size = sizeof(fd_problem),
        .batch = shape->batch,
        .heads_q = shape->heads_q,
        .heads_kv = shape->heads_kv,
        .q_len = 1,
        .head_dim = shape->head_dim,
        .head_dim_v = shape->head_dim,
        .kv_capacity = shape->kv_len,
        .q = {NULL, {shape->heads_q * d, shape->heads_q * d, d, 1}, shape->dtype_q, FD_DEVICE},
        .k = {NULL, {shape->heads_kv * shape->kv_len * d, d, shape->kv_len * d, 1}, shape->dtype_kv, FD_DEVICE},
        .v = {NULL, {shape->heads_kv * shape->kv_len * d, d, shape->kv_len * d, 1}, shape->dtype_kv, FD_DEVICE},
        .o = {NULL, {shape->heads_q * d, shape->heads_q * d, d, 1}, shape->dtype_o, FD_DEVICE},
        .lse = {NULL, {shape->heads_q, shape->heads_q, 1, 0}, FD_F32, FD_DEVICE},
        .sm_scale = 1.0f / sqrtf((float)shape->head_dim),
        .window_left = -1,
        .window_right = -1,
    };
    fd_status status = take(gpu, &x->k, x->sets * x->kv_bytes, why, n);
    status = status == FD_OK ? take(gpu, &x->v, x->sets * x->kv_bytes, why, n) : status;
    status = status == FD_OK ? take(gpu, &x->q, x->sets * x->q_bytes, why, n) : status;
    status = status == FD_OK ? take(gpu, &x->o, x->sets * x->o_bytes, why, n) : status;
    status = status == FD_OK ? take(gpu, &x->lse, q_rows * 4, why, n) : status;
    for (int set = 0; set < x->sets && status == FD_OK; set++) {
        const fd_problem p = problem_of(x, set);
        status = fd_gpu_fill(&p.q, q_rows * d, (uint64_t)(3 * set + 1), why, n);
        status = status == FD_OK ? fd_gpu_fill(&p.k, kv_elements, (uint64_t)(3 * set + 2), why, n) : status;
        status = status == FD_OK ? fd_gpu_fill(&p.v, kv_elements, (uint64_t)(3 * set + 3), why, n) : status;
    }
    x->problem = problem_of(x, 0);
    x->problem.lse.data = x->lse;
    x->problem.features = fd_features(&x->problem);
    if (status != FD_OK) {
        fd_point_free(x);
    }
    return status;
}

/* ---- A rung ------------------------------------------------------------------------------------ */

fd_status fd_point_poison(const fd_point *x, char *why, size_t n)
{
    const size_t bytes = (size_t)x->sets * (size_t)x->o_bytes;
    void *poison = malloc(bytes);
    if (poison == NULL) {
        snprintf(why, n, "no memory");
        return FD_NO_MEMORY;
    }
    memset(poison, 0xff, bytes);
    const fd_status status = x->gpu->write(x->o, poison, bytes, why, n);
    free(poison);
    return status;
}

fd_status fd_point_written(const fd_point *x, char *why, size_t n)
{
    const size_t elements = (size_t)x->problem.batch * (size_t)x->problem.heads_q * (size_t)x->problem.head_dim_v;
    const size_t bytes = elements * fd_dtype_bytes(x->problem.o.dtype);
    fd_tensor o = x->problem.o;
    o.data = malloc(bytes);
    fd_status status = o.data != NULL ? x->gpu->read(o.data, x->o, bytes, why, n) : FD_NO_MEMORY;
    for (size_t i = 0; i < elements && status == FD_OK; i++) {
        if (!isfinite(fd_load(&o, (int64_t)i))) {
            snprintf(why, n, "o is no number, or was not written");
            status = FD_INVALID;
        }
    }
    free(o.data);
    return status;
}

fd_status fd_point_begin(fd_point *x, const fd_rung *rung, int32_t num_splits_request, char *why, size_t n)
{
    fd_point_end(x);
    x->problem.num_splits_request = num_splits_request;
    if (fd_supports(rung, &x->problem, why, n) != FD_OK) {
        return FD_UNSUPPORTED;
    }
    fd_status status = fd_plan_for(rung, &x->problem, &x->plan, why, n);
    if (status == FD_OK && x->plan != NULL) {
        x->num_splits = x->plan->num_splits;
        status = x->gpu->alloc(&x->plan_device, x->plan->size, why, n);
        status = status == FD_OK ? x->gpu->write(x->plan_device, x->plan, x->plan->size, why, n) : status;
    }
    x->workspace_bytes = status == FD_OK ? fd_workspace_bytes(rung, &x->problem, x->plan) : 0;
    status = status == FD_OK ? x->gpu->alloc(&x->workspace, x->workspace_bytes, why, n) : status;
    x->rung = rung;
    x->context = (fd_context){.size = sizeof x->context,
                              .plan = x->plan,
                              .plan_device = (const fd_plan *)x->plan_device,
                              .workspace = x->workspace};
    if (status != FD_OK) {
        fd_point_end(x);
    }
    return status;
}

void fd_point_end(fd_point *x)
{
    x->gpu->release(x->workspace);
    x->gpu->release(x->plan_device);
    free(x->plan);
    x->workspace = x->plan_device = NULL;
    x->plan = NULL;
    x->rung = NULL;
    x->num_splits = 0;
    x->workspace_bytes = 0;
    x->problem.num_splits_request = 0;
}

void fd_point_machine(const fd_device *gpu, fd_machine_record *m, int argc, char **argv)
{
    fd_machine_record_read(m, "flashdecode", argc, argv);
    snprintf(m->compiler + strlen(m->compiler), sizeof m->compiler - strlen(m->compiler), "; %s", fd_gpu_toolkit());
    snprintf(m->processor, sizeof m->processor, "%.60s, %d SMs, compute capability %d.%d", gpu->name,
             gpu->machine.num_units, gpu->machine.compute_capability / 10, gpu->machine.compute_capability % 10);
    fd_machine_identify(m);
}

#else

typedef int fd_no_gpu_here; /* C knows no empty file */

#endif
