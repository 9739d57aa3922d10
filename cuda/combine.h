/* combine.h: the second kernel of every split rung: the states (o, m, l) of a row's splits, rescaled to their common
 * maximum and added. Introduced by rung 22. */
#ifndef FD_CUDA_COMBINE_H
#define FD_CUDA_COMBINE_H

#include "plan.h"
#include "rung.h"

#define COMBINE_THREADS 128
#define COMBINE_DIMS (FD_CUDA_HEAD_DIM_MAX / COMBINE_THREADS) /* of o, a thread */

/* The workspace. Every split of every row is written, empty ones with m = -infinity, l = 0, o = 0. */
typedef struct fd_partials {
    float *o; /* [num_splits, batch, heads_q, head_dim_v], normalised by its own l: yes */
    float *m; /* [num_splits, batch, heads_q] */
    float *l; /* [num_splits, batch, heads_q] */
} fd_partials;

typedef struct fd_split_args {
    fd_problem p;
    fd_plan plan;
    fd_partials partial;
} fd_split_args;

FD_DEVICE_INLINE int64_t fd_partial_at(const fd_problem *p, int32_t split, int32_t b, int32_t h)
{
    return ((int64_t)split * p->batch + b) * p->heads_q + h;
}

/* Grid (1, heads_q, batch), block 128: dims t, t + 128 a thread, all splits in order. */
FD_KERNEL(fd_k_combine, fd_split_args, COMBINE_THREADS)
{
    const fd_problem *p = &args.p;
    const int32_t b = (int32_t)blockIdx.z, h = (int32_t)blockIdx.y, t = (int32_t)threadIdx.x;
    const int64_t kv_len = fd_kv_len(p, b);
    float m = -INFINITY, l = 0.0f, o[COMBINE_DIMS] = {0.0f};
    for (int32_t split = 0; split < args.plan.num_splits; split++) {
        m = fmaxf(m, args.partial.m[fd_partial_at(p, split, b, h)]);
    }
    for (int32_t split = 0; split < args.plan.num_splits && kv_len > 0; split++) {
        const int64_t at = fd_partial_at(p, split, b, h);
        const float weight = expf(args.partial.m[at] - m) * args.partial.l[at];
        l += weight;
        FD_UNROLL
        for (int32_t x = 0; x < COMBINE_DIMS; x++) {
            const int32_t i = t + x * COMBINE_THREADS;
            if (i < p->head_dim_v) {
                o[x] += weight * args.partial.o[at * p->head_dim_v + i];
            }
        }
    }
    FD_UNROLL
    for (int32_t x = 0; x < COMBINE_DIMS; x++) {
        const int32_t i = t + x * COMBINE_THREADS;
        if (i < p->head_dim_v) {
            fd_store_o(p, b, h, i, kv_len > 0 ? o[x] / l : 0.0f);
        }
    }
    if (t == 0) {
        fd_store_lse(p, b, h, kv_len > 0 ? m + logf(l) : -INFINITY);
    }
}

/* ---- Host ---- */

static inline size_t fd_split_workspace(const fd_problem *p, const fd_plan *plan)
{
    const size_t rows = (size_t)plan->num_splits * (size_t)p->batch * (size_t)p->heads_q;
    return rows * ((size_t)p->head_dim_v + 2) * sizeof(float);
}

static inline fd_split_args fd_split_args_of(const fd_problem *p, const fd_context *c)
{
    const int64_t rows = (int64_t)c->plan->num_splits * p->batch * p->heads_q;
    fd_split_args args = {.p = *p, .plan = *c->plan, .partial = {.o = (float *)c->workspace, .m = NULL, .l = NULL}};
    args.partial.m = args.partial.o + rows * p->head_dim_v;
    args.partial.l = args.partial.m + rows;
    return args;
}

static inline fd_status fd_launch_combine(const fd_problem *p, const fd_context *c, const fd_split_args *args)
{
    const fd_launch launch = {
        .grid = {1, (uint32_t)p->heads_q, (uint32_t)p->batch}, .block = {COMBINE_THREADS, 1, 1}, .stream = c->stream};
    return FD_LAUNCH(fd_k_combine, launch, *args);
}

static inline size_t fd_split_plan_bytes(const fd_problem *p, const fd_machine *machine)
{
    (void)p, (void)machine;
    return sizeof(fd_plan);
}

/* Splits of a sequence of kv_len keys that hold one: the parts of the last level of its merge tree. */
static inline int64_t fd_splits_with_keys(const fd_plan *plan, int64_t kv_len)
{
    return (kv_len + plan->split_size - 1) / plan->split_size;
}

#endif /* FD_CUDA_COMBINE_H */
