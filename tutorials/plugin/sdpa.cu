/* sdpa.cu: a plug-in for a GPU: a block a query head, a thread a dimension, online softmax. The same file for both:
 *     gcc -x c -O2 -g -shared -fPIC -I reference -I cuda tutorials/plugin/sdpa.cu -o build/sdpa_emu.so -lm
 *     nvcc -std=c++20 -O3 -lineinfo -shared -Xcompiler=-fPIC -I reference -I cuda tutorials/plugin/sdpa.cu -o build/sdpa_gpu.so
 * `check` runs the first on the emulator and the second on GPU 0. Code that keeps to CUDA's own <<< >>> is as good there. */
#include "fd_cuda.h"
#include "math_claims.h"

#define THREADS 128
#define DIMS_MOST 256

FD_KERNEL(sdpa_kernel, fd_problem, THREADS)
{
    __shared__ float part[THREADS];
    const fd_problem *p = &args;
    const int32_t b = (int32_t)blockIdx.y, h = (int32_t)blockIdx.x, x = (int32_t)threadIdx.x;
    const int64_t q = fd_row_at(&p->q, b, 0, h), out = fd_row_at(&p->o, b, 0, h), keys = fd_kv_len(p, b);
    float m = -INFINITY, l = 0.0f, o[DIMS_MOST / THREADS] = {0.0f};
    for (int64_t j = 0; j < keys; j++) {
        const int64_t k = fd_kv_at(p, &p->k, b, j, h / fd_group(p)), v = fd_kv_at(p, &p->v, b, j, h / fd_group(p));
        float s = 0.0f;
        for (int32_t i = x; i < p->head_dim; i += THREADS) {
            s += fd_load(&p->q, q + i) * fd_load(&p->k, k + i);
        }
        part[x] = s;
        __syncthreads();
        for (int32_t half = THREADS / 2; half > 0; half /= 2) {
            if (x < half) {
                part[x] += part[x + half];
            }
            __syncthreads();
        }
        s = p->sm_scale * part[0];
        __syncthreads(); /* before part is written again */
        const float next = fmaxf(m, s), rescale = expf(m - next), weight = expf(s - next);
        for (int32_t r = 0; r * THREADS + x < p->head_dim_v; r++) {
            o[r] = o[r] * rescale + weight * fd_load(&p->v, v + r * THREADS + x);
        }
        l = l * rescale + weight;
        m = next;
    }
    for (int32_t r = 0; r * THREADS + x < p->head_dim_v; r++) {
        fd_store(&p->o, out + r * THREADS + x, keys > 0 ? o[r] / l : 0.0f);
    }
    if (x == 0 && p->lse.data != NULL) {
        ((float *)p->lse.data)[fd_row_at(&p->lse, b, 0, h)] = keys > 0 ? m + logf(l) : -INFINITY;
    }
}

static fd_status run(const fd_problem *p, const fd_context *c)
{
    const fd_launch launch = {{(uint32_t)p->heads_q, (uint32_t)p->batch, 1}, {THREADS, 1, 1}, 0, 0, 0, c->stream};
    const fd_problem args = *p;
    return FD_LAUNCH(sdpa_kernel, launch, args);
}

/* exp and log of a GPU are not the host's, which the bound would assume: claimed, as measured on every float. */
static void arith(const fd_problem *p, const fd_plan *plan, int64_t kv_len, fd_arith *a)
{
    (void)p, (void)plan, (void)kv_len;
    fd_claim_math(a);
}

static const fd_caps caps = {.size = sizeof(fd_caps),
                             .features = FD_LSE | FD_RAGGED | FD_HEAD_DIM_V,
                             .dtypes_q = 1u << FD_F32 | 1u << FD_F16 | 1u << FD_BF16,
                             .dtypes_kv = 1u << FD_F32 | 1u << FD_F16 | 1u << FD_BF16,
                             .dtypes_o = 1u << FD_F32 | 1u << FD_F16 | 1u << FD_BF16,
                             .spaces = 1u << FD_DEVICE,
                             .head_dim_max = DIMS_MOST,
                             .head_dim_multiple = 1,
                             .group_max = 0,
                             .q_len_max = 1};

static const fd_rung sdpa = {.size = sizeof(fd_rung),
                             .abi = FD_ABI,
                             .number = 0,
                             .parent = 0,
                             .name = "sdpa CUDA",
                             .idea = "a block a query head, online softmax",
                             .caps = &caps,
                             .supports = NULL,
                             .plan_bytes = NULL,
                             .plan = NULL,
                             .workspace = NULL,
                             .run = run,
                             .arith = arith,
                             .merge = NULL};

const fd_rung *fd_plugin(uint32_t host_abi)
{
    return host_abi == FD_ABI ? &sdpa : NULL;
}
