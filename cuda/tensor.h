/* tensor.h: up to 8 query heads of a group against 16 keys at a time, by one warp, on tensor cores: mma.sync
 * m16n8k16 with fp32 accumulation. Introduced by rung 25; emu/mma.c has the layout of the fragments.
 *
 * Two products, and what a lane holds of them, g = lane / 4, t = lane % 4:
 *
 *   S   = Q  K^T    rows: heads (8 of 16), columns: 8 keys     s[0], s[1]: head g, keys 2t, 2t + 1;  s[2], s[3]: + 8
 *   O^T = V^T P^T   rows: 16 dims, columns: 8 heads            o[.][0 .. 3]: heads 2t, 2t + 1 of a dim, then of the next
 *
 * S leaves the weights where the second product wants them: no exchange between lanes.
 *
 * Pieces. A sum over dims, or over keys, may run in any order if both factors run in the same one. So a lane takes
 * 16 bytes that lie together, 8 dims of a key, for what the fragments would spread over 4 places:
 *
 *   piece 2c + x of K     key 8x + g,                     dims 32c + 8t .. + 7     both halves of a k16 product, twice
 *   piece 4e + y of V     key 2t + y % 2 + 8 (y / 2),     dims 64e + 8g .. + 7     4 products of 16 dims
 *
 * and nothing has to pass through shared memory to be transposed. */
#ifndef FD_CUDA_TENSOR_H
#define FD_CUDA_TENSOR_H

#include "vec.h"

#define FD_MMA_KEYS 16 /* of a step */
#define FD_MMA_HEADS 8 /* query heads of a block */
#define FD_MMA_THREADS 128
#define FD_MMA_WARPS (FD_MMA_THREADS / FD_WARP)
#define FD_MMA_TILE (FD_MMA_WARPS * FD_MMA_KEYS)    /* split sizes are multiples of it */
#define FD_K_PIECES (2 * FD_CUDA_HEAD_DIM_MAX / 32) /* of a lane and step, at most */
#define FD_V_PIECES (4 * FD_CUDA_HEAD_DIM_MAX / 64) /* likewise; and 16-byte pieces of o that a lane ends up with */
#define FD_P_PARTS 3                                /* 16-bit numbers that a weight is written as */
#define FD_WEIGHT_SCALE(dtype) ((dtype) == FD_F16 ? 0x1p15f : 1.0f) /* fp16 ends at 2^-24: weights start near its top */

/* Rows of head_dim 16-bit elements that lie together. Strides in elements. */
typedef struct fd_rows {
    const uint16_t *data;
    int64_t batch, slot, head;
} fd_rows;

/* What the split kernels need of problem and plan, in one piece: each line of it that a multiprocessor does not
 * hold yet costs a trip to memory before the first key is asked for. */
typedef struct fd_tensor_args {
    fd_rows q, k, v;
    const int32_t *kv_lens; /* or NULL */
    int64_t kv_lens_stride, kv_capacity, split_size;
    int32_t run, group, passes; /* keys of a warp; query heads of a KV head; blocks that share them */
    int32_t head_dim, head_dim_v, batch, heads_q;
    float sm_scale;
    fd_partials partial;
} fd_tensor_args;

/* A warp's share of the work: its heads and keys, and where its lane's pieces begin. */
typedef struct fd_warp_work {
    int32_t b, h, served; /* sequence; first query head; heads, 1 .. 8 */
    int32_t warp, g, t;
    int32_t has_keys;                /* does the split hold any? */
    int64_t begin, end;              /* keys of the warp */
    const uint16_t *k_rows, *v_rows; /* key 0 of the KV head */
    const uint16_t *q, *k, *v;       /* the lane's first piece of q; of k_rows and v_rows */
    int32_t k_chunks, v_chunks;      /* of 32 dims, of 64 */
} fd_warp_work;

/* A warp's running state. m and l belong to head g; l is the lane's own share of the sum. */
typedef struct fd_warp_state {
    float m, l, o[FD_V_PIECES][4];
} fd_warp_state;

