/* 04  tiled online softmax                                                       [CPU | any]
 *
 * Idea      Take the keys a tile at a time: logits of the tile, its maximum, then at most one rescale for the whole tile.
 * Changed   From 03: the key loop becomes tiles of 64 keys, each with 02's three small loops; the rescale moves out of
 *           the loop over keys.
 * Why       The recurrence of FlashAttention. Work on a tile has no branch and no dependence from key to key but the sum:
 *           on a GPU its logits are one matrix product, and one rescale a tile is hidden behind it.
 * Cost      bytes: as 03, nothing extra;  flops: as 03, with head_dim_v + 1 multiplications for every tile that raises the
 *           maximum instead of every key;  extra: 64 floats of logits on the stack
 * Numerics  A key pays for later tiles that raise the maximum, never for keys of its own tile: fewer rescales than 03, and
 *           a key that 03 rescales k times is rescaled at most k times here. The tile is added straight into l and o, key
 *           by key, so that the sums are as long as 03's. Bound: proofs/README.md, one level of running keys.
 * Limits    head_dim up to 1024; dense caches; no window_left.
 * Read      tutorials/04-tiled.md;  FlashAttention (Dao, Fu, Ermon, Rudra, Re 2022)
 */
#include "row.h"

#define TILE 64 /* keys: 32 KiB of K at head_dim 128 in fp32, about an L1 cache */

static void attend(const fd_problem *p, int32_t b, int32_t t, int32_t h)
{
    const int64_t kv_len = fd_visible_end(p, b, t);
    const int32_t h_kv = h / fd_group(p);
    float q[FD_HEAD_DIM_MAX], row[FD_HEAD_DIM_MAX], o[FD_HEAD_DIM_MAX] = {0.0f}, s[TILE];

    fd_load_q(p, b, t, h, q);
    float m = -INFINITY, l = 0.0f;
    /* After each tile: m = max s, l = sum exp(s - m), o = sum exp(s - m) v, each over all keys so far. */
    for (int64_t first = 0; first < kv_len; first += TILE) {
        const int64_t keys = kv_len - first < TILE ? kv_len - first : TILE;
        float m_tile = -INFINITY;
        for (int64_t j = 0; j < keys; j++) {
            fd_load_k(p, b, first + j, h_kv, row);
            s[j] = p->sm_scale * fd_dot(q, row, p->head_dim);
            m_tile = fmaxf(m_tile, s[j]);
        }
        if (m_tile > m) {
            const float alpha = expf(m - m_tile); /* 0 for the first tile: m is -infinity */
            l *= alpha;
            for (int32_t i = 0; i < p->head_dim_v; i++) {
                o[i] *= alpha;
            }
            m = m_tile;
        }
        for (int64_t j = 0; j < keys; j++) {
            const float weight = expf(s[j] - m);
            l += weight;
            fd_load_v(p, b, first + j, h_kv, row);
            for (int32_t i = 0; i < p->head_dim_v; i++) {
                o[i] += weight * row[i];
            }
        }
    }
    for (int32_t i = 0; i < p->head_dim_v; i++) {
        o[i] /= l;
    }
    fd_store_row(p, b, t, h, o, m + logf(l));
}

static fd_status run(const fd_problem *p, const fd_context *c)
{
    (void)c;
    for (int32_t b = 0; b < p->batch; b++) {
        for (int32_t t = 0; t < p->q_len; t++) {
            for (int32_t h = 0; h < p->heads_q; h++) {
                if (fd_visible_end(p, b, t) == 0) {
                    fd_store_empty(p, b, t, h);
                } else {
                    attend(p, b, t, h);
                }
            }
        }
    }
    return FD_OK;
}

static void arith(const fd_problem *p, const fd_plan *plan, int64_t kv_len, fd_arith *a)
{
    (void)p, (void)plan;
    a->invariances = FD_INV_SPLITS | FD_INV_BATCH | FD_INV_THREADS;
    a->num_levels = 1;
    a->level[0] = (fd_level){kv_len, FD_MERGE_RUNNING, FD_SEQUENTIAL, .in_order = 1};
}

const fd_rung fd_rung_04_tiled = {
    .size = sizeof(fd_rung),
    .abi = FD_ABI,
    .number = 4,
    .parent = 3,
    .name = "tiled",
    .idea = "keys in tiles of 64: at most one rescale a tile",
    .caps = &fd_readable_caps,
    .supports = fd_readable_supports,
    .run = run,
    .arith = arith,
};
