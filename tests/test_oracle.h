/* test_oracle.h: problems for the oracle's two suites, small, with NaN wherever no token is. */
#ifndef FD_TEST_ORACLE_H
#define FD_TEST_ORACLE_H

#include <criterion/criterion.h>
#include <stdlib.h>

#include "oracle.h"

static uint64_t random_state = 1;

static inline float uniform(void) /* in [-1, 1) */
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (float)((int64_t)(random_state >> 40) - (1 << 23)) * 0x1p-23f;
}

static inline int32_t below(int32_t n)
{
    return (int32_t)((double)n * 0.5 * (1.0 + (double)uniform()));
}

/* [n0, n1, n2, n3] elements, innermost stride `step`, `pad` unused ones after every row; all bytes 0xff, a NaN. */
static inline fd_tensor tensor(int32_t dtype, int64_t n0, int64_t n1, int64_t n2, int64_t n3, int64_t step, int64_t pad)
{
    fd_tensor x = {.dtype = dtype,
                   .stride = {n1 * n2 * (n3 * step + pad), n2 * (n3 * step + pad), n3 * step + pad, step}};
    const size_t bytes = (size_t)(n0 * x.stride[0]) * fd_dtype_bytes(dtype) + 1;
    x.data = malloc(bytes);
    cr_assert_not_null(x.data, "out of memory");
    memset(x.data, 0xff, bytes);
    return x;
}

static inline void put(fd_tensor *x, int32_t b, int64_t y, int32_t h, int32_t i, float value)
{
    fd_store(x, b * x->stride[0] + y * x->stride[1] + h * x->stride[2] + i * x->stride[3], value);
}

static inline fd_problem problem(int32_t batch, int32_t heads_q, int32_t heads_kv, int32_t head_dim, int32_t head_dim_v,
                                 int64_t kv_capacity, int32_t dtype_q, int32_t dtype_kv, int64_t step, int64_t pad)
{
    fd_problem p = {.size = sizeof p, .batch = batch, .heads_q = heads_q, .heads_kv = heads_kv, .q_len = 1};
    p.head_dim = head_dim;
    p.head_dim_v = head_dim_v;
    p.kv_capacity = kv_capacity;
    p.sm_scale = 1.0f;
    p.window_left = p.window_right = -1;
    p.q = tensor(dtype_q, batch, 1, heads_q, head_dim, step, pad);
    p.k = tensor(dtype_kv, batch, kv_capacity, heads_kv, head_dim, step, pad);
    p.v = tensor(dtype_kv, batch, kv_capacity, heads_kv, head_dim_v, step, pad);
    p.o = tensor(FD_F32, batch, 1, heads_q, head_dim_v, 1, 0);
    p.features = fd_features(&p);
    return p;
}

/* One head, fp32: the given q, keys and first elements of v. */
static inline fd_problem small(int32_t n, int32_t head_dim, const float *q, const float *k, const float *v)
{
    fd_problem p = problem(1, 1, 1, head_dim, 1, n, FD_F32, FD_F32, 1, 0);
    memcpy(p.q.data, q, (size_t)head_dim * sizeof *q);
    memcpy(p.k.data, k, (size_t)(n * head_dim) * sizeof *k);
    memcpy(p.v.data, v, (size_t)n * sizeof *v);
    return p;
}

static inline void fill_random(fd_problem *p, float amplitude_q, float amplitude_v)
{
    for (int32_t b = 0; b < p->batch; b++) {
        for (int32_t h = 0; h < p->heads_q; h++) {
            for (int32_t i = 0; i < p->head_dim; i++) {
                put(&p->q, b, 0, h, i, amplitude_q * uniform());
            }
        }
        for (int64_t j = 0; j < fd_kv_len(p, b); j++) { /* the tail stays NaN */
            for (int32_t i = 0; i < p->heads_kv * p->head_dim; i++) {
                put(&p->k, b, j, i / p->head_dim, i % p->head_dim, 2.0f * uniform());
            }
            for (int32_t i = 0; i < p->heads_kv * p->head_dim_v; i++) {
                put(&p->v, b, j, i / p->head_dim_v, i % p->head_dim_v, amplitude_v * uniform());
            }
        }
    }
}

static inline void drop(fd_problem *p)
{
    void *const blocks[] = {p->q.data, p->k.data, p->v.data, p->o.data, p->kv_lens.data};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        free(blocks[i]);
    }
}

static inline fd_oracle_row ask(const fd_problem *p, int32_t b, int32_t h, int bits)
{
    fd_oracle_row row;
    char why[256] = "";
    cr_assert_eq(fd_oracle_row_init(&row, p->kv_capacity, p->head_dim_v), FD_OK, "out of memory");
    cr_assert_eq(fd_oracle(p, b, 0, h, bits, &row, why, sizeof why), FD_OK, "refused: %s", why);
    return row;
}

#endif /* FD_TEST_ORACLE_H */
