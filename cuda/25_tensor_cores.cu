/* 25  tensor cores                                                       [GPU | fp16 bf16]
 *
 * Idea      One instruction multiplies 8 query heads with 16 keys. mma.sync m16n8k16 does q.k and p v of a whole
 *           group, with fp32 accumulation; a warp does 16 keys a step.
 * Changed   From 24: a warp, not a lane group, walks a run of keys. What a lane loads are the operands of the
 *           products, 16 bytes at a time, still straight from memory: tensor.h chooses which dims and which keys a
 *           lane takes so that nothing has to be transposed. Blocks serve 8 heads always.
 * Why       In 24 each key meets each head in its own multiplications, and each logit is summed by shuffles. A
 *           group of 8 costs 8 times that; here it costs what one head does.
 * Cost      bytes: as 24 at group 8;  flops: q.k for 16 heads, of which 8 are there; p v three times;  extra: as 22
 * Launch    split:   grid (num_splits, heads_kv * ceil(group / 8), batch), block 128 = 4 warps, each with a run of
 *           keys; 16 KiB of dynamic shared memory for the warps' states at head_dim 128
 *           combine: as 22
 * Numerics  A weight is written as three 16-bit numbers whose sum it is, and multiplied in three products: a tensor
 *           core takes no fp32 operand, and one 16-bit number would cost more accuracy than all else together. The
 *           core adds 16 keys; from step to step the sum is fp32's. Bound: proofs/README.md, section 12: p_parts 3,
 *           mma_keys 16.
 * Limits    As 23; no fp32 caches, and q of the type of k and v, in rows at multiples of 16 bytes.
 * Read      tutorials/25-tensor-cores.md;  PTX ISA, "Matrix Fragments for mma.m16n8k16"
 */
#include "tensor_host.h"

#define SPLIT_MIN 256 /* keys of a split, at least */

FD_DEVICE_INLINE void attend(const fd_tensor_args *args, int32_t dtype, int32_t dims)
{
    FD_SMEM_DYN(float, smem);
    const fd_warp_work w = fd_warp_work_of(args, dims);
    fd_vec16 q[FD_K_PIECES / 2];
    fd_warp_state state;
    fd_load_q(args, &w, dims, q);
    fd_begin_state(dims, &state);

    FD_ROLLED
    for (int64_t j = w.begin; j < w.end; j += FD_MMA_KEYS) {
        fd_vec16 k[FD_K_PIECES], v[FD_V_PIECES];
        float sum[2][2][4] = {{{0.0f}}}, p[4], rescale[2];
        FD_UNROLL
        for (int32_t i = 0; i < dims / 16; i++) {
            k[i] = fd_piece(fd_k_piece(args, &w, dims, j, i));
        }
        FD_UNROLL
        for (int32_t c = 0; c < dims / 32; c++) {
            if (c < w.k_chunks) {
                fd_dot(dtype, q[c], k + 2 * c, sum);
            }
        }
        fd_weigh(dtype, args, &w, j, sum, p, &state, rescale);

        const fd_weights weights = fd_weights_of(dtype, p);
        FD_UNROLL
        for (int32_t i = 0; i < dims / 16; i++) {
            v[i] = fd_piece(fd_v_piece(args, &w, dims, j, i));
        }
        FD_UNROLL
        for (int32_t e = 0; e < dims / 64; e++) {
            if (e < w.v_chunks) {
                fd_add_values(dtype, &weights, v + 4 * e, rescale, state.o + 4 * e);
            }
        }
    }

    const fd_block_states states = fd_block_states_at(smem, &w);
    fd_show_state(dtype, dims, &w, &state, &states);
    __syncthreads();
    fd_leave_block_state(args, &w, &states);
}

#define KERNEL(suffix, dtype, dims)                                                                                    \
    FD_KERNEL(fd_k_25_##suffix##_##dims, fd_tensor_args, FD_MMA_THREADS)                                               \
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
    (dims == 64    ? FD_LAUNCH(fd_k_25_##suffix##_64, launch, args)                                                    \
     : dims == 128 ? FD_LAUNCH(fd_k_25_##suffix##_128, launch, args)                                                   \
                   : FD_LAUNCH(fd_k_25_##suffix##_256, launch, args))

static fd_status plan(const fd_problem *p, const fd_machine *machine, fd_plan *plan)
{
    return fd_tensor_plan(p, machine, fd_dims_of(p) == 256 ? 2 : 3, SPLIT_MIN, 0, plan);
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
        .smem = (uint32_t)fd_block_states_floats(p->head_dim_v) * 4,
        .stream = c->stream};
    const fd_status status = p->k.dtype == FD_F16 ? LAUNCH(f16) : LAUNCH(bf16);
    const fd_split_args combine = fd_split_args_of(p, c);
    return status == FD_OK ? fd_launch_combine(p, c, &combine) : status;
}

FD_RUNG(fd_rung_25_tensor_cores) = {
    .size = sizeof(fd_rung),
    .abi = FD_ABI,
    .number = 25,
    .parent = 24,
    .name = "tensor cores",
    .idea = "8 heads by 16 keys a product, operands straight from memory, weights in three parts",
    .caps = &fd_tensor_caps,
    .supports = fd_tensor_supports,
    .plan_bytes = fd_split_plan_bytes,
    .plan = plan,
    .workspace = fd_split_workspace,
    .run = run,
    .arith = fd_tensor_arith,
};
