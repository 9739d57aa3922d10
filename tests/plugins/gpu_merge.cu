/* Nothing is wrong with its merge(), either. */
#include "fd_cuda.h"

static fd_status merge(const fd_problem *p, int32_t n, const fd_tensor *part_o, const fd_tensor *part_lse,
                       const fd_context *c);
#define MERGE merge
#include "gpu_plugin.h"

#define PARTS_MOST 16

typedef struct {
    fd_problem p;
    fd_tensor o[PARTS_MOST], lse[PARTS_MOST];
    int32_t n;
} merge_args;

/* A block a row, a thread every 32nd dimension. */
FD_KERNEL(merge_kernel, merge_args, FD_WARP)
{
    const fd_problem *p = &args.p;
    const int32_t b = (int32_t)blockIdx.y, h = (int32_t)blockIdx.x;
    const int64_t out = fd_row_at(&p->o, b, 0, h);
    float m = -INFINITY, l = 0.0f, weight[PARTS_MOST];
    for (int32_t part = 0; part < args.n; part++) {
        m = fmaxf(m, fd_load(&args.lse[part], fd_row_at(&args.lse[part], b, 0, h)));
    }
    for (int32_t part = 0; part < args.n; part++) {
        const float lse = fd_load(&args.lse[part], fd_row_at(&args.lse[part], b, 0, h));
        weight[part] = lse == -INFINITY ? 0.0f : expf(lse - m);
        l += weight[part];
    }
    for (int32_t i = (int32_t)threadIdx.x; i < p->head_dim_v; i += FD_WARP) {
        float sum = 0.0f;
        for (int32_t part = 0; part < args.n; part++) {
            sum += weight[part] * fd_load(&args.o[part], fd_row_at(&args.o[part], b, 0, h) + i);
        }
        fd_store(&p->o, out + i, m == -INFINITY ? 0.0f : sum / l);
    }
    if (threadIdx.x == 0 && p->lse.data != NULL) {
        fd_store(&p->lse, fd_row_at(&p->lse, b, 0, h), m == -INFINITY ? m : m + logf(l));
    }
}

static fd_status merge(const fd_problem *p, int32_t n, const fd_tensor *part_o, const fd_tensor *part_lse,
                       const fd_context *c)
{
    const fd_launch launch = {{(uint32_t)p->heads_q, (uint32_t)p->batch, 1}, {FD_WARP, 1, 1}, 0, 0, 0, c->stream};
    merge_args args;
    if (n < 1 || n > PARTS_MOST) {
        return FD_UNSUPPORTED;
    }
    args.p = *p;
    args.n = n;
    memcpy(args.o, part_o, (size_t)n * sizeof *part_o);
    memcpy(args.lse, part_lse, (size_t)n * sizeof *part_lse);
    return FD_LAUNCH(merge_kernel, launch, args);
}
