/* 28  planned                                                            [GPU | fp32 fp16 bf16]
 *
 * Idea      No cut, ring or way to combine is best for all problems: the planner picks them, and the kernel, by the
 *           problem.
 * Changed   From 27: plan(). Splits down to 64 keys; clusters where they fit the chip and pay; three blocks a
 *           multiprocessor with small rings where splits stay long; larger rings where blocks come in waves; no
 *           combine where there is one split. What tensor cores do not take, fp32 above all, is handed to 24.
 * Why       At 512 keys 27 leaves most multiprocessors idle, and at batch 64 its last wave is nearly empty.
 * Cost      as 27, for the splits chosen
 * Launch    split, combine: as 27, the ring 32, 64 or 96 KiB at head_dim 128; or as 24
 * Numerics  As 27; or as 24. Bits depend on the machine's size through the cut alone.
 * Limits    As 23.
 * Read      tutorials/28-planned.md
 */
#include "one_launch.h"

#define SPLIT_MIN FD_MMA_TILE /* keys of a split, at least: one step of each warp */
#define CLUSTER_SPLIT 256     /* keys of a split, at most, for which a cluster of more than two beats more splits */
#define PAIR_SPLIT 1024       /* and of two */
#define SMALL_RING_SPLIT 1024 /* keys of a split, at least, from which on three blocks a multiprocessor pay */

FD_OTHER_RUNG(fd_rung_24_gqa_packing);

typedef struct planned {
    fd_plan plan;
    int32_t cuda_cores;   /* 1: rung 24 does it */
    int32_t path, stages; /* fd_combine_path; of the ring */
    int32_t reserved;
} planned;

