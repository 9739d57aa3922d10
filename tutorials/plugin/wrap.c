/* wrap.c: a plug-in around a function that you have already. attention() below stands for it: fp32, contiguous arrays, no
 * strides and no lse. run() packs one sequence after the other into the workspace, and unpacks what comes back.
 *     gcc -O2 -g -shared -fPIC -I reference tutorials/plugin/wrap.c -o build/wrap.so -lm
 *     build/flashdecode check build/wrap.so */
#include "fd.h"
#include <math.h>
#include <stdio.h>

/* q [heads_q, dim], k and v [keys, heads_kv, dim], o [heads_q, dim]. Replace it by an #include, or link yours. */
static void attention(const float *q, const float *k, const float *v, float *o, int heads_q, int heads_kv, int keys,
                      int dim)
{
    for (int h = 0; h < heads_q; h++) {
        const int h_kv = h / (heads_q / heads_kv);
        float m = -INFINITY, l = 0.0f;
        for (int i = 0; i < dim; i++)
            o[h * dim + i] = 0.0f;
        for (int j = 0; j < keys; j++) {
            float s = 0.0f;
            for (int i = 0; i < dim; i++)
                s += q[h * dim + i] * k[(j * heads_kv + h_kv) * dim + i];
            s /= sqrtf((float)dim);
            const float next = s > m ? s : m, rescale = expf(m - next), p = expf(s - next);
            for (int i = 0; i < dim; i++)
                o[h * dim + i] = o[h * dim + i] * rescale + p * v[(j * heads_kv + h_kv) * dim + i];
            l = l * rescale + p;
            m = next;
        }
        for (int i = 0; i < dim && l > 0.0f; i++)
            o[h * dim + i] /= l;
    }
}

static size_t workspace(const fd_problem *p, const fd_plan *plan)
{
    (void)plan;
    return (size_t)(2 * p->heads_q + 2 * p->kv_capacity * p->heads_kv) * (size_t)p->head_dim * sizeof(float);
}

/* Rows of dim floats, `from` element by element with its strides. */
static void copy_row(float *to, const fd_tensor *from, int64_t at, int dim)
{
    memcpy(to, (const float *)from->data + at, (size_t)dim * sizeof *to);
}

static fd_status run(const fd_problem *p, const fd_context *c)
{
    const int64_t dim = p->head_dim;
    float *q = (float *)c->workspace, *o = q + p->heads_q * dim, *k = o + p->heads_q * dim;
    float *v = k + p->kv_capacity * p->heads_kv * dim;
    for (int32_t b = 0; b < p->batch; b++) {
        const int64_t keys = fd_kv_len(p, b); /* never read beyond them */
        for (int32_t h = 0; h < p->heads_q; h++)
            copy_row(q + h * dim, &p->q, fd_row_at(&p->q, b, 0, h), p->head_dim);
        for (int64_t j = 0; j < keys; j++)
            for (int32_t h = 0; h < p->heads_kv; h++) {
                copy_row(k + (j * p->heads_kv + h) * dim, &p->k, fd_kv_at(p, &p->k, b, j, h), p->head_dim);
                copy_row(v + (j * p->heads_kv + h) * dim, &p->v, fd_kv_at(p, &p->v, b, j, h), p->head_dim);
            }
        attention(q, k, v, o, p->heads_q, p->heads_kv, (int)keys, p->head_dim);
        for (int32_t h = 0; h < p->heads_q; h++)
            memcpy((float *)p->o.data + fd_row_at(&p->o, b, 0, h), o + h * dim, (size_t)dim * sizeof *o);
    }
    return FD_OK;
}

/* What attention() cannot express is refused, by name: those cases are skips, not failures. */
static fd_status supports(const fd_problem *p, char *why, size_t n)
{
    if (p->sm_scale != 1.0f / sqrtf((float)p->head_dim)) {
        snprintf(why, n, "sm_scale other than 1 / sqrt(head_dim)");
        return FD_UNSUPPORTED;
    }
    return FD_OK;
}

static const fd_caps caps = {.size = sizeof(fd_caps),
                             .features = FD_RAGGED, /* and neither FD_LSE nor FD_HEAD_DIM_V */
                             .dtypes_q = 1u << FD_F32,
                             .dtypes_kv = 1u << FD_F32,
                             .dtypes_o = 1u << FD_F32,
                             .spaces = 1u << FD_HOST,
                             .q_len_max = 1};

static const fd_rung wrap = {.size = sizeof(fd_rung),
                             .abi = FD_ABI,
                             .name = "wrap",
                             .idea = "attention(q, k, v, o, ...) on packed copies",
                             .caps = &caps,
                             .supports = supports,
                             .workspace = workspace,
                             .run = run};

const fd_rung *fd_plugin(uint32_t host_abi)
{
    return host_abi == FD_ABI ? &wrap : NULL;
}
