/* 24  GQA packing                                                        [GPU | fp32 fp16 bf16]
 *
 * Idea      The query heads of a group share a KV head: one block serves up to 8 of them with one read of its keys.
 * Changed   From 23: q, m, l and o are arrays over the heads of the block; a loaded key meets each of them. There are
 *           `group` times fewer blocks, so the planner cuts by the machine's size, not by a fixed chunk.
 * Why       In 23 every query head reads all of K and V again, if from the L2. At 32 query heads on 8 KV heads that is
 *           four times the bytes a decode step needs.
 * Cost      bytes: K and V once per KV head (twice if the group is above 8, above 4 in fp32);  flops: as 23;
 *           extra: as 22
 * Launch    split:   grid (num_splits, heads_kv * ceil(group / heads), batch), block 128, 5.5 KiB of shared memory; heads
 *           is 1, 2, 4 or 8, the least power of two that holds the group, at most 8 (fp32: 4)
 *           combine: as 22
 * Numerics  As 23, head by head.
 * Limits    As 23.
 * Read      tutorials/24-gqa-packing.md
 */
#include "vec.h"

#define UNROLL 4      /* keys of a group loaded together */
#define HEADS 8       /* query heads of a block, at most */
#define SPLIT_MIN 256 /* keys of a split, at least: a shorter one is not worth its part of the combine */

/* heads must be a constant: 1, 2, 4 or 8. */
FD_DEVICE_INLINE void attend(const fd_vec_args *args, int32_t dtype, int32_t heads)
{
    __shared__ fd_group_states state;
    const fd_problem *p = &args->split.p;
    const int32_t group_size = fd_group(p), passes = (group_size + heads - 1) / heads;
    const int32_t split = (int32_t)blockIdx.x, b = (int32_t)blockIdx.z, t = (int32_t)threadIdx.x;
    const int32_t h_kv = (int32_t)blockIdx.y / passes, first = (int32_t)blockIdx.y % passes * heads;
    const int32_t h = h_kv * group_size + first, served = group_size - first < heads ? group_size - first : heads;
    const int32_t group = t / args->lanes, dim = t % args->lanes * FD_VEC; /* the lane's first element */
    const int has_k = dim < p->head_dim, has_v = dim < p->head_dim_v;

    int64_t split_begin, split_end;
    fd_split_range(&args->split.plan, fd_kv_len(p, b), split, &split_begin, &split_end);
    const int64_t run = args->split.plan.tile; /* keys of a group */
    const int64_t begin = split_begin + group * run, behind = begin + run;
    const int64_t end = behind < split_end ? behind : split_end;

    float q[HEADS][FD_VEC], o[HEADS][FD_VEC], m[HEADS], l[HEADS];
    FD_UNROLL
    for (int32_t g = 0; g < heads; g++) { /* a head that is not there has q = 0 and is not stored */
        m[g] = -INFINITY;
        l[g] = 0.0f;
        FD_UNROLL
        for (int32_t i = 0; i < FD_VEC; i++) {
            o[g][i] = 0.0f;
            q[g][i] = has_k && g < served ? fd_load(&p->q, fd_row_at(&p->q, b, 0, h + g) + dim + i) : 0.0f;
        }
    }

    for (int64_t step = 0; step < run; step += UNROLL) { /* as often in every group: all lanes meet in the shuffles */
        fd_raw8 k[UNROLL], v[UNROLL];
        FD_UNROLL
        for (int32_t x = 0; x < UNROLL; x++) {
            const int64_t j = begin + step + x;
            const fd_raw8 none = {{{{0, 0, 0, 0}}, {{0, 0, 0, 0}}}};
            k[x] = j < end && has_k ? fd_load8(dtype, p->k.data, fd_kv_at(p, &p->k, b, j, h_kv) + dim) : none;
            v[x] = j < end && has_v ? fd_load8(dtype, p->v.data, fd_kv_at(p, &p->v, b, j, h_kv) + dim) : none;
        }

        FD_UNROLL
        for (int32_t g = 0; g < heads; g++) {
            float s[UNROLL], m_new = m[g];
            FD_UNROLL
            for (int32_t x = 0; x < UNROLL; x++) {
                s[x] = 0.0f;
                FD_UNROLL
                for (int32_t i = 0; i < FD_VEC; i++) {
                    s[x] += q[g][i] * fd_element8(dtype, &k[x], i);
                }
                for (int32_t lanes = args->lanes / 2; lanes > 0; lanes /= 2) {
                    s[x] += __shfl_xor_sync(FD_FULL_MASK, s[x], lanes);
                }
                s[x] = begin + step + x < end ? p->sm_scale * s[x] : -INFINITY;
                m_new = fmaxf(m_new, s[x]);
            }

            const float shift = m_new > -INFINITY ? m_new : 0.0f; /* no key yet: exp(-inf - 0) = 0 */
            const float rescale = expf(m[g] - shift);
            m[g] = m_new;
            l[g] *= rescale;
            FD_UNROLL
            for (int32_t i = 0; i < FD_VEC; i++) {
                o[g][i] *= rescale;
            }
            FD_UNROLL
            for (int32_t x = 0; x < UNROLL; x++) {
                const float weight = expf(s[x] - shift);
                l[g] += weight;
                FD_UNROLL
                for (int32_t i = 0; i < FD_VEC; i++) {
                    o[g][i] += weight * fd_element8(dtype, &v[x], i);
                }
            }
        }
    }

    FD_UNROLL
    for (int32_t g = 0; g < heads; g++) {
        if (g < served) { /* the same for the whole block */
            fd_leave_state(&state, args, split, b, h + g, split_begin < split_end, o[g], m[g], l[g]);
            __syncthreads();
        }
    }
}

