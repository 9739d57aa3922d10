/* one_launch.h: two ways to combine the splits of a row without waiting for a second launch. Introduced by rung 27.
 *
 *   cluster      the blocks of all splits form a cluster, 8 at most, and read each other's shared memory: no second
 *                kernel, and no state in global memory
 *   overlapping  the combine kernel is launched while the splits are computed (programmatic dependent launch), and
 *                waits for their end where its threads already are
 *
 * A third way, the last block to arrive combines, needs a counter that is 0 at the start. Workspace has arbitrary
 * contents before every call, and whoever sets the counter to 0 is one more launch. */
#ifndef FD_CUDA_ONE_LAUNCH_H
#define FD_CUDA_ONE_LAUNCH_H

#include "ring.h"

#define FD_CLUSTER_MAX 8 /* blocks; a chip may take 16, but none has to */

typedef struct fd_one_launch_args {
    fd_tensor_args t;
    fd_tensor o, lse;
    int32_t num_splits, cluster; /* cluster 1: the grid's x is one cluster, and o and lse are written here */
} fd_one_launch_args;

FD_DEVICE_INLINE void fd_store_row(const fd_one_launch_args *args, int32_t b, int32_t h, int32_t dim, const float o[4])
{
    const int64_t at = fd_row_at(&args->o, b, 0, h);
    FD_UNROLL
    for (int32_t i = 0; i < 4; i++) {
        fd_store(&args->o, at + (dim + i) * args->o.stride[3], o[i]);
    }
}

FD_DEVICE_INLINE void fd_store_row_lse(const fd_one_launch_args *args, int32_t b, int32_t h, float lse)
{
    if (args->lse.data != NULL) {
        ((float *)args->lse.data)[fd_row_at(&args->lse, b, 0, h)] = lse;
    }
}

/* ---- Cluster ----------------------------------------------------------------------------------- */

/* A block's own state, behind the warps' in its shared memory, for the other blocks of the cluster to read. */
FD_DEVICE_INLINE fd_block_states fd_shared_state_at(float *smem, const fd_warp_work *w)
{
    const int32_t pieces = 4 * w->v_chunks * 4 * FD_WARP;
    fd_block_states state = {smem + FD_MMA_WARPS * (pieces + 2 * FD_MMA_HEADS), NULL, NULL};
    state.m = state.o + pieces;
    state.l = state.m + FD_MMA_HEADS;
    return state;
}

FD_INLINE int32_t fd_shared_state_floats(int32_t head_dim_v)
{
    return fd_block_states_floats(head_dim_v) + fd_pieces_of_o(head_dim_v) * 4 * FD_WARP + 2 * FD_MMA_HEADS;
}

/* A split's weight in the sum over splits, from its m and l; to a whole warp. The identity shuffle keeps the
 * compiler from fusing the product into an addition in one kernel and not in another: both ways to combine have the
 * same bits. */
FD_DEVICE_INLINE float fd_split_weight(float m, float l, float m_all)
{
    const float weight = m > -INFINITY ? expf(m - m_all) * l : 0.0f;
    return __shfl_xor_sync(FD_FULL_MASK, weight, 0);
}

/* All threads of all blocks of the cluster call it, after the barrier behind fd_show_state(). The blocks share the
 * rows' pieces out among themselves. The sum over splits runs as in fd_k_combine_early: by fours, then across. */
