/* 26  async copies                                                       [GPU | fp16 bf16]
 *
 * Idea      Copies to shared memory (cp.async) run while earlier keys are computed. K and V of several steps are on
 *           their way at once, each requested again as soon as its place has been read.
 * Changed   From 25: the operands come out of a ring in shared memory, 64 KiB a block, 2 steps a warp at head_dim
 *           128. Rows are copied whole and read piece by piece; ring.h says at which 16 bytes what lies, so that no
 *           two lanes of a read share a bank. One block a multiprocessor instead of three: the copies keep the
 *           memory busy, not the blocks.
 * Why       In 25 a warp waits for K, computes, waits for V, computes. What is on its way is what its registers
 *           hold, and a request is 64 bytes of each of 8 rows: half a line.
 * Cost      bytes: as 25;  flops: as 25;  extra: fewer splits, so a smaller workspace
 * Launch    split:   grid and block as 25, 64 KiB of dynamic shared memory: each warp's ring, at the end the warps'
 *           states
 *           combine: as 22
 * Numerics  As 25, bit for bit at the same cut.
 * Limits    As 25.
 * Read      tutorials/26-async-copies.md;  PTX ISA, "cp.async"
 */
#include "ring.h"

#define SPLIT_MIN 256 /* keys of a split, at least */

FD_DEVICE_INLINE void attend(const fd_tensor_args *args, int32_t dtype, int32_t dims)
{
    FD_SMEM_DYN(unsigned char, smem);
    const fd_warp_work w = fd_warp_work_of(args, dims);
    fd_warp_state state;
    fd_attend(args, &w, dtype, dims, FD_STAGES(dims), smem, &state);
    __syncthreads(); /* before the states, where the ring was */

    const fd_block_states states = fd_block_states_at((float *)smem, &w);
    fd_show_state(dtype, dims, &w, &state, &states);
    __syncthreads();
    fd_leave_block_state(args, &w, &states);
}

#define KERNEL(suffix, dtype, dims)                                                                                    \
    FD_KERNEL(fd_k_26_##suffix##_##dims, fd_tensor_args, FD_MMA_THREADS)                                               \
    {                                                                                                                  \
        attend(&args, dtype, dims);                                                                                    \
    }

KERNEL(f16, FD_F16, 64)
KERNEL(f16, FD_F16, 128)
KERNEL(f16, FD_F16, 256)
KERNEL(bf16, FD_BF16, 64)
KERNEL(bf16, FD_BF16, 128)
KERNEL(bf16, FD_BF16, 256)

#define LAUNCH(suffix)                                                                                                 \
    (dims == 64    ? FD_LAUNCH(fd_k_26_##suffix##_64, launch, args)                                                    \
     : dims == 128 ? FD_LAUNCH(fd_k_26_##suffix##_128, launch, args)                                                   \
                   : FD_LAUNCH(fd_k_26_##suffix##_256, launch, args))

static fd_status plan(const fd_problem *p, const fd_machine *machine, fd_plan *plan)
{
    return fd_tensor_plan(p, machine, 1, SPLIT_MIN, 0, plan);
}

static fd_status run(const fd_problem *p, const fd_context *c)
{
    if (p->batch == 0) {
        return FD_OK;
    }
    const fd_tensor_args args = fd_tensor_args_of(p, c);
    const int32_t dims = fd_dims_of(p);
    const fd_launch launch = {
        .grid = {(uint32_t)c->plan->num_splits, (uint32_t)(p->heads_kv * args.passes), (uint32_t)p->batch},
        .block = {FD_MMA_THREADS, 1, 1},
        .smem = FD_RING_BYTES,
        .stream = c->stream};
    const fd_status status = p->k.dtype == FD_F16 ? LAUNCH(f16) : LAUNCH(bf16);
    const fd_split_args combine = fd_split_args_of(p, c);
    return status == FD_OK ? fd_launch_combine(p, c, &combine) : status;
}

FD_RUNG(fd_rung_26_async_copies) = {
    .size = sizeof(fd_rung),
    .abi = FD_ABI,
    .number = 26,
    .parent = 25,
    .name = "async copies",
    .idea = "copies to shared memory under way while earlier keys are computed, K and V together",
    .caps = &fd_tensor_caps,
    .supports = fd_tensor_supports,
    .plan_bytes = fd_split_plan_bytes,
    .plan = plan,
    .workspace = fd_split_workspace,
    .run = run,
    .arith = fd_tensor_arith,
};
