/* golden.h: the function that judge.c judges: yours. All arrays are row-major, in the shapes in brackets. */
#ifndef GOLDEN_H
#define GOLDEN_H

#include <stdint.h>

struct problem {
    int64_t batch, q_len, heads_q, heads_kv, head_dim, head_dim_v, kv_len;
    float sm_scale;
    const int32_t *kv_lens; /* [batch] slots of k and v that hold a key; the others are NaN */
    const int32_t *visible; /* [batch, q_len] a query row sees keys 0 .. visible - 1 */
    const float *q;         /* [batch, q_len, heads_q, head_dim] */
    const float *k;         /* [batch, kv_len, heads_kv, head_dim]; query head h reads h / (heads_q / heads_kv) */
    const float *v;         /* [batch, kv_len, heads_kv, head_dim_v] */
};

/* Writes o [batch, q_len, heads_q, head_dim_v] and lse [batch, q_len, heads_q], natural. A row that sees no key: 0 and
 * -INFINITY. Returns 1 if it wrote lse, else 0. */
int attention(const struct problem *p, float *o, float *lse);

#endif /* GOLDEN_H */