/* dims: of the kernel, a constant. 64 and 128: head_dim and head_dim_v are just that; 256: any up to it. */
FD_DEVICE_INLINE int fd_dims_are_exact(int32_t dims)
{
    return dims < FD_CUDA_HEAD_DIM_MAX;
}

FD_DEVICE_INLINE int64_t fd_tensor_kv_len(const fd_tensor_args *args, int32_t b)
{
    return args->kv_lens != NULL ? args->kv_lens[b * args->kv_lens_stride] : args->kv_capacity;
}

FD_DEVICE_INLINE fd_warp_work fd_warp_work_of(const fd_tensor_args *args, int32_t dims)
{
    fd_warp_work w;
    const int32_t t = (int32_t)threadIdx.x, lane = t % FD_WARP, h_kv = (int32_t)blockIdx.y / args->passes;
    const int32_t first = (int32_t)blockIdx.y % args->passes * FD_MMA_HEADS;
    w.b = (int32_t)blockIdx.z;
    w.h = h_kv * args->group + first;
    w.served = args->group - first < FD_MMA_HEADS ? args->group - first : FD_MMA_HEADS;
    w.warp = t / FD_WARP;
    w.g = lane / 4;
    w.t = lane % 4;
    w.k_chunks = fd_dims_are_exact(dims) ? dims / 32 : (args->head_dim + 31) / 32;
    w.v_chunks = fd_dims_are_exact(dims) ? dims / 64 : (args->head_dim_v + 63) / 64;
    const int64_t kv_len = fd_tensor_kv_len(args, w.b), split_begin = (int64_t)blockIdx.x * args->split_size;
    const int64_t split_end = split_begin + args->split_size < kv_len ? split_begin + args->split_size : kv_len;
    w.has_keys = split_begin < split_end;
    w.begin = split_begin + w.warp * args->run;
    w.end = w.begin + args->run < split_end ? w.begin + args->run : split_end;
    w.q = args->q.data + w.b * args->q.batch + (w.h + w.g) * args->q.head + 8 * w.t;
    w.k_rows = args->k.data + w.b * args->k.batch + h_kv * args->k.head;
    w.v_rows = args->v.data + w.b * args->v.batch + h_kv * args->v.head;
    w.k = w.k_rows + 8 * w.t;
    w.v = w.v_rows + 8 * w.g;
    return w;
}

/* Where the lane's piece of the 16 keys from j on lies; NULL: nowhere, and it counts as zeros. */
FD_DEVICE_INLINE const uint16_t *fd_k_piece(const fd_tensor_args *args, const fd_warp_work *w, int32_t dims, int64_t j,
                                            int32_t piece)
{
    const int64_t key = j + piece % 2 * 8 + w->g;
    const int32_t dim = piece / 2 * 32;
    const int there = key < w->end && (fd_dims_are_exact(dims) || dim + 8 * w->t < args->head_dim);
    return there ? w->k + key * args->k.slot + dim : NULL;
}

FD_DEVICE_INLINE const uint16_t *fd_v_piece(const fd_tensor_args *args, const fd_warp_work *w, int32_t dims, int64_t j,
                                            int32_t piece)
{
    const int64_t key = j + 2 * w->t + piece % 2 + piece / 2 % 2 * 8;
    const int32_t dim = piece / 4 * 64;
    const int there = key < w->end && (fd_dims_are_exact(dims) || dim + 8 * w->g < args->head_dim_v);
    return there ? w->v + key * args->v.slot + dim : NULL;
}

FD_DEVICE_INLINE fd_vec16 fd_piece(const uint16_t *at)
{
    const fd_vec16 none = {{0, 0, 0, 0}};
    return at != NULL ? fd_ld16(at) : none;
}

/* Head g's share of q, in the order of the pieces of K. A head that is not there has q = 0 and is not stored. */
FD_DEVICE_INLINE void fd_load_q(const fd_tensor_args *args, const fd_warp_work *w, int32_t dims,
                                fd_vec16 q[FD_K_PIECES / 2])
{
    FD_UNROLL
    for (int32_t c = 0; c < dims / 32; c++) {
        const int there = w->g < w->served && (fd_dims_are_exact(dims) || 32 * c + 8 * w->t < args->head_dim);
        q[c] = fd_piece(there ? w->q + 32 * c : NULL);
    }
}

