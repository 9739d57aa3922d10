/* 27  one launch                                                         [GPU | fp16 bf16]
 *
 * Idea      Do not wait for a second launch. Where a row has at most 8 splits, they are one cluster, whose blocks
 *           read each other's shared memory and write o. Else the combine's launch overlaps the splits, and its
 *           loads run in parallel.
 * Changed   From 26: the plan says which; states may stay in shared memory; fd_k_combine_early in place of
 *           fd_k_combine.
 * Why       A kernel that follows another starts when that has ended, and a launch takes as long as reading hundreds of
 *           keys. And 22's combine walks the splits one by one.
 * Cost      bytes: as 26, in a cluster without states in global memory;  flops: as 26;  extra: as 26
 * Launch    split:   as 26; in clusters of num_splits, if those are at most 8 of at most 512 keys
 *           combine: grid (1, heads_q, batch), block 128: a warp takes every fourth split, a lane 4 dims; 4 KiB of
 *           shared memory; not for clusters
 * Numerics  As 26. Both ways to combine add in one order: the same bits at the same cut.
 * Limits    As 25. Below compute capability 9.0, where there is neither: the new combine kernel, launched as in 26.
 * Read      tutorials/27-one-launch.md;  CUDA programming guide, "Thread Block Clusters", "Programmatic Dependent
 *           Launch"
 */
#include "one_launch.h"

#define SPLIT_MIN 256     /* keys of a split, at least */
#define CLUSTER_SPLIT 512 /* keys of a split of a cluster, at most: clusters fill a chip less well */

typedef struct path_plan {
    fd_plan plan;
    int32_t path, reserved; /* fd_combine_path */
} path_plan;

#define KERNEL(suffix, dtype, dims)                                                                                    \
    FD_KERNEL(fd_k_27_##suffix##_##dims, fd_one_launch_args, FD_MMA_THREADS)                                           \
    {                                                                                                                  \
        FD_SMEM_DYN(unsigned char, smem);                                                                              \
        fd_attend_and_combine(&args, dtype, dims, FD_STAGES(dims), smem);                                              \
    }

KERNEL(f16, FD_F16, 64)
KERNEL(f16, FD_F16, 128)
KERNEL(f16, FD_F16, 256)
KERNEL(bf16, FD_BF16, 64)
KERNEL(bf16, FD_BF16, 128)
KERNEL(bf16, FD_BF16, 256)

#define LAUNCH(suffix)                                                                                                 \
    (dims == 64    ? FD_LAUNCH(fd_k_27_##suffix##_64, launch, args)                                                    \
     : dims == 128 ? FD_LAUNCH(fd_k_27_##suffix##_128, launch, args)                                                   \
                   : FD_LAUNCH(fd_k_27_##suffix##_256, launch, args))

static size_t plan_bytes(const fd_problem *p, const fd_machine *machine)
{
    (void)p, (void)machine;
    return sizeof(path_plan);
}

static fd_status plan(const fd_problem *p, const fd_machine *machine, fd_plan *plan)
{
    const fd_status status = fd_tensor_plan(p, machine, 1, SPLIT_MIN, 0, plan);
    if (status == FD_OK) {
        const int cluster = plan->num_splits <= FD_CLUSTER_MAX && plan->split_size <= CLUSTER_SPLIT;
        path_plan *mine = (path_plan *)plan;
        plan->size = sizeof(path_plan);
        mine->path = machine->compute_capability < 90 ? FD_COMBINE_LAUNCH
                     : cluster                        ? FD_COMBINE_CLUSTER
                                                      : FD_COMBINE_OVERLAPPED;
        mine->reserved = 0;
    }
    return status;
}

static int32_t path_of(const fd_plan *plan)
{
    return ((const path_plan *)plan)->path;
}

static fd_status run(const fd_problem *p, const fd_context *c)
{
    if (p->batch == 0) {
        return FD_OK;
    }
    const fd_one_launch_args args = fd_one_launch_args_of(p, c, path_of(c->plan));
    const fd_launch launch = fd_one_launch_of(p, c, &args, FD_RING_BYTES);
    const int32_t dims = fd_dims_of(p);
    const fd_status status = p->k.dtype == FD_F16 ? LAUNCH(f16) : LAUNCH(bf16);
    return status == FD_OK ? fd_launch_combine_early(p, c, &args, path_of(c->plan)) : status;
}

FD_RUNG(fd_rung_27_one_launch) = {
    .size = sizeof(fd_rung),
    .abi = FD_ABI,
    .number = 27,
    .parent = 26,
    .name = "one launch",
    .idea = "no second launch to wait for: a cluster combines, or the combine's launch overlaps",
    .caps = &fd_tensor_caps,
    .supports = fd_tensor_supports,
    .plan_bytes = plan_bytes,
    .plan = plan,
    .workspace = fd_split_workspace,
    .run = run,
    .arith = fd_tensor_arith,
};
