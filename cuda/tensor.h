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

#endif /* FD_CUDA_TENSOR_H */
