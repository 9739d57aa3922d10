/* tensor_host.h: what rungs on tensor cores have in common on the host: arguments of their kernels, plan, what they take, and
 * what they claim about their arithmetic. */
#ifndef FD_CUDA_TENSOR_HOST_H
#define FD_CUDA_TENSOR_HOST_H

#include "tensor_block.h"

static inline int fd_dims_of(const fd_problem *p)
{
    return p->head_dim != p->head_dim_v ? 256 : p->head_dim == 64 ? 64 : p->head_dim == 128 ? 128 : 256;
}

static inline fd_rows fd_rows_of(const fd_tensor *x)
{
    const fd_rows rows = {(const uint16_t *)x->data, x->stride[0], x->stride[1], x->stride[2]};
    return rows;
}

/* Blocks that serve a KV head's group. */
static inline int32_t fd_passes(const fd_problem *p)
{
    return (fd_group(p) + FD_MMA_HEADS - 1) / FD_MMA_HEADS;
}

static inline fd_tensor_args fd_tensor_args_of(const fd_problem *p, const fd_context *c)
{
    const fd_tensor_args args = {.q = fd_rows_of(&p->q),
                                 .k = fd_rows_of(&p->k),
                                 .v = fd_rows_of(&p->v),
                                 .kv_lens = (const int32_t *)p->kv_lens.data,
                                 .kv_lens_stride = p->kv_lens.stride[0],
                                 .kv_capacity = p->kv_capacity,
                                 .split_size = c->plan->split_size,
                                 .run = c->plan->tile,
                                 .group = fd_group(p),
                                 .passes = fd_passes(p),
                                 .head_dim = p->head_dim,
                                 .head_dim_v = p->head_dim_v,
                                 .batch = p->batch,
                                 .heads_q = p->heads_q,
                                 .sm_scale = p->sm_scale,
                                 .partial = fd_split_args_of(p, c).partial};
    return args;
}

/* At most num_splits_max splits (0: any number) that fill `blocks_per_unit` blocks a multiprocessor; tile is then
 * the run of consecutive keys of one warp. */
static inline fd_status fd_tensor_plan(const fd_problem *p, const fd_machine *machine, int32_t blocks_per_unit,
                                       int64_t split_size_min, int32_t num_splits_max, fd_plan *plan)
{
    fd_machine filled = *machine;
    filled.blocks_per_unit = blocks_per_unit;
    const fd_split_policy policy = {.kind = FD_SPLIT_FILL,
                                    .tile = FD_MMA_TILE,
                                    .heads = p->heads_kv * fd_passes(p),
                                    .num_splits_max = num_splits_max,
                                    .split_size_min = split_size_min};
    const fd_status status = fd_plan_splits(&policy, p, &filled, plan, NULL, 0);
    if (status == FD_OK) {
        plan->tile = (int32_t)(plan->split_size / FD_MMA_WARPS);
    }
    return status;
}

static inline fd_status fd_tensor_supports(const fd_problem *p, char *why, size_t n)
{
    if (p->q.dtype != p->k.dtype) {
        snprintf(why, n, "q is %s and k %s: a tensor core multiplies numbers of one type", fd_dtype_name(p->q.dtype),
                 fd_dtype_name(p->k.dtype));
        return FD_UNSUPPORTED;
    }
    if (!fd_rows_are_aligned(&p->q)) {
        snprintf(why, n, "rows of q do not begin at multiples of 16 bytes");
        return FD_UNSUPPORTED;
    }
    return fd_vec_supports(p, why, n);
}

static const fd_caps fd_tensor_caps = {
    .size = sizeof(fd_caps),
    .features = FD_LSE | FD_RAGGED | FD_HEAD_DIM_V,
    .dtypes_q = 1u << FD_F16 | 1u << FD_BF16,
    .dtypes_kv = 1u << FD_F16 | 1u << FD_BF16,
    .dtypes_o = 1u << FD_F32 | 1u << FD_F16 | 1u << FD_BF16,
    .spaces = 1u << FD_DEVICE,
    .head_dim_max = FD_CUDA_HEAD_DIM_MAX,
    .head_dim_multiple = FD_VEC,
    .group_max = 0,
    .q_len_max = 1,
};

/* Error of an instruction over the sum of its addends' sizes: proofs/README.md, section 12. */
#ifdef __CUDACC__
#define FD_MMA_REL (20.0f * 0x1p-24f) /* an A100's; a Hopper chip stays below 10 */
#else
#define FD_MMA_REL 0.0f /* that of 16 additions, which all three models of the emulator keep to */
#endif

/* The claims: levels within a split, then num_splits parts, divided by their own l. */
static inline void fd_tensor_arith(const fd_problem *p, const fd_plan *plan, int64_t kv_len, fd_arith *a)
{
    const int64_t run = plan->tile, runs = (kv_len + run - 1) / run; /* of the row, that hold a key */
    const int64_t keys = kv_len < run ? kv_len : run, steps = (keys + FD_MMA_KEYS - 1) / FD_MMA_KEYS;
    a->accumulator = FD_ACC_TENSOR_CORE;
    a->mma_keys = FD_MMA_KEYS;
    a->mma_rel = FD_MMA_REL;
    a->dtype_p = p->k.dtype;
    a->p_parts = FD_P_PARTS;
    a->num_levels = 4;
    a->level[0] = (fd_level){kv_len < FD_MMA_KEYS ? kv_len : FD_MMA_KEYS, FD_MERGE_ADD, FD_SEQUENTIAL, 1, 0};
    a->level[1] = (fd_level){steps, FD_MERGE_RUNNING, FD_SEQUENTIAL, 1, 0};
    a->level[2] = (fd_level){runs < FD_MMA_WARPS ? runs : FD_MMA_WARPS, FD_MERGE_RESCALE, FD_SEQUENTIAL, 1, 0};
    a->level[3] = (fd_level){fd_splits_with_keys(plan, kv_len), FD_MERGE_NORMALISED, FD_SEQUENTIAL, 1, 0};
    fd_claim_math(a);
}

#endif /* FD_CUDA_TENSOR_HOST_H */
