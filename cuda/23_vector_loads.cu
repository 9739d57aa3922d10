/* 23  vector loads                                                       [GPU | fp32 fp16 bf16]
 *
 * Idea      A key belongs to a group of neighbouring lanes, 8 elements each: one 16-byte load a lane, a row in one piece.
 *           Several keys are loaded before the first is used.
 * Changed   From 22: within a block, tiles and barriers give way to lane groups that each walk a run of consecutive keys
 *           with m, l and o in registers; the logit is a sum over the group's lanes; the groups' states meet in shared
 *           memory once, at the end. A kernel a dtype.
 * Why       In 22 the 32 lanes of a warp read 32 rows at once, 2 or 4 bytes of each, and the block waits three times a
 *           tile. Here a request is whole rows, 8 requests are on their way, and nobody waits for anybody.
 * Cost      bytes: as 22, a sector asked for once, in fp32 twice;  flops: as 22, plus log2(lanes a key) shuffles a key;
 *           extra: as 22
 * Launch    split:   grid (num_splits, heads_q, batch), block 128 = 4 warps, 5.5 KiB of shared memory
 *           head_dim 128:  lanes 0-15 | 16-31 of a warp: a group each, dims 8*(lane % 16) .. + 7 of its keys
 *           combine: as 22
 * Numerics  Running maximum over a group's keys, rescaled once every 4; groups rescaled once to the block's maximum and
 *           added. Bound: proofs/README.md; splits begin where runs do.
 * Limits    As 22, and head_dim, head_dim_v multiples of 8, rows of k and v at multiples of 16 bytes.
 * Read      tutorials/23-vector-loads.md
 */
#include "vec.h"

#define UNROLL 4   /* keys of a group loaded together */
#define CHUNK 1024 /* keys of a split */

FD_DEVICE_INLINE void attend(const fd_vec_args *args, int32_t dtype)
{
    __shared__ fd_group_states state;
    const fd_problem *p = &args->split.p;
    const int32_t split = (int32_t)blockIdx.x, h = (int32_t)blockIdx.y, b = (int32_t)blockIdx.z;
    const int32_t h_kv = h / fd_group(p), t = (int32_t)threadIdx.x;
    const int32_t group = t / args->lanes, dim = t % args->lanes * FD_VEC; /* the lane's first element */
    const int has_k = dim < p->head_dim, has_v = dim < p->head_dim_v;

    int64_t split_begin, split_end;
    fd_split_range(&args->split.plan, fd_kv_len(p, b), split, &split_begin, &split_end);
    const int64_t run = args->split.plan.tile; /* keys of a group */
    const int64_t begin = split_begin + group * run, behind = begin + run;
    const int64_t end = behind < split_end ? behind : split_end;

    float q[FD_VEC];
    FD_UNROLL
    for (int32_t i = 0; i < FD_VEC; i++) {
        q[i] = has_k ? fd_load(&p->q, fd_row_at(&p->q, b, 0, h) + dim + i) : 0.0f;
    }

    float m = -INFINITY, l = 0.0f, o[FD_VEC] = {0.0f};
    for (int64_t step = 0; step < run; step += UNROLL) { /* as often in every group: all lanes meet in the shuffles */
        fd_raw8 k[UNROLL], v[UNROLL];
        FD_UNROLL
        for (int32_t x = 0; x < UNROLL; x++) {
            const int64_t j = begin + step + x;
            const fd_raw8 none = {{{{0, 0, 0, 0}}, {{0, 0, 0, 0}}}};
            k[x] = j < end && has_k ? fd_load8(dtype, p->k.data, fd_kv_at(p, &p->k, b, j, h_kv) + dim) : none;
            v[x] = j < end && has_v ? fd_load8(dtype, p->v.data, fd_kv_at(p, &p->v, b, j, h_kv) + dim) : none;
        }

        float s[UNROLL], m_new = m;
        FD_UNROLL
        for (int32_t x = 0; x < UNROLL; x++) {
            s[x] = 0.0f;
            FD_UNROLL
            for (int32_t i = 0; i < FD_VEC; i++) {
                s[x] += q[i] * fd_element8(dtype, &k[x], i);
            }
            for (int32_t lanes = args->lanes / 2; lanes > 0; lanes /= 2) {
                s[x] += __shfl_xor_sync(FD_FULL_MASK, s[x], lanes);
            }
            s[x] = begin + step + x < end ? p->sm_scale * s[x] : -INFINITY;
            m_new = fmaxf(m_new, s[x]);
        }

        const float shift = m_new > -INFINITY ? m_new : 0.0f; /* a group may have no key yet: exp(-inf - 0) = 0 */
        const float rescale = expf(m - shift);
        m = m_new;
        l *= rescale;
        FD_UNROLL
        for (int32_t i = 0; i < FD_VEC; i++) {
            o[i] *= rescale;
        }
        FD_UNROLL
        for (int32_t x = 0; x < UNROLL; x++) {
            const float weight = expf(s[x] - shift);
            l += weight;
            FD_UNROLL
            for (int32_t i = 0; i < FD_VEC; i++) {
                o[i] += weight * fd_element8(dtype, &v[x], i);
            }
        }
    }

    fd_leave_state(&state, args, split, b, h, split_begin < split_end, o, m, l);
}