#define KERNEL(suffix, dtype, dims, stages)                                                                            \
    FD_KERNEL(fd_k_28_##suffix##_##dims##_##stages, fd_one_launch_args, FD_MMA_THREADS)                                \
    {                                                                                                                  \
        FD_SMEM_DYN(unsigned char, smem);                                                                              \
        fd_attend_and_combine(&args, dtype, dims, stages, smem);                                                       \
    }

#define KERNELS(suffix, dtype)                                                                                         \
    KERNEL(suffix, dtype, 64, 2)                                                                                       \
    KERNEL(suffix, dtype, 64, 4)                                                                                       \
    KERNEL(suffix, dtype, 128, 1)                                                                                      \
    KERNEL(suffix, dtype, 128, 2)                                                                                      \
    KERNEL(suffix, dtype, 128, 3)                                                                                      \
    KERNEL(suffix, dtype, 256, 1)

KERNELS(f16, FD_F16)
KERNELS(bf16, FD_BF16)

#define LAUNCH(suffix)                                                                                                 \
    (dims == 64    ? stages == 2 ? FD_LAUNCH(fd_k_28_##suffix##_64_2, launch, args)                                    \
                                 : FD_LAUNCH(fd_k_28_##suffix##_64_4, launch, args)                                    \
        : dims == 128 ? stages == 1   ? FD_LAUNCH(fd_k_28_##suffix##_128_1, launch, args)                              \
                        : stages == 2 ? FD_LAUNCH(fd_k_28_##suffix##_128_2, launch, args)                              \
                                      : FD_LAUNCH(fd_k_28_##suffix##_128_3, launch, args)                              \
                      : FD_LAUNCH(fd_k_28_##suffix##_256_1, launch, args))

static const planned *planned_of(const fd_plan *plan)
{
    return (const planned *)plan;
}

static int takes_tensor_cores(const fd_problem *p)
{
    char why[128];
    return p->k.dtype != FD_F32 && fd_tensor_supports(p, why, sizeof why) == FD_OK;
}

static size_t plan_bytes(const fd_problem *p, const fd_machine *machine)
{
    (void)p, (void)machine;
    return sizeof(planned);
}

/* Of a plan whose blocks share a multiprocessor, `resident` at a time, and its bandwidth: time, in keys that one
 * block would read alone. */
static int64_t load(const fd_problem *p, const fd_machine *machine, int32_t resident, const fd_plan *plan)
{
    const int64_t blocks = (int64_t)p->heads_kv * fd_passes(p) * p->batch * plan->num_splits;
    const int64_t slots = (int64_t)machine->num_units * resident;
    return (blocks + slots - 1) / slots * resident * plan->split_size;
}

/* Do the splits fit clusters, and pay? Whole clusters lie within a part of the chip, so large ones leave some of it
 * idle. */
static int suits_cluster(const fd_problem *p, const fd_machine *machine, const fd_plan *plan)
{
    const int64_t blocks = (int64_t)p->heads_kv * fd_passes(p) * p->batch * plan->num_splits;
    if (plan->num_splits <= 2) {
        return plan->num_splits == 1 || plan->split_size <= PAIR_SPLIT;
    }
    return plan->split_size <= CLUSTER_SPLIT && blocks <= (int64_t)machine->num_units * 7 / 8;
}

static fd_status plan(const fd_problem *p, const fd_machine *machine, fd_plan *plan)
{
    const int is_new = machine->compute_capability >= 90; /* clusters, overlapping launches */
    planned chosen = {.path = is_new ? FD_COMBINE_OVERLAPPED : FD_COMBINE_LAUNCH};
    fd_plan wide, few;
    fd_status status;
    if (!takes_tensor_cores(p)) {
        status = fd_rung_24_gqa_packing.plan(p, machine, &chosen.plan);
        chosen.cuda_cores = 1;
    } else {
        int32_t ring_kib = 64;
        status = fd_tensor_plan(p, machine, 1, SPLIT_MIN, 0, &chosen.plan);
        if (status != FD_OK) {
            return status;
        }
        const int64_t alone = load(p, machine, 1, &chosen.plan);
        const int has_wide = fd_tensor_plan(p, machine, 3, SPLIT_MIN, 0, &wide) == FD_OK;
        const int has_few =
            fd_tensor_plan(p, machine, 1, SPLIT_MIN, FD_CLUSTER_MAX, &few) == FD_OK; /* else: asked for more */
        if (alone > chosen.plan.split_size) { /* more than one wave: two resident blocks even it out */
            ring_kib = 96;
        }
        if (has_few && (is_new || few.num_splits == 1) && suits_cluster(p, machine, &few)) {
            chosen.plan = few;
            chosen.path = FD_COMBINE_CLUSTER;
        } else if (has_wide && wide.split_size >= SMALL_RING_SPLIT && load(p, machine, 3, &wide) <= alone + alone / 8) {
            chosen.plan = wide;
            ring_kib = 32;
        }
        const int32_t dims = fd_dims_of(p);
        chosen.stages = dims == 256 ? 1 : dims == 128 ? ring_kib / 32 : ring_kib == 32 ? 2 : 4;
    }
    if (status == FD_OK) {
        chosen.plan.size = sizeof chosen;
        *(planned *)plan = chosen;
    }
    return status;
}

static size_t workspace(const fd_problem *p, const fd_plan *plan)
{
    return planned_of(plan)->path == FD_COMBINE_CLUSTER ? 0 : fd_split_workspace(p, plan);
}

static fd_status run(const fd_problem *p, const fd_context *c)
{
    const planned *mine = planned_of(c->plan);
    if (p->batch == 0) {
        return FD_OK;
    }
    if (mine->cuda_cores) {
        return fd_rung_24_gqa_packing.run(p, c);
    }
    const fd_one_launch_args args = fd_one_launch_args_of(p, c, mine->path);
    const int32_t dims = fd_dims_of(p), stages = mine->stages;
    const fd_launch launch = fd_one_launch_of(p, c, &args, FD_MMA_WARPS * stages * FD_STAGE_BYTES(dims));
    const fd_status status = p->k.dtype == FD_F16 ? LAUNCH(f16) : LAUNCH(bf16);
    return status == FD_OK ? fd_launch_combine_early(p, c, &args, mine->path) : status;
}

static void arith(const fd_problem *p, const fd_plan *plan, int64_t kv_len, fd_arith *a)
{
    if (planned_of(plan)->cuda_cores) {
        fd_rung_24_gqa_packing.arith(p, plan, kv_len, a);
        return;
    }
    fd_tensor_arith(p, plan, kv_len, a);
}

FD_RUNG(fd_rung_28_planned) = {
    .size = sizeof(fd_rung),
    .abi = FD_ABI,
    .number = 28,
    .parent = 27,
    .name = "planned",
    .idea = "the planner picks splits, stages, the way to combine and the kernel, by the problem",
    .caps = &fd_vec_caps,
    .supports = fd_vec_supports,
    .plan_bytes = plan_bytes,
    .plan = plan,
    .workspace = workspace,
    .run = run,
    .arith = arith,
};
