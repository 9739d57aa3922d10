/* tensor_block.h: the end of a block of tensor.h's warps.
 *
 * The warps' states meet in shared memory. o goes there as each lane has it: 4 v_chunks pieces of 4 floats, of
 * which piece r = 4e + 2y + x holds head 2t + y at dims 64e + 8g + 4x .. + 3. What belongs together has one r and
 * one lane in all warps, and neighbouring lanes are neighbours there: no two of them share a bank. */
#ifndef FD_CUDA_TENSOR_BLOCK_H
#define FD_CUDA_TENSOR_BLOCK_H

#include "tensor.h"

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

#endif /* FD_CUDA_TENSOR_BLOCK_H */
