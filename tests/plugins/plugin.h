/* plugin.h: a right plug-in, which each file of this folder spoils in one way. tests/test_plugins.c says what `check` must
 * answer. A file defines BEFORE, what run() does first, AFTER, what it does last, how long a cache is, where a row of q
 * lies, or fields of the descriptor. */
#ifndef FD_TEST_PLUGIN_H
#define FD_TEST_PLUGIN_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "fd.h"

#ifndef BEFORE
#define BEFORE(p, c)
#endif
#ifndef AFTER
#define AFTER(p, c)
#endif
#ifndef KV_LEN
#define KV_LEN(p, b) fd_kv_len(p, b)
#endif
#ifndef Q_AT
#define Q_AT(p, b, h) fd_row_at(&(p)->q, b, 0, h)
#endif
#ifndef LSE_UNIT
#define LSE_UNIT 1.0f
#endif
#ifndef WORKSPACE
#define WORKSPACE(p) ((size_t)(p)->kv_capacity * sizeof(float))
#endif
#ifndef FEATURES
#define FEATURES 0
#endif
#ifndef FIELDS
#define FIELDS
#endif

static inline float dot(const fd_problem *p, int32_t b, int32_t h, int64_t j)
{
    const int64_t q = Q_AT(p, b, h), k = fd_kv_at(p, &p->k, b, j, h / fd_group(p));
    float sum = 0.0f;
    for (int32_t i = 0; i < p->head_dim; i++) {
        sum += fd_load(&p->q, q + i) * fd_load(&p->k, k + i);
    }
    return p->sm_scale * sum;
}

static inline void attend(const fd_problem *p, int32_t b, int32_t h, float *s)
{
    const int64_t n = KV_LEN(p, b), o = fd_row_at(&p->o, b, 0, h);
    float m = -INFINITY, l = 0.0f;
    for (int64_t j = 0; j < n; j++) {
        s[j] = dot(p, b, h, j);
        m = fmaxf(m, s[j]);
    }
    for (int64_t j = 0; j < n; j++) {
        s[j] = expf(s[j] - m);
        l += s[j];
    }
    for (int32_t i = 0; i < p->head_dim_v; i++) {
        float sum = 0.0f;
        for (int64_t j = 0; j < n; j++) {
            sum += s[j] * fd_load(&p->v, fd_kv_at(p, &p->v, b, j, h / fd_group(p)) + i);
        }
        fd_store(&p->o, o + i, n > 0 ? sum / l : 0.0f);
    }
    if (p->lse.data != NULL) {
        ((float *)p->lse.data)[fd_row_at(&p->lse, b, 0, h)] = n > 0 ? (m + logf(l)) * LSE_UNIT : -INFINITY;
    }
}

static fd_status run(const fd_problem *p, const fd_context *c)
{
    float *workspace = (float *)c->workspace;
    BEFORE(p, c);
    for (int32_t row = 0; row < p->batch * p->heads_q; row++) {
        attend(p, row / p->heads_q, row % p->heads_q, workspace);
    }
    AFTER(p, c);
    return FD_OK;
}

static size_t workspace_bytes(const fd_problem *p, const fd_plan *plan)
{
    (void)plan;
    return WORKSPACE(p);
}

#ifndef OWN_ENTRY
static const fd_caps caps = {sizeof(fd_caps),
                             FD_LSE | FD_RAGGED | FD_HEAD_DIM_V | FEATURES,
                             1u << FD_F32,
                             1u << FD_F32,
                             1u << FD_F32,
                             1u << FD_HOST,
                             0,
                             1,
                             0,
                             1};

static const fd_rung plugin = {.size = sizeof(fd_rung),
                               .abi = FD_ABI,
                               .name = "plugin",
                               .idea = "a right one, spoilt",
                               .caps = &caps,
                               .workspace = workspace_bytes,
                               .run = run,
                               FIELDS};

const fd_rung *fd_plugin(uint32_t host_abi)
{
    return host_abi == FD_ABI ? &plugin : NULL;
}
#endif

#endif /* FD_TEST_PLUGIN_H */