FD_DEVICE_INLINE void fd_combine_cluster(const fd_one_launch_args *args, const fd_warp_work *w,
                                         const fd_block_states *states, float *smem)
{
    const fd_block_states mine = fd_shared_state_at(smem, w);
    FD_ROLLED
    for (int32_t r = w->warp; r < 4 * w->v_chunks; r += FD_MMA_WARPS) {
        float m, l, o[4];
        fd_block_piece(states, w, r, &m, &l, o);
        fd_store4(fd_piece_of_o(mine.o, w, 0, r), o[0], o[1], o[2], o[3]);
        if (fd_piece_speaks(w, r)) {
            mine.m[fd_head_of_piece(w, r)] = m;
            mine.l[fd_head_of_piece(w, r)] = l;
        }
    }
    fd_cluster_sync();

    const int32_t size = (int32_t)fd_cluster_size(), rank = (int32_t)fd_cluster_rank();
    const int has_keys = fd_tensor_kv_len(&args->t, w->b) > 0;
    FD_ROLLED
    for (int32_t r = rank + w->warp * size; r < 4 * w->v_chunks; r += size * FD_MMA_WARPS) {
        const int32_t head = fd_head_of_piece(w, r), dim = fd_dim_of_piece(w, r);
        fd_vec16 piece[FD_CLUSTER_MAX];
        float m_split = -INFINITY, l_split = 0.0f, o[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        if (w->g < size) { /* a lane weighs a split of its head: that of block g */
            m_split = *(const float *)fd_cluster_map(mine.m + head, (uint32_t)w->g);
            l_split = *(const float *)fd_cluster_map(mine.l + head, (uint32_t)w->g);
        }
        FD_UNROLL
        for (int32_t s = 0; s < FD_CLUSTER_MAX; s++) { /* all trips to other multiprocessors before any is needed */
            const fd_vec16 none = {{0, 0, 0, 0}};
            piece[s] = s < size ? fd_ld16(fd_cluster_map(fd_piece_of_o(mine.o, w, 0, r), (uint32_t)s)) : none;
        }
        float m = m_split;
        FD_UNROLL
        for (int32_t step = 16; step >= 4; step /= 2) {
            m = fmaxf(m, __shfl_xor_sync(FD_FULL_MASK, m, step));
        }
        const float weight = fd_split_weight(m_split, l_split, m);
        float l = weight;
        FD_UNROLL
        for (int32_t step = 16; step >= 4; step /= 2) {
            l += __shfl_xor_sync(FD_FULL_MASK, l, step);
        }
        FD_UNROLL
        for (int32_t four = 0; four < FD_MMA_WARPS; four++) {
            float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
            FD_UNROLL
            for (int32_t s = four; s < FD_CLUSTER_MAX; s += FD_MMA_WARPS) {
                const float factor = __shfl_sync(FD_FULL_MASK, weight, 4 * s + w->t);
                FD_UNROLL
                for (int32_t i = 0; i < 4; i++) {
                    sum[i] += factor * fd_float_from_bits(piece[s].w[i]);
                }
            }
            FD_UNROLL
            for (int32_t i = 0; i < 4; i++) {
                o[i] += sum[i];
            }
        }
        FD_UNROLL
        for (int32_t i = 0; i < 4; i++) {
            o[i] = has_keys ? o[i] / l : 0.0f;
        }
        if (head < w->served && dim < args->t.head_dim_v) {
            fd_store_row(args, w->b, w->h + head, dim, o);
        }
        if (head < w->served && fd_piece_speaks(w, r)) {
            fd_store_row_lse(args, w->b, w->h + head, has_keys ? m + logf(l) : -INFINITY);
        }
    }
    fd_cluster_sync(); /* nobody leaves while its memory is read */
}

/* ---- Overlapping ------------------------------------------------------------------------------- */

/* Grid (1, heads_q, batch), block 128: a lane holds 4 dims, and 4 more; warp w adds splits w, w + 4, ... */
FD_KERNEL(fd_k_combine_early, fd_one_launch_args, FD_MMA_THREADS)
{
    __shared__ float sum[FD_MMA_WARPS][FD_CUDA_HEAD_DIM_MAX];
    const fd_tensor_args *t = &args.t;
    const int32_t b = (int32_t)blockIdx.z, h = (int32_t)blockIdx.y, x = (int32_t)threadIdx.x;
    const int32_t warp = x / FD_WARP, lane = x % FD_WARP;
    const int64_t row = (int64_t)b * t->heads_q + h, rows = (int64_t)t->batch * t->heads_q; /* of a split */
    const int has_keys = fd_tensor_kv_len(t, b) > 0;
    fd_overlap_wait();

    float m = -INFINITY, l = 0.0f, o[2][4] = {{0.0f}};
    for (int32_t s = lane; s < args.num_splits; s += FD_WARP) {
        m = fmaxf(m, t->partial.m[s * rows + row]);
    }
    for (int32_t step = FD_WARP / 2; step > 0; step /= 2) {
        m = fmaxf(m, __shfl_xor_sync(FD_FULL_MASK, m, step));
    }
    for (int32_t first = 0; first < args.num_splits; first += FD_WARP) { /* a lane weighs a split */
        const int32_t s = first + lane;
        const float m_split = s < args.num_splits ? t->partial.m[s * rows + row] : -INFINITY;
        const float l_split = s < args.num_splits ? t->partial.l[s * rows + row] : 0.0f;
        const float weight = fd_split_weight(m_split, l_split, m);
        l += weight;
        for (int32_t i = warp; i < FD_WARP && first + i < args.num_splits; i += FD_MMA_WARPS) {
            const float factor = __shfl_sync(FD_FULL_MASK, weight, i);
            const float *from = t->partial.o + ((first + i) * rows + row) * t->head_dim_v + 4 * lane;
            FD_UNROLL
            for (int32_t y = 0; y < 2; y++) {
                if (4 * lane + y * 4 * FD_WARP < t->head_dim_v) {
                    const fd_vec16 piece = fd_ld16(from + y * 4 * FD_WARP);
                    FD_UNROLL
                    for (int32_t z = 0; z < 4; z++) {
                        o[y][z] += factor * fd_float_from_bits(piece.w[z]);
                    }
                }
            }
        }
    }
    for (int32_t step = FD_WARP / 2; step > 0; step /= 2) {
        l += __shfl_xor_sync(FD_FULL_MASK, l, step);
    }
    FD_UNROLL
    for (int32_t y = 0; y < 2; y++) {
        fd_store4(&sum[warp][4 * lane + y * 4 * FD_WARP], o[y][0], o[y][1], o[y][2], o[y][3]);
    }
    __syncthreads();
    for (int32_t dim = x; dim < t->head_dim_v; dim += FD_MMA_THREADS) {
        float total = 0.0f;
        FD_UNROLL
        for (int32_t i = 0; i < FD_MMA_WARPS; i++) {
            total += sum[i][dim];
        }
        fd_store(&args.o, fd_row_at(&args.o, b, 0, h) + dim * args.o.stride[3], has_keys ? total / l : 0.0f);
    }
    if (x == 0) {
        fd_store_row_lse(&args, b, h, has_keys ? m + logf(l) : -INFINITY);
    }
}

/* ---- A split kernel ---------------------------------------------------------------------------- */

FD_DEVICE_INLINE void fd_attend_and_combine(const fd_one_launch_args *args, int32_t dtype, int32_t dims, int32_t stages,
                                            unsigned char *smem)
{
    const fd_warp_work w = fd_warp_work_of(&args->t, dims);
    fd_warp_state state;
    if (!args->cluster) {
        fd_overlap_trigger(); /* once every block is there, the combine kernel may take what they leave free */
    }
    fd_attend(&args->t, &w, dtype, dims, stages, smem, &state);
    __syncthreads(); /* before the states, where the ring was */

    const fd_block_states states = fd_block_states_at((float *)smem, &w);
    fd_show_state(dtype, dims, &w, &state, &states);
    __syncthreads();
    if (args->cluster) {
        fd_combine_cluster(args, &w, &states, (float *)smem);
    } else {
        fd_leave_block_state(&args->t, &w, &states);
    }
}

/* ---- Host ---- */

/* How a plan wants its splits combined. */
enum fd_combine_path {
    FD_COMBINE_LAUNCH = 0, /* a second kernel */
    FD_COMBINE_OVERLAPPED, /* whose launch overlaps */
    FD_COMBINE_CLUSTER     /* none: a cluster, or a block that has all keys, writes o and lse */
};

static inline fd_one_launch_args fd_one_launch_args_of(const fd_problem *p, const fd_context *c, int32_t path)
{
    const fd_one_launch_args args = {fd_tensor_args_of(p, c), p->o, p->lse, c->plan->num_splits,
                                     path == FD_COMBINE_CLUSTER};
    return args;
}

static inline fd_launch fd_one_launch_of(const fd_problem *p, const fd_context *c, const fd_one_launch_args *args,
                                         int32_t ring_bytes)
{
    const int32_t state_bytes = fd_shared_state_floats(p->head_dim_v) * (int32_t)sizeof(float);
    const fd_launch launch = {
        .grid = {(uint32_t)c->plan->num_splits, (uint32_t)(p->heads_kv * args->t.passes), (uint32_t)p->batch},
        .block = {FD_MMA_THREADS, 1, 1},
        .smem = (uint32_t)(ring_bytes > state_bytes ? ring_bytes : state_bytes),
        .cluster = args->cluster && c->plan->num_splits > 1 ? (uint32_t)c->plan->num_splits : 0,
        .stream = c->stream};
    return launch;
}

static inline fd_status fd_launch_combine_early(const fd_problem *p, const fd_context *c,
                                                const fd_one_launch_args *args, int32_t path)
{
    const fd_launch launch = {.grid = {1, (uint32_t)p->heads_q, (uint32_t)p->batch},
                              .block = {FD_MMA_THREADS, 1, 1},
                              .overlapping = path == FD_COMBINE_OVERLAPPED,
                              .stream = c->stream};
    return path == FD_COMBINE_CLUSTER ? FD_OK : FD_LAUNCH(fd_k_combine_early, launch, *args);
}

#endif /* FD_CUDA_ONE_LAUNCH_H */
