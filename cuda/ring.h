/* ring.h: a warp walks its keys through a ring of copies under way. Introduced by rung 26.
 *
 * A stage holds 16 keys of a warp, K's rows and V's. They are copied row by row, so that each request is whole
 * lines of memory, and read piece by piece (tensor.h), which would hit a few banks only: all rows begin at one. So
 * 16-byte chunk c of row r lies at chunk c ^ 4 (r % 2) in K, where the lanes of a quarter-warp read 64 bytes of two
 * neighbouring rows, and at c ^ (r & 6) in V, where they read 32 bytes of every other row. Warps wait for nobody
 * but their own lanes. */
#ifndef FD_CUDA_RING_H
#define FD_CUDA_RING_H

#include "tensor_host.h"

/* Stages of a warp for kernels of so many dims: 64 KiB a block, which keeps a multiprocessor's share of the memory's
 * bandwidth busy over its latency. */
#define FD_RING_BYTES (64 * 1024)
#define FD_STAGES(dims) (FD_RING_BYTES / (FD_MMA_TILE * (dims)*4))

/* A lane's view of its warp's ring. */
typedef struct fd_ring {
    unsigned char *at;      /* of the warp */
    int32_t row, chunk;     /* that the lane copies first; its rows are `32 chunks a row` apart */
    int32_t k_read, v_read; /* bytes from the row to the lane's chunk of an even group of chunks */
} fd_ring;

#define FD_ROW_BYTES(dims) ((dims)*2)
#define FD_STAGE_BYTES(dims) (2 * FD_MMA_KEYS * FD_ROW_BYTES(dims)) /* of a warp: K's rows, then V's */

FD_DEVICE_INLINE fd_ring fd_ring_of(const fd_warp_work *w, int32_t dims, int32_t stages, unsigned char *smem)
{
    const int32_t lane = 4 * w->g + w->t;
    const fd_ring ring = {smem + w->warp * stages * FD_STAGE_BYTES(dims), lane / (dims / 8), lane % (dims / 8),
                          w->g % 2 * 64 + w->t * 16, (w->g ^ 2 * w->t) * 16};
    return ring;
}

/* Copies rows j .. j + 15 of K or V. Rows from w->end on and dims that are not there become zeros; chunks that no
 * product meets stay as they are. */
FD_DEVICE_INLINE void fd_copy_rows(const fd_warp_work *w, const fd_ring *ring, int32_t dims, int64_t j,
                                   const uint16_t *from, int64_t stride, int32_t used, int32_t met, int is_v,
                                   unsigned char *to)
{
    const int32_t rows = FD_WARP / (dims / 8); /* at a time */
    const uint16_t *at = from + (j + ring->row) * stride + 8 * ring->chunk;
    const int32_t left = w->end - j < FD_MMA_KEYS ? (int32_t)(w->end - j) : FD_MMA_KEYS;
    FD_ROLLED
    for (int32_t four = 0; four < FD_MMA_KEYS / rows; four += 4) {
        FD_UNROLL
        for (int32_t i = 0; i < 4; i++) {
            const int32_t row = (four + i) * rows + ring->row, swizzle = is_v ? row & 6 : row % 2 * 4;
            const int there = row < left && (fd_dims_are_exact(dims) || 8 * ring->chunk < used);
            if (fd_dims_are_exact(dims) || 8 * ring->chunk < met) {
                fd_cp_async16(to + row * FD_ROW_BYTES(dims) + (ring->chunk ^ swizzle) * 16, at, there ? 16 : 0);
            }
            at += rows * stride;
        }
    }
}

/* Requests K of the 16 keys from j on, if the warp has any; they are one group of copies either way. */
FD_DEVICE_INLINE void fd_request_k(const fd_tensor_args *args, const fd_warp_work *w, const fd_ring *ring, int32_t dims,
                                   int64_t j, int32_t slot)
{
    if (j < w->end) {
        fd_copy_rows(w, ring, dims, j, w->k_rows, args->k.slot, args->head_dim, 32 * w->k_chunks, 0,
                     ring->at + slot * FD_STAGE_BYTES(dims));
    }
    fd_cp_commit();
}

