/* sdpa.c: the smallest plug-in: attention of one query row, in fp32, as the formula says.
 *     gcc -O2 -g -shared -fPIC -I reference tutorials/plugin/sdpa.c -o build/sdpa.so -lm
 *     build/flashdecode check build/sdpa.so */
#include "fd.h"
#include <math.h>

static fd_status run(const fd_problem *p, const fd_context *c)
{
    float *s = (float *)c->workspace;
    for (int32_t row = 0; row < p->batch * p->heads_q; row++) {
        const int32_t b = row / p->heads_q, h = row % p->heads_q;
        const float *q = (const float *)p->q.data + fd_row_at(&p->q, b, 0, h);
        const float *k = (const float *)p->k.data, *v = (const float *)p->v.data;
        float *o = (float *)p->o.data + fd_row_at(&p->o, b, 0, h), m = -INFINITY, l = 0.0f;
        for (int64_t j = 0; j < fd_kv_len(p, b); j++) {
            const int64_t key = fd_kv_at(p, &p->k, b, j, h / fd_group(p));
            s[j] = 0.0f;
            for (int32_t i = 0; i < p->head_dim; i++)
                s[j] += q[i] * k[key + i];
            s[j] *= p->sm_scale;
            m = s[j] > m ? s[j] : m;
        }
        memset(o, 0, (size_t)p->head_dim_v * sizeof *o);
        for (int64_t j = 0; j < fd_kv_len(p, b); j++) {
            const float weight = expf(s[j] - m);
            const int64_t key = fd_kv_at(p, &p->v, b, j, h / fd_group(p));
            l += weight;
            for (int32_t i = 0; i < p->head_dim_v; i++)
                o[i] += weight * v[key + i];
        }
        for (int32_t i = 0; i < p->head_dim_v && l > 0.0f; i++)
            o[i] /= l;
        if (p->lse.data != NULL)
            ((float *)p->lse.data)[fd_row_at(&p->lse, b, 0, h)] = l > 0.0f ? m + logf(l) : -INFINITY;
    }
    return FD_OK;
}

static size_t workspace(const fd_problem *p, const fd_plan *plan)
{
    (void)plan;
    return (size_t)p->kv_capacity * sizeof(float); /* a row of logits */
}

static const fd_caps caps = {.size = sizeof(fd_caps),
                             .features = FD_LSE | FD_RAGGED | FD_HEAD_DIM_V,
                             .dtypes_q = 1u << FD_F32,
                             .dtypes_kv = 1u << FD_F32,
                             .dtypes_o = 1u << FD_F32,
                             .spaces = 1u << FD_HOST,
                             .q_len_max = 1};

static const fd_rung sdpa = {.size = sizeof(fd_rung),
                             .abi = FD_ABI,
                             .name = "sdpa",
                             .idea = "attention as the formula says",
                             .caps = &caps,
                             .workspace = workspace,
                             .run = run};

const fd_rung *fd_plugin(uint32_t host_abi)
{
    return host_abi == FD_ABI ? &sdpa : NULL;
}