FD_DEVICE_INLINE void fd_mma(int32_t dtype, float d[4], const uint32_t a[4], const uint32_t b[2])
{
    if (dtype == FD_F16) {
        fd_mma_f16(d, a, b);
    } else {
        fd_mma_bf16(d, a, b);
    }
}

/* sum [key's half of 16, half of the product] += q . k over 32 dims, for head g: two chains a key, so that one need
 * not wait for the other. */
FD_DEVICE_INLINE void fd_dot(int32_t dtype, fd_vec16 q, const fd_vec16 k[2], float sum[2][2][4])
{
    FD_UNROLL
    for (int32_t half = 0; half < 2; half++) {
        const uint32_t a[4] = {q.w[2 * half], 0, q.w[2 * half + 1], 0}; /* rows 8 .. 15: no heads */
        FD_UNROLL
        for (int32_t x = 0; x < 2; x++) {
            const uint32_t b[2] = {k[x].w[2 * half], k[x].w[2 * half + 1]};
            fd_mma(dtype, sum[x][half], a, b);
        }
    }
}

/* p = exp(s - m) of head g and the lane's 4 of the keys from j on, of which at least one is below end; 0 for those
 * that are not. m and l move on. rescale: what the sums so far of heads 2t and 2t + 1 are to be multiplied with. */
FD_DEVICE_INLINE void fd_weigh(int32_t dtype, const fd_tensor_args *args, const fd_warp_work *w, int64_t j,
                               float sum[2][2][4], float p[4], fd_warp_state *state, float rescale[2])
{
    float m = state->m, l = 0.0f;
    FD_UNROLL
    for (int32_t i = 0; i < 4; i++) {
        const float dot = sum[i / 2][0][i % 2] + sum[i / 2][1][i % 2];
        p[i] = j + 2 * w->t + i % 2 + i / 2 * 8 < w->end ? args->sm_scale * dot : -INFINITY;
        m = fmaxf(m, p[i]);
    }
    m = fmaxf(m, __shfl_xor_sync(FD_FULL_MASK, m, 1));
    m = fmaxf(m, __shfl_xor_sync(FD_FULL_MASK, m, 2));
    FD_UNROLL
    for (int32_t i = 0; i < 4; i++) {
        p[i] = expf(p[i] - m);
        l += p[i];
        p[i] *= FD_WEIGHT_SCALE(dtype);
    }
    const float factor = expf(state->m - m);
    state->m = m;
    state->l = state->l * factor + l;
    rescale[0] = __shfl_sync(FD_FULL_MASK, factor, 8 * w->t);
    rescale[1] = __shfl_sync(FD_FULL_MASK, factor, 8 * w->t + 4);
}

/* Two weights as FD_P_PARTS pairs of 16-bit numbers whose sum they are, the largest last. */
FD_DEVICE_INLINE void fd_parts(int32_t dtype, float x, float y, uint32_t part[FD_P_PARTS])
{
    FD_UNROLL
    for (int32_t i = FD_P_PARTS - 1; i >= 0; i--) {
        const uint16_t low = dtype == FD_F16 ? fd_to_f16(x) : fd_to_bf16(x);
        const uint16_t high = dtype == FD_F16 ? fd_to_f16(y) : fd_to_bf16(y);
        part[i] = (uint32_t)low | (uint32_t)high << 16;
        x -= dtype == FD_F16 ? fd_f16(low) : fd_bf16(low); /* exact: what is left has fewer bits */
        y -= dtype == FD_F16 ? fd_f16(high) : fd_bf16(high);
    }
}

/* The lane's weights of 16 keys, ready to be multiplied. */
typedef struct fd_weights {
    uint32_t b[FD_P_PARTS][2]; /* keys 2t, 2t + 1; and those + 8 */
} fd_weights;

FD_DEVICE_INLINE fd_weights fd_weights_of(int32_t dtype, const float p[4])
{
    fd_weights weights;
    uint32_t near[FD_P_PARTS], far[FD_P_PARTS];
    fd_parts(dtype, p[0], p[1], near);
    fd_parts(dtype, p[2], p[3], far);
    FD_UNROLL
    for (int32_t i = 0; i < FD_P_PARTS; i++) {
        weights.b[i][0] = near[i];
        weights.b[i][1] = far[i];
    }
    return weights;
}

