/* rung.h: what the readable CUDA rungs share: what they take, and a row's last steps. */
#ifndef FD_CUDA_RUNG_H
#define FD_CUDA_RUNG_H

#include <stdio.h>

#include "fd_cuda.h"
#include "math_claims.h"

#define FD_CUDA_HEAD_DIM_MAX 256
#define FD_GRID_MAX 65535 /* blocks along y and along z */

static const fd_caps fd_cuda_caps = {
    .size = sizeof(fd_caps),
    .features = FD_LSE | FD_RAGGED | FD_HEAD_DIM_V | FD_STRIDED_DIM,
    .dtypes_q = 1u << FD_F32 | 1u << FD_F16 | 1u << FD_BF16,
    .dtypes_kv = 1u << FD_F32 | 1u << FD_F16 | 1u << FD_BF16,
    .dtypes_o = 1u << FD_F32 | 1u << FD_F16 | 1u << FD_BF16,
    .spaces = 1u << FD_DEVICE,
    .head_dim_max = FD_CUDA_HEAD_DIM_MAX,
    .head_dim_multiple = 1,
    .group_max = 0,
    .q_len_max = 1,
};

/* Heads and sequences are the grid's y and z. */
static inline fd_status fd_cuda_supports(const fd_problem *p, char *why, size_t n)
{
    if (p->heads_q > FD_GRID_MAX || p->batch > FD_GRID_MAX) {
        snprintf(why, n, "%s is above %d, the most blocks along %s", p->heads_q > FD_GRID_MAX ? "heads_q" : "batch",
                 FD_GRID_MAX, p->heads_q > FD_GRID_MAX ? "y" : "z");
        return FD_UNSUPPORTED;
    }
    return FD_OK;
}

/* Stores element i of row [b, 0, h] of o, rounded to its dtype. */
FD_DEVICE_INLINE void fd_store_o(const fd_problem *p, int32_t b, int32_t h, int32_t i, float o)
{
    fd_store(&p->o, fd_row_at(&p->o, b, 0, h) + i * p->o.stride[3], o);
}

/* Stores the natural lse of row [b, 0, h], if it is wanted. */
FD_DEVICE_INLINE void fd_store_lse(const fd_problem *p, int32_t b, int32_t h, float lse)
{
    if (p->lse.data != NULL) {
        ((float *)p->lse.data)[fd_row_at(&p->lse, b, 0, h)] = lse;
    }
}

#endif /* FD_CUDA_RUNG_H */
