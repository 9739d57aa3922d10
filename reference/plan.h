/* plan.h: where a cache is cut. Host functions choose num_splits and split_size; one helper, for host and device, says
 * which keys a split holds. C11, C++20 and CUDA C.
 *
 * Whatever is chosen, split s of a sequence of kv_len keys holds the keys [s * split_size, (s + 1) * split_size) below
 * kv_len, and num_splits * split_size is at least the largest kv_len planned for. So every key is in exactly one
 * split, and stays so for a shorter sequence: its last splits are empty, and a captured graph can be replayed. */
#ifndef FD_PLAN_H
#define FD_PLAN_H

#include "fd.h"

#ifdef __cplusplus
extern "C" {
#endif

enum fd_split_kind {
    FD_SPLIT_NONE = 0, /* one split */
    FD_SPLIT_CHUNK,    /* chunk keys a split, whatever the machine: bits depend on no batch and no card */
    FD_SPLIT_FILL      /* as many splits as keep all multiprocessors busy, and no more */
};

#define FD_GRID_YZ_MAX 65535 /* blocks along y, and along z, of a CUDA grid; along x it is 2^31 - 1 */

/* How a rung wants its cache cut. A request in the problem goes before kind, chunk and both minima. */
typedef struct fd_split_policy {
    int32_t kind;           /* fd_split_kind */
    int32_t tile;           /* keys; split_size is a multiple of it, so that splits begin where tiles do. 0: no tiles */
    int32_t heads;          /* FILL: thread blocks that one split of one sequence makes, that is heads_q, or heads_kv if
                             * a block serves its whole group */
    int32_t num_splits_max; /* FD_GRID_YZ_MAX if splits are the grid's y or z; 0: INT32_MAX */
    int64_t chunk;          /* CHUNK: keys a split, rounded up to tiles */
    int64_t split_size_min; /* FILL: keys a split at least, for a combine costs more than a few keys. 0: one tile */
    int64_t no_split_below; /* keys: nothing is split if no sequence is that long. 0: no such limit */
} fd_split_policy;

/* The keys [*begin, *end) of a split, 0 <= split < num_splits; *begin == *end == kv_len if it is empty. */
FD_INLINE void fd_split_range(const fd_plan *plan, int64_t kv_len, int32_t split, int64_t *begin, int64_t *end)
{
    const int64_t first = split * plan->split_size, behind = first + plan->split_size;
    *begin = first < kv_len ? first : kv_len;
    *end = behind < kv_len ? behind : kv_len;
}

/* The largest kv_len to plan for, in keys: of kv_lens_host, or else kv_capacity. 0: there is no key. */
int64_t fd_plan_keys(const fd_problem *problem);

/* Fills the fields of fd_plan, and no byte behind them: size is sizeof(fd_plan), which a rung that appends raises.
 * Of the problem it reads batch, kv_capacity, kv_lens_host and the two requests; of the machine, and for FILL only,
 * num_units and blocks_per_unit. The same input gives the same plan.
 *
 * split_size_request is rounded up to tiles. num_splits_request is taken as it is, with empty splits if the tiles come
 * out so; without it no split of the longest sequence is empty. What kind chooses grows to respect num_splits_max; a
 * request that passes it is refused.
 *
 * FD_OK; or FD_INVALID, one line in why (at most n bytes; NULL if n is 0), and the plan untouched: a request above
 * num_splits_max, more than 2^31 - 1 keys, a policy or a machine that makes no sense. */
fd_status fd_plan_splits(const fd_split_policy *policy, const fd_problem *problem, const fd_machine *machine,
                         fd_plan *plan, char *why, size_t n);

#ifdef __cplusplus
}
#endif

#endif /* FD_PLAN_H */