FD_KERNEL(fd_k_23_f32, fd_vec_args, FD_VEC_THREADS)
{
    attend(&args, FD_F32);
}

FD_KERNEL(fd_k_23_f16, fd_vec_args, FD_VEC_THREADS)
{
    attend(&args, FD_F16);
}

FD_KERNEL(fd_k_23_bf16, fd_vec_args, FD_VEC_THREADS)
{
    attend(&args, FD_BF16);
}

static fd_status plan(const fd_problem *p, const fd_machine *machine, fd_plan *plan)
{
    const int32_t groups = fd_groups(p);
    const fd_split_policy policy = {.kind = FD_SPLIT_CHUNK, .tile = groups * UNROLL, .chunk = CHUNK};
    return fd_plan_runs(&policy, p, machine, plan);
}

static fd_status run(const fd_problem *p, const fd_context *c)
{
    if (p->batch == 0) {
        return FD_OK;
    }
    const fd_vec_args args = fd_vec_args_of(p, c);
    const fd_launch launch = {.grid = {(uint32_t)c->plan->num_splits, (uint32_t)p->heads_q, (uint32_t)p->batch},
                              .block = {FD_VEC_THREADS, 1, 1},
                              .stream = c->stream};
    const fd_status status = p->k.dtype == FD_F32   ? FD_LAUNCH(fd_k_23_f32, launch, args)
                             : p->k.dtype == FD_F16 ? FD_LAUNCH(fd_k_23_f16, launch, args)
                                                    : FD_LAUNCH(fd_k_23_bf16, launch, args);
    return status == FD_OK ? fd_launch_combine(p, c, &args.split) : status;
}

static void arith(const fd_problem *p, const fd_plan *plan, int64_t kv_len, fd_arith *a)
{
    const int64_t groups = fd_groups(p), run = plan->tile;
    const int64_t runs = (kv_len + run - 1) / run; /* of the row, that hold a key */
    a->num_levels = 3;
    a->level[0] = (fd_level){kv_len < run ? kv_len : run, FD_MERGE_RUNNING, FD_SEQUENTIAL, 1, 0};
    a->level[1] = (fd_level){runs < groups ? runs : groups, FD_MERGE_RESCALE, FD_SEQUENTIAL, 1, 0};
    a->level[2] = (fd_level){fd_splits_with_keys(plan, kv_len), FD_MERGE_NORMALISED, FD_SEQUENTIAL, 1, 0};
    fd_claim_math(a);
}

FD_RUNG(fd_rung_23_vector_loads) = {
    .size = sizeof(fd_rung),
    .abi = FD_ABI,
    .number = 23,
    .parent = 22,
    .name = "vector loads",
    .idea = "16 bytes a lane, a lane group a key, several keys on their way",
    .caps = &fd_vec_caps,
    .supports = fd_vec_supports,
    .plan_bytes = fd_split_plan_bytes,
    .plan = plan,
    .workspace = fd_split_workspace,
    .run = run,
    .arith = arith,
};
