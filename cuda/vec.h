/* vec.h: eight neighbouring elements of a row of k or v, the share of one lane: one 16-byte load of fp16 or bf16, two of
 * fp32. The load and its use are apart, so that several loads can be on their way at once. */
#ifndef FD_CUDA_VEC_H
#define FD_CUDA_VEC_H

#include "combine.h"

#define FD_VEC 8           /* elements of a lane */
#define FD_VEC_THREADS 128 /* of a block */

typedef struct fd_raw8 {
    fd_vec16 part[2]; /* the second is fp32's only */
} fd_raw8;

/* dtype must be a constant: then only one branch is left. at: element offset, 16-byte aligned. */
FD_DEVICE_INLINE fd_raw8 fd_load8(int32_t dtype, const void *data, int64_t at)
{
    fd_raw8 raw;
    if (dtype == FD_F32) {
        raw.part[0] = fd_ld16((const float *)data + at);
        raw.part[1] = fd_ld16((const float *)data + at + 4);
    } else {
        raw.part[0] = fd_ld16((const uint16_t *)data + at);
        raw.part[1] = raw.part[0];
    }
    return raw;
}

/* Element i, 0 .. 7, as the number it denotes. i must be a constant after unrolling. */
FD_DEVICE_INLINE float fd_element8(int32_t dtype, const fd_raw8 *raw, int32_t i)
{
    if (dtype == FD_F32) {
        return fd_float_from_bits(raw->part[i / 4].w[i % 4]);
    }
    const uint32_t pair = raw->part[0].w[i / 2]; /* little-endian: the even element is the low half */
    const uint16_t half = (uint16_t)(i % 2 == 0 ? pair : pair >> 16);
    return dtype == FD_F16 ? fd_f16(half) : fd_bf16(half);
}

/* Lanes that share a key: the least power of two whose lanes hold the longer of its two rows. */
FD_INLINE int32_t fd_lanes_per_key(const fd_problem *p)
{
    const int32_t longer = p->head_dim > p->head_dim_v ? p->head_dim : p->head_dim_v;
    int32_t lanes = 1;
    while (lanes * FD_VEC < longer) {
        lanes *= 2;
    }
    return lanes;
}

/* Groups of a block. */
FD_INLINE int32_t fd_groups(const fd_problem *p)
{
    return FD_VEC_THREADS / fd_lanes_per_key(p);
}

typedef struct fd_vec_args {
    fd_split_args split;
    int32_t lanes, groups; /* of a key; of the block */
} fd_vec_args;

/* Where the states of a block's groups meet, in shared memory. */
typedef struct fd_group_states {
    float o[FD_VEC_THREADS][FD_VEC + 1]; /* [thread, 8], normalised: no. Rows of 9: no two lanes share a bank */
    float m[FD_VEC_THREADS], l[FD_VEC_THREADS];
} fd_group_states;

/* All threads of the block call it: each brings 8 elements of its group's o, and the group's m and l, over its keys. They
 * are rescaled to the block's maximum and added, and leave as the split's partial state of row [b, 0, h]. has_keys: of
 * the split. The caller has a barrier before the next call. */
FD_DEVICE_INLINE void fd_leave_state(fd_group_states *state, const fd_vec_args *args, int32_t split, int32_t b,
                                     int32_t h, int has_keys, const float o[FD_VEC], float m, float l)
{
    const fd_problem *p = &args->split.p;
    const fd_partials *partial = &args->split.partial;
    const int32_t t = (int32_t)threadIdx.x;
    const int64_t at = fd_partial_at(p, split, b, h);
    FD_UNROLL
    for (int32_t i = 0; i < FD_VEC; i++) {
        state->o[t][i] = o[i];
    }
    if (t % args->lanes == 0) {
        state->m[t / args->lanes] = m;
        state->l[t / args->lanes] = l;
    }
    __syncthreads();

    float m_all = -INFINITY, l_all = 0.0f;
    for (int32_t g = 0; g < args->groups; g++) {
        m_all = fmaxf(m_all, state->m[g]);
    }
    for (int32_t g = 0; g < args->groups && has_keys; g++) {
        l_all += expf(state->m[g] - m_all) * state->l[g];
    }
    for (int32_t i = t; i < p->head_dim_v; i += FD_VEC_THREADS) {
        float sum = 0.0f;
        for (int32_t g = 0; g < args->groups && has_keys; g++) {
            sum += expf(state->m[g] - m_all) * state->o[g * args->lanes + i / FD_VEC][i % FD_VEC];
        }
        partial->o[at * p->head_dim_v + i] = has_keys ? sum / l_all : 0.0f;
    }
    if (t == 0) {
        partial->m[at] = m_all;
        partial->l[at] = l_all;
    }
}

/* ---- Host ---- */

/* Splits whose size is a multiple of the block's groups; tile is then the run of consecutive keys of one group. */
static inline fd_status fd_plan_runs(const fd_split_policy *policy, const fd_problem *p, const fd_machine *machine,
                                     fd_plan *plan)
{
    const fd_status status = fd_plan_splits(policy, p, machine, plan, NULL, 0);
    if (status == FD_OK) {
        plan->tile = (int32_t)(plan->split_size / fd_groups(p));
    }
    return status;
}

static inline fd_vec_args fd_vec_args_of(const fd_problem *p, const fd_context *c)
{
    const fd_vec_args args = {fd_split_args_of(p, c), fd_lanes_per_key(p), fd_groups(p)};
    return args;
}

static inline int fd_rows_are_aligned(const fd_tensor *x)
{
    int aligned = (uintptr_t)x->data % 16 == 0;
    for (int d = 0; d < 3; d++) {
        aligned = aligned && (uint64_t)x->stride[d] * fd_dtype_bytes(x->dtype) % 16 == 0;
    }
    return aligned;
}

static inline fd_status fd_vec_supports(const fd_problem *p, char *why, size_t n)
{
    if (p->head_dim_v % FD_VEC != 0 || p->head_dim_v > FD_CUDA_HEAD_DIM_MAX) {
        snprintf(why, n, "head_dim_v %d is no multiple of %d up to %d", p->head_dim_v, FD_VEC, FD_CUDA_HEAD_DIM_MAX);
        return FD_UNSUPPORTED;
    }
    if (!fd_rows_are_aligned(&p->k) || !fd_rows_are_aligned(&p->v)) {
        snprintf(why, n, "rows of %s do not begin at multiples of 16 bytes", fd_rows_are_aligned(&p->k) ? "v" : "k");
        return FD_UNSUPPORTED;
    }
    return fd_cuda_supports(p, why, n);
}

static const fd_caps fd_vec_caps = {
    .size = sizeof(fd_caps),
    .features = FD_LSE | FD_RAGGED | FD_HEAD_DIM_V,
    .dtypes_q = 1u << FD_F32 | 1u << FD_F16 | 1u << FD_BF16,
    .dtypes_kv = 1u << FD_F32 | 1u << FD_F16 | 1u << FD_BF16,
    .dtypes_o = 1u << FD_F32 | 1u << FD_F16 | 1u << FD_BF16,
    .spaces = 1u << FD_DEVICE,
    .head_dim_max = FD_CUDA_HEAD_DIM_MAX,
    .head_dim_multiple = FD_VEC,
    .group_max = 0,
    .q_len_max = 1,
};

#endif /* FD_CUDA_VEC_H */
