/* merge_scene.h: what a plug-in's merge() is asked: results that rung 02 made of the parts of a cache, each in memory with
 * strides of its own, and the row-by-row comparison of what comes back. */
#ifndef FD_MERGE_SCENE_H
#define FD_MERGE_SCENE_H

#include "worker.h"

typedef struct fd_merge_cuts {
    int32_t parts;
    int64_t at[FD_WORKER_PARTS + 1]; /* part c holds the keys [at[c], at[c + 1]) of sequence 0; sequence 1 has none */
} fd_merge_cuts;

typedef struct fd_merge_scene {
    const fd_merge_cuts *cuts;
    fd_instance x;
    fd_plan *plan;
    fd_buffer workspace;
    fd_tensor o[FD_WORKER_PARTS + 1], lse[FD_WORKER_PARTS + 1]; /* of the parts; [parts] has no key in any row */
    fd_buffer o_buffer[FD_WORKER_PARTS + 1], lse_buffer[FD_WORKER_PARTS + 1];
    fd_tensor kept_o, kept_lse; /* an answer, as fd_merge_keep() found it */
    fd_buffer kept[2];
} fd_merge_scene;

/* Of shapes like these in one dtype, the first that the plug-in takes. FD_UNSUPPORTED, with its reason, if it takes none. */
fd_status fd_merge_scene_create(fd_merge_scene *s, const fd_merge_cuts *cuts, const char *family, const char *argument,
                                int32_t dtype, char *reason, char *why, size_t n);
void fd_merge_scene_free(fd_merge_scene *s);

/* Merges the parts order[count] into the instance's o and, if wanted, lse. FD_UNSUPPORTED: refused. */
fd_status fd_merge_parts(fd_merge_scene *s, const int *order, int32_t count, bool with_lse, char *why, size_t n);

/* Puts the answer at hand into kept_o and kept_lse. */
void fd_merge_keep(fd_merge_scene *s);

/* Are all rows at hand but `except` (-1: none) bit for bit those of these tensors? lse NULL: o alone is compared. */
bool fd_merge_same_rows(const fd_merge_scene *s, const fd_tensor *o, const fd_tensor *lse, int64_t except);

#endif /* FD_MERGE_SCENE_H */