#define KERNEL(suffix, dtype, heads)                                                                                   \
    FD_KERNEL(fd_k_24_##suffix##_##heads, fd_vec_args, FD_VEC_THREADS)                                                 \
    {                                                                                                                  \
        attend(&args, dtype, heads);                                                                                   \
    }

KERNEL(f32, FD_F32, 1)
KERNEL(f32, FD_F32, 2)
KERNEL(f32, FD_F32, 4)
KERNEL(f16, FD_F16, 1)
KERNEL(f16, FD_F16, 2)
KERNEL(f16, FD_F16, 4)
KERNEL(f16, FD_F16, 8)
KERNEL(bf16, FD_BF16, 1)
KERNEL(bf16, FD_BF16, 2)
KERNEL(bf16, FD_BF16, 4)
KERNEL(bf16, FD_BF16, 8)

#define LAUNCH_UP_TO_4(suffix)                                                                                         \
    (heads == 1   ? FD_LAUNCH(fd_k_24_##suffix##_1, launch, args)                                                      \
     : heads == 2 ? FD_LAUNCH(fd_k_24_##suffix##_2, launch, args)                                                      \
                  : FD_LAUNCH(fd_k_24_##suffix##_4, launch, args))
#define LAUNCH_UP_TO_8(suffix) (heads == 8 ? FD_LAUNCH(fd_k_24_##suffix##_8, launch, args) : LAUNCH_UP_TO_4(suffix))

/* Query heads of a block: registers hold no more. */
static int32_t heads_of(const fd_problem *p)
{
    const int32_t most = p->k.dtype == FD_F32 ? HEADS / 2 : HEADS;
    int32_t heads = 1;
    while (heads < fd_group(p) && heads < most) {
        heads *= 2;
    }
    return heads;
}

/* Blocks that one split of one sequence makes. */
static int32_t blocks_of(const fd_problem *p)
{
    return p->heads_kv * ((fd_group(p) + heads_of(p) - 1) / heads_of(p));
}

/* Blocks of 128 threads that a multiprocessor's 65536 registers hold: data/measured/ptxas.csv has each kernel's. */
static int32_t resident_blocks(const fd_problem *p)
{
    const int32_t heads = heads_of(p), wide = p->k.dtype == FD_F32;
    return heads == 1 ? 4 : heads == 2 ? 4 - wide : heads == 4 ? 3 - wide : 2;
}

static fd_status plan(const fd_problem *p, const fd_machine *machine, fd_plan *plan)
{
    fd_machine filled = *machine;
    filled.blocks_per_unit = resident_blocks(p);
    const fd_split_policy policy = {
        .kind = FD_SPLIT_FILL, .tile = fd_groups(p) * UNROLL, .heads = blocks_of(p), .split_size_min = SPLIT_MIN};
    return fd_plan_runs(&policy, p, &filled, plan);
}

static fd_status run(const fd_problem *p, const fd_context *c)
{
    if (p->batch == 0) {
        return FD_OK;
    }
    const fd_vec_args args = fd_vec_args_of(p, c);
    const int32_t heads = heads_of(p);
    const fd_launch launch = {.grid = {(uint32_t)c->plan->num_splits, (uint32_t)blocks_of(p), (uint32_t)p->batch},
                              .block = {FD_VEC_THREADS, 1, 1},
                              .stream = c->stream};
    const fd_status status = p->k.dtype == FD_F32   ? LAUNCH_UP_TO_4(f32)
                             : p->k.dtype == FD_F16 ? LAUNCH_UP_TO_8(f16)
                                                    : LAUNCH_UP_TO_8(bf16);
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

FD_RUNG(fd_rung_24_gqa_packing) = {
    .size = sizeof(fd_rung),
    .abi = FD_ABI,
    .number = 24,
    .parent = 23,
    .name = "GQA packing",
    .idea = "the query heads of a KV head share one read of its keys",
    .caps = &fd_vec_caps,
    .supports = fd_vec_supports,
    .plan_bytes = fd_split_plan_bytes,
    .plan = plan,
    .workspace = fd_split_workspace,
    .run = run,
    .arith = arith,
};
