/* naive.c: attention in fp32 as a textbook has it, for judge.c. -DWRONG starts the maximum at 0, as many a kernel did:
 * right on random inputs, and wrong where all logits are far below 0. */
#include "golden.h"

#include <math.h>

#ifdef WRONG
#define START 0.0f
#else
#define START (-HUGE_VALF)
#endif

int attention(const struct problem *p, float *o, float *lse)
{
    for (int64_t row = 0; row < p->batch * p->q_len * p->heads_q; row++) {
        const int64_t b = row / p->heads_q / p->q_len, h = row % p->heads_q / (p->heads_q / p->heads_kv);
        const int64_t keys = p->visible[row / p->heads_q], d = p->head_dim, d_v = p->head_dim_v;
        const float *q = p->q + row * d;
        float logits[2048], m = START, l = 0.0f;
        for (int64_t j = 0; j < keys; j++) {
            const float *k = p->k + ((b * p->kv_len + j) * p->heads_kv + h) * d;
            logits[j] = 0.0f;
            for (int64_t i = 0; i < d; i++) {
                logits[j] += q[i] * k[i];
            }
            logits[j] *= p->sm_scale;
            m = logits[j] > m ? logits[j] : m;
        }
        for (int64_t i = 0; i < d_v; i++) {
            o[row * d_v + i] = 0.0f;
        }
        for (int64_t j = 0; j < keys; j++) {
            const float *v = p->v + ((b * p->kv_len + j) * p->heads_kv + h) * d_v, w = expf(logits[j] - m);
            l += w;
            for (int64_t i = 0; i < d_v; i++) {
                o[row * d_v + i] += w * v[i];
            }
        }
        for (int64_t i = 0; i < d_v && keys > 0; i++) {
            o[row * d_v + i] /= l;
        }
        lse[row] = keys > 0 ? m + logf(l) : -HUGE_VALF;
    }
    return 1;
}