FD_DEVICE_INLINE void fd_request_v(const fd_tensor_args *args, const fd_warp_work *w, const fd_ring *ring, int32_t dims,
                                   int64_t j, int32_t slot)
{
    if (j < w->end) {
        fd_copy_rows(w, ring, dims, j, w->v_rows, args->v.slot, args->head_dim_v, 64 * w->v_chunks, 1,
                     ring->at + slot * FD_STAGE_BYTES(dims) + FD_MMA_KEYS * FD_ROW_BYTES(dims));
    }
    fd_cp_commit();
}

FD_DEVICE_INLINE fd_vec16 fd_ring_k(const fd_warp_work *w, const fd_ring *ring, int32_t dims, int32_t slot,
                                    int32_t piece)
{
    return fd_ld16(ring->at + slot * FD_STAGE_BYTES(dims) + (piece % 2 * 8 + w->g) * FD_ROW_BYTES(dims) +
                   piece / 4 * 128 + (ring->k_read ^ piece / 2 % 2 * 64));
}

FD_DEVICE_INLINE fd_vec16 fd_ring_v(const fd_warp_work *w, const fd_ring *ring, int32_t dims, int32_t slot,
                                    int32_t piece)
{
    const int32_t row = FD_MMA_KEYS + 2 * w->t + piece % 2 + piece / 2 % 2 * 8;
    return fd_ld16(ring->at + slot * FD_STAGE_BYTES(dims) + row * FD_ROW_BYTES(dims) + piece / 4 * 128 + ring->v_read);
}

/* The oldest of 2 `stages` groups, of K or of V, has arrived, for all lanes. */
FD_DEVICE_INLINE void fd_ring_wait(int32_t stages)
{
    if (stages == 1) {
        fd_cp_wait(1);
    } else if (stages == 2) {
        fd_cp_wait(3);
    } else if (stages == 3) {
        fd_cp_wait(5);
    } else {
        fd_cp_wait(7);
    }
    __syncwarp(FD_FULL_MASK);
}

/* state of all keys of the warp. stages is a constant, 1 to 4. */
FD_DEVICE_INLINE void fd_attend(const fd_tensor_args *args, const fd_warp_work *w, int32_t dtype, int32_t dims,
                                int32_t stages, unsigned char *smem, fd_warp_state *state)
{
    const fd_ring ring = fd_ring_of(w, dims, stages, smem);
    fd_vec16 q[FD_K_PIECES / 2];
    FD_ROLLED
    for (int32_t slot = 0; slot < stages; slot++) {
        fd_request_k(args, w, &ring, dims, w->begin + slot * FD_MMA_KEYS, slot);
        fd_request_v(args, w, &ring, dims, w->begin + slot * FD_MMA_KEYS, slot);
    }
    fd_load_q(args, w, dims, q);
    fd_begin_state(dims, state);

    int32_t slot = 0;
    FD_ROLLED
    for (int64_t j = w->begin; j < w->end; j += FD_MMA_KEYS) {
        float sum[2][2][4] = {{{0.0f}}}, p[4], rescale[2];
        fd_ring_wait(stages);
        FD_UNROLL
        for (int32_t c = 0; c < dims / 32; c++) {
            if (c < w->k_chunks) {
                const fd_vec16 k[2] = {fd_ring_k(w, &ring, dims, slot, 2 * c),
                                       fd_ring_k(w, &ring, dims, slot, 2 * c + 1)};
                fd_dot(dtype, q[c], k, sum);
            }
        }
        __syncwarp(FD_FULL_MASK); /* all lanes have read what is overwritten */
        fd_request_k(args, w, &ring, dims, j + stages * FD_MMA_KEYS, slot);
        fd_weigh(dtype, args, w, j, sum, p, state, rescale);

        const fd_weights weights = fd_weights_of(dtype, p);
        fd_ring_wait(stages);
        FD_UNROLL
        for (int32_t e = 0; e < dims / 64; e++) {
            if (e < w->v_chunks) {
                fd_vec16 v[4];
                FD_UNROLL
                for (int32_t y = 0; y < 4; y++) {
                    v[y] = fd_ring_v(w, &ring, dims, slot, 4 * e + y);
                }
                fd_add_values(dtype, &weights, v, rescale, state->o + 4 * e);
            }
        }
        __syncwarp(FD_FULL_MASK); /* all lanes have read what is overwritten */
        fd_request_v(args, w, &ring, dims, j + stages * FD_MMA_KEYS, slot);
        slot = slot + 1 < stages ? slot + 1 : 0;
    }
}

#endif /* FD_CUDA_RING_H */
