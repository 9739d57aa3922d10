/* scene.h: a problem made by hand, and every rung run on it by every path: not split, split in several ways, with and
 * without lse. For tests that need strides, lengths or numbers which no case of the table has. */
#ifndef FD_SCENE_H
#define FD_SCENE_H

#include "bound.h"
#include "instance.h"

typedef struct fd_path { /* as requested of the planner; 0, 0: its choice */
    int32_t num_splits;
    int64_t split_size;
} fd_path;

typedef struct fd_scene {
    fd_problem problem;
    fd_buffer q, k, v, o, lse, kv_lens;
    int64_t o_rows;       /* [o_rows] floats in want */
    float *want;          /* [batch, heads_q, head_dim_v] exact answers, as stored; NaN where the bound alone decides */
    const fd_path *paths; /* NULL: a dozen that suit short caches */
    int num_paths;
} fd_scene;

typedef struct fd_scene_shape {
    int32_t batch, heads_q, heads_kv, head_dim, head_dim_v;
    int64_t kv_capacity;
    int32_t dtype;          /* of q, k, v and o */
    const int32_t *kv_lens; /* [batch] */
} fd_scene_shape;

/* Dense tensors, sm_scale 1, NaN in every byte. The caller may move strides and pointers before judging. */
fd_status fd_scene_create(fd_scene *scene, const fd_scene_shape *shape, char *why, size_t n);
void fd_scene_free(fd_scene *scene);

/* Near-normal numbers in q and in the visible rows of k and v, times a factor each. */
void fd_scene_fill(fd_scene *scene, uint64_t seed, float q_factor, float k_factor, float v_factor);

/* One run: o and lse prefilled with NaN, workspace of its own, poisoned, or one that is handed in as it is. o_out
 * [batch, heads_q, head_dim_v], lse_out [batch, heads_q]; lse_out NULL: not wanted. FD_UNSUPPORTED if the rung refuses. */
fd_status fd_scene_run(const fd_scene *scene, const fd_rung *rung, fd_path path, enum fd_poison poison,
                       fd_buffer *workspace, float *o_out, float *lse_out, char *why, size_t n);

/* Every rung by every path: bits of want, else within the proved bound, vacuous or not; 0 and -infinity for a sequence
 * without keys; the same bits without lse; nothing written but o and lse. Rows that a rung declares to fail on are left
 * out. FD_OK, or FD_INVALID with rung, path and place in why. */
fd_status fd_scene_judge(const fd_scene *scene, const fd_rounding *rounding, char *why, size_t n);

#endif /* FD_SCENE_H */
