/* row.h: what the readable CPU rungs share: one row of q, k or v as floats, the dot product, storing a result.
 * Rows pass through small float arrays, so that a rung reads the same for fp32, fp16 and bf16. */
#ifndef FD_ROW_H
#define FD_ROW_H

#include <math.h>

#include "fd.h"

#define FD_HEAD_DIM_MAX 1024 /* floats a rung keeps on its stack for one row */

extern const fd_caps fd_readable_caps; /* fd.c: any dtype, head_dim up to FD_HEAD_DIM_MAX, any group and q_len */

/* Refuses window_left: the keys that a row sees then begin at key 0, and end at fd_visible_end(). */
fd_status fd_readable_supports(const fd_problem *problem, char *why, size_t n);

/* The plan of the rungs that run on threads. */
typedef struct fd_threaded_plan {
    fd_plan base;
    int32_t num_threads, reserved;
} fd_threaded_plan;

/* n elements of x from element offset at, step stride[3], as floats. */
static inline void fd_load_row(const fd_tensor *x, int64_t at, int32_t n, float *row)
{
    const int64_t step = x->stride[3];
    if (x->dtype == FD_F32 && step == 1) { /* the common case, which the compiler turns into a copy */
        memcpy(row, (const float *)x->data + at, (size_t)n * sizeof *row);
        return;
    }
    for (int32_t i = 0; i < n; i++) {
        row[i] = fd_load(x, at + i * step);
    }
}

static inline void fd_load_q(const fd_problem *p, int32_t b, int32_t t, int32_t h, float *q /* [head_dim] */)
{
    fd_load_row(&p->q, fd_row_at(&p->q, b, t, h), p->head_dim, q);
}

static inline void fd_load_k(const fd_problem *p, int32_t b, int64_t j, int32_t h_kv, float *k /* [head_dim] */)
{
    fd_load_row(&p->k, fd_kv_at(p, &p->k, b, j, h_kv), p->head_dim, k);
}

static inline void fd_load_v(const fd_problem *p, int32_t b, int64_t j, int32_t h_kv, float *v /* [head_dim_v] */)
{
    fd_load_row(&p->v, fd_kv_at(p, &p->v, b, j, h_kv), p->head_dim_v, v);
}

/* sum_i x_i y_i, added in order of i: n products and n - 1 additions are rounded (0 + x is exact). */
static inline float fd_dot(const float *x, const float *y, int32_t n)
{
    float sum = 0.0f;
    for (int32_t i = 0; i < n; i++) {
        sum += x[i] * y[i];
    }
    return sum;
}

static inline void fd_store_row(const fd_problem *p, int32_t b, int32_t t, int32_t h, const float *o /* [head_dim_v] */,
                                float lse)
{
    const int64_t at = fd_row_at(&p->o, b, t, h);
    for (int32_t i = 0; i < p->head_dim_v; i++) {
        fd_store(&p->o, at + i * p->o.stride[3], o[i]);
    }
    if (p->lse.data != NULL) {
        ((float *)p->lse.data)[fd_row_at(&p->lse, b, t, h)] = lse;
    }
}

/* The answer when no key is visible. */
static inline void fd_store_empty(const fd_problem *p, int32_t b, int32_t t, int32_t h)
{
    const float zeros[FD_HEAD_DIM_MAX] = {0.0f};
    fd_store_row(p, b, t, h, zeros, -INFINITY);
}

#endif /* FD_ROW_H */
