/* gpu_plugin.h: a right plug-in of one kernel, a warp a query head, which each gpu_*.cu of this folder spoils in
 * one way. Each compiles for the emulator and, by nvcc, for a GPU; cuda/gpu/plugin.sh says what `check` must
 * answer there, and tests/test_plugins.c what it must on the emulator. A file defines KERNEL, what every thread
 * does before it ends, with p, b, h and x at hand, or LAUNCH. */
#ifndef FD_TEST_GPU_PLUGIN_H
#define FD_TEST_GPU_PLUGIN_H

#include "fd_cuda.h"
#include "math_claims.h"

#ifndef THREADS
#define THREADS FD_WARP
#endif
#ifndef KERNEL
#define KERNEL
#endif
#ifndef LAUNCH
#define LAUNCH(launch, args, context) FD_LAUNCH(attend, launch, args)
#endif
#ifndef MERGE
#define MERGE NULL
#endif
#define DIMS_MOST 256

/* o and lse are what every block of one warp writes; further warps only take part in KERNEL. */
FD_KERNEL(attend, fd_problem, THREADS)
{
    const fd_problem *p = &args;
    const int32_t b = (int32_t)blockIdx.y, h = (int32_t)blockIdx.x, x = (int32_t)threadIdx.x % FD_WARP;
    const int64_t q = fd_row_at(&p->q, b, 0, h), out = fd_row_at(&p->o, b, 0, h), keys = fd_kv_len(p, b);
    float m = -INFINITY, l = 0.0f, o[DIMS_MOST / FD_WARP] = {0.0f};
    for (int64_t j = 0; j < keys; j++) {
        const int64_t k = fd_kv_at(p, &p->k, b, j, h / fd_group(p)), v = fd_kv_at(p, &p->v, b, j, h / fd_group(p));
        float s = 0.0f;
        for (int32_t i = x; i < p->head_dim; i += FD_WARP) {
            s += fd_load(&p->q, q + i) * fd_load(&p->k, k + i);
        }
        for (int32_t other = FD_WARP / 2; other > 0; other /= 2) {
            s += __shfl_xor_sync(FD_FULL_MASK, s, other);
        }
        s *= p->sm_scale;
        const float next = fmaxf(m, s), rescale = expf(m - next), weight = expf(s - next);
        for (int32_t r = 0; r * FD_WARP + x < p->head_dim_v; r++) {
            o[r] = o[r] * rescale + weight * fd_load(&p->v, v + r * FD_WARP + x);
        }
        l = l * rescale + weight;
        m = next;
    }
    for (int32_t r = 0; r * FD_WARP + x < p->head_dim_v && threadIdx.x < FD_WARP; r++) {
        fd_store(&p->o, out + r * FD_WARP + x, keys > 0 ? o[r] / l : 0.0f);
    }
    if (threadIdx.x == 0 && p->lse.data != NULL) {
        ((float *)p->lse.data)[fd_row_at(&p->lse, b, 0, h)] = keys > 0 ? m + logf(l) : -INFINITY;
    }
    KERNEL
}

static fd_status run(const fd_problem *p, const fd_context *c)
{
    const fd_launch launch = {{(uint32_t)p->heads_q, (uint32_t)p->batch, 1}, {THREADS, 1, 1}, 0, 0, 0, c->stream};
    const fd_problem args = *p;
    return LAUNCH(launch, args, c);
}

static void arith(const fd_problem *p, const fd_plan *plan, int64_t kv_len, fd_arith *a)
{
    (void)p, (void)plan, (void)kv_len;
    fd_claim_math(a);
}

static const fd_caps caps = {.size = sizeof(fd_caps),
                             .features = FD_LSE | FD_RAGGED | FD_HEAD_DIM_V,
                             .dtypes_q = 1u << FD_F32,
                             .dtypes_kv = 1u << FD_F32,
                             .dtypes_o = 1u << FD_F32,
                             .spaces = 1u << FD_DEVICE,
                             .head_dim_max = DIMS_MOST,
                             .head_dim_multiple = 1,
                             .group_max = 0,
                             .q_len_max = 1};

static const fd_rung plugin = {.size = sizeof(fd_rung),
                               .abi = FD_ABI,
                               .number = 0,
                               .parent = 0,
                               .name = "plugin",
                               .idea = "a right one, spoilt",
                               .caps = &caps,
                               .supports = NULL,
                               .plan_bytes = NULL,
                               .plan = NULL,
                               .workspace = NULL,
                               .run = run,
                               .arith = arith,
                               .merge = MERGE};

const fd_rung *fd_plugin(uint32_t host_abi)
{
    return host_abi == FD_ABI ? &plugin : NULL;
}

#endif /* FD_TEST_GPU_PLUGIN_H */