/* o = o * rescale + p v over 16 keys and 64 dims. The 16 products are added by the tensor core, which cuts off what
 * it cannot hold; the sum over all steps is not left to it. */
FD_DEVICE_INLINE void fd_add_values(int32_t dtype, const fd_weights *weights, const fd_vec16 v[4],
                                    const float rescale[2], float o[4][4])
{
    FD_UNROLL
    for (int32_t i = 0; i < 4; i++) {
        float d[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        uint32_t a[4];
        FD_UNROLL
        for (int32_t y = 0; y < 2; y++) { /* word i holds 2 dims of one key; a wants 2 keys of one dim */
            const uint32_t even = v[2 * y].w[i], odd = v[2 * y + 1].w[i];
            a[2 * y] = (even & 0xffffu) | odd << 16;
            a[2 * y + 1] = even >> 16 | (odd & 0xffff0000u);
        }
        FD_UNROLL
        for (int32_t part = 0; part < FD_P_PARTS; part++) {
            fd_mma(dtype, d, a, weights->b[part]);
        }
        FD_UNROLL
        for (int32_t x = 0; x < 4; x++) {
            o[i][x] = o[i][x] * rescale[x % 2] + d[x];
        }
    }
}

FD_DEVICE_INLINE void fd_begin_state(int32_t dims, fd_warp_state *state)
{
    state->m = -INFINITY;
    state->l = 0.0f;
    FD_UNROLL
    for (int32_t i = 0; i < dims / 16; i++) {
        FD_UNROLL
        for (int32_t x = 0; x < 4; x++) {
            state->o[i][x] = 0.0f;
        }
    }
}

/* ---- The end of a block ------------------------------------------------------------------------
 *
 * The warps' states meet in shared memory. o goes there as each lane has it: 4 v_chunks pieces of 4 floats, of
 * which piece r = 4e + 2y + x holds head 2t + y at dims 64e + 8g + 4x .. + 3. What belongs together has one r and
 * one lane in all warps, and neighbouring lanes are neighbours there: no two of them share a bank. */

typedef struct fd_block_states {
    float *o, *m, *l; /* [warps, pieces, 32, 4]; [warps, 8]; [warps, 8] */
} fd_block_states;

FD_INLINE int32_t fd_pieces_of_o(int32_t head_dim_v)
{
    return 4 * ((head_dim_v + 63) / 64);
}

/* Floats that they take. */
FD_INLINE int32_t fd_block_states_floats(int32_t head_dim_v)
{
    return FD_MMA_WARPS * (fd_pieces_of_o(head_dim_v) * 4 * FD_WARP + 2 * FD_MMA_HEADS);
}

FD_DEVICE_INLINE fd_block_states fd_block_states_at(float *smem, const fd_warp_work *w)
{
    fd_block_states states = {smem, NULL, NULL};
    states.m = smem + FD_MMA_WARPS * 4 * w->v_chunks * 4 * FD_WARP;
    states.l = states.m + FD_MMA_WARPS * FD_MMA_HEADS;
    return states;
}

FD_DEVICE_INLINE float *fd_piece_of_o(float *o, const fd_warp_work *w, int32_t warp, int32_t r)
{
    return o + ((warp * 4 * w->v_chunks + r) * FD_WARP + 4 * w->g + w->t) * 4;
}

FD_DEVICE_INLINE void fd_store4(float *at, float a, float b, float c, float d)
{
    const fd_vec16 x = {{fd_bits_from_float(a), fd_bits_from_float(b), fd_bits_from_float(c), fd_bits_from_float(d)}};
    fd_st16(at, x);
}

/* The warp's state, for all to see after the block barrier that the caller has. */
FD_DEVICE_INLINE void fd_show_state(int32_t dtype, int32_t dims, const fd_warp_work *w, const fd_warp_state *state,
                                    const fd_block_states *states)
{
    const float scale = 1.0f / FD_WEIGHT_SCALE(dtype);
    float l = state->l;
    l += __shfl_xor_sync(FD_FULL_MASK, l, 1);
    l += __shfl_xor_sync(FD_FULL_MASK, l, 2);
    if (w->t == 0) {
        states->m[w->warp * FD_MMA_HEADS + w->g] = state->m;
        states->l[w->warp * FD_MMA_HEADS + w->g] = l;
    }
    FD_UNROLL
    for (int32_t r = 0; r < dims / 16; r++) {
        if (r / 4 < w->v_chunks) {
            const float(*o)[4] = &state->o[r / 4 * 4 + r % 2 * 2];
            const int32_t y = r / 2 % 2;
            fd_store4(fd_piece_of_o(states->o, w, w->warp, r), o[0][y] * scale, o[0][y + 2] * scale, o[1][y] * scale,
                      o[1][y + 2] * scale);
        }
    }
}

/* Piece r of the block's o, divided by l, and m and l of its head. */
FD_DEVICE_INLINE void fd_block_piece(const fd_block_states *states, const fd_warp_work *w, int32_t r, float *m,
                                     float *l, float o[4])
{
    const int32_t head = 2 * w->t + r / 2 % 2;
    *m = -INFINITY;
    *l = 0.0f;
    o[0] = o[1] = o[2] = o[3] = 0.0f;
    FD_UNROLL
    for (int32_t warp = 0; warp < FD_MMA_WARPS; warp++) {
        *m = fmaxf(*m, states->m[warp * FD_MMA_HEADS + head]);
    }
    const float shift = w->has_keys ? *m : 0.0f; /* no key: exp(-inf - 0) = 0 */
    FD_UNROLL
    for (int32_t warp = 0; warp < FD_MMA_WARPS; warp++) {
        const float factor = expf(states->m[warp * FD_MMA_HEADS + head] - shift);
        const fd_vec16 x = fd_ld16(fd_piece_of_o(states->o, w, warp, r));
        *l += factor * states->l[warp * FD_MMA_HEADS + head];
        FD_UNROLL
        for (int32_t i = 0; i < 4; i++) {
            o[i] += factor * fd_float_from_bits(x.w[i]);
        }
    }
    FD_UNROLL
    for (int32_t i = 0; i < 4; i++) {
        o[i] = w->has_keys ? o[i] / *l : 0.0f;
    }
}

/* Which head piece r is of, at which dims, and is it the one that speaks for its head's m and l? */
FD_DEVICE_INLINE int32_t fd_head_of_piece(const fd_warp_work *w, int32_t r)
{
    return 2 * w->t + r / 2 % 2;
}

FD_DEVICE_INLINE int32_t fd_dim_of_piece(const fd_warp_work *w, int32_t r)
{
    return r / 4 * 64 + 8 * w->g + r % 2 * 4;
}

FD_DEVICE_INLINE int fd_piece_speaks(const fd_warp_work *w, int32_t r)
{
    return r < 4 && r % 2 == 0 && w->g == 0;
}

/* The block's state leaves for the workspace. All threads call it, after the barrier. */
FD_DEVICE_INLINE void fd_leave_block_state(const fd_tensor_args *args, const fd_warp_work *w,
                                           const fd_block_states *states)
{
    const int64_t at = ((int64_t)blockIdx.x * args->batch + w->b) * args->heads_q + w->h;
    FD_ROLLED
    for (int32_t r = w->warp; r < 4 * w->v_chunks; r += FD_MMA_WARPS) {
        const int32_t head = fd_head_of_piece(w, r), dim = fd_dim_of_piece(w, r);
        float m, l, o[4];
        fd_block_piece(states, w, r, &m, &l, o);
        if (head < w->served && dim < args->head_dim_v) {
            fd_store4(args->partial.o + (at + head) * args->head_dim_v + dim, o[0], o[1], o[2], o[3]);
        }
        if (head < w->served && fd_piece_speaks(w, r)) {
            args->partial.m[at + head] = m;
            args->partial.l[at + head] = l;
        }
    }
}

/* ---- Host ---- */

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

#endif /* FD_CUDA_TENSOR_H */
