/* huge.h: rungs on more than 2^31 elements, and more than 2^32 bytes, where an offset in 32 bits leads somewhere else.
 *
 *   far     a small problem whose rows lie far apart along one axis, in a reserved stretch of addresses of which only the
 *           pages with rows are touched. Any machine has the memory for it, and the same numbers in compact memory must
 *           give the same bits.
 *   dense   a problem that really is that large, in its cache or in its workspace, with an answer known bit for bit. For a
 *           GPU, whose memory holds it.
 *
 * A rung runs where it always does (execute.h): on the host, on the emulator, on a GPU. */
#ifndef FD_HUGE_H
#define FD_HUGE_H

#include "device.h"
#include "judge.h"

/* The axis of the problem along which neighbours are gibibytes apart, in every tensor that has it. */
enum fd_huge_axis { FD_HUGE_BATCH = 0, FD_HUGE_HEADS, FD_HUGE_ROWS, FD_HUGE_KEYS, FD_HUGE_DIMS, FD_HUGE_AXES };
extern const char *const fd_huge_axis_names[FD_HUGE_AXES];

typedef struct fd_huge_outcome {
    int32_t verdict;  /* FD_PASS, FD_FAIL or FD_SKIP */
    int64_t elements; /* offset of the last element of the largest tensor, or of the workspace */
    int64_t bytes;    /* of the stretch of addresses, or of memory */
    char reason[240]; /* of a failure or a skip */
} fd_huge_outcome;

/* The case, far along the axis. FD_OK whatever the verdict is; no memory, or no addresses, is a skip. Else why receives one line. */
fd_status fd_huge_far(const fd_rung *rung, const fd_case *c, enum fd_huge_axis axis, fd_huge_outcome *out, char *why,
                      size_t n);

/* One KV head, one sequence. Query head h sees a logit of 0 at one key, -256 at all others, and so o is that key's row
 * of v, and lse is 0. Eight keys are selected in turn, both ends and those around 2^31 elements among them. */
typedef struct fd_huge_dense_shape {
    const char *name;
    int64_t keys, split_size;         /* split_size_request */
    int32_t heads_q, head_dim, dtype; /* of q, k and v; at least 8 dims. o is fp32 */
} fd_huge_dense_shape;

fd_status fd_huge_dense(const fd_rung *rung, const fd_huge_dense_shape *shape, fd_huge_outcome *out, char *why,
                        size_t n);

/* ---- Memory (huge_memory.c) -------------------------------------------------------------------- */

/* A stretch of memory where a rung runs. On the host and on the emulator it takes room only where it is touched, and is 0
 * at first; on a GPU all of it is there, and all ones, a NaN in every type. */
typedef struct fd_stretch {
    const fd_device *device; /* NULL: the host */
    unsigned char *base;
    size_t bytes;
} fd_stretch;

/* FD_OK; FD_NO_MEMORY or FD_DEVICE_ERROR with one line in why. */
fd_status fd_stretch_take(fd_stretch *x, const fd_device *device, size_t bytes, char *why, size_t n);
void fd_stretch_free(fd_stretch *x); /* legal for a zeroed one */
fd_status fd_stretch_write(const fd_stretch *x, size_t at, const void *from, size_t bytes, char *why, size_t n);
fd_status fd_stretch_read(const fd_stretch *x, size_t at, void *to, size_t bytes, char *why, size_t n);

/* On a GPU: FD_INVALID, and where in why, if any byte is not all ones. Elsewhere FD_OK: what was never touched is not looked at. */
fd_status fd_stretch_untouched(const fd_stretch *x, char *why, size_t n);

/* Plan, workspace, context and run of a problem whose tensors lie where the rung runs. workspace_bytes may be NULL. */
fd_status fd_huge_run(const fd_rung *rung, const fd_device *device, const fd_problem *problem, const fd_plan *plan,
                      int64_t *workspace_bytes, char *why, size_t n);

#endif /* FD_HUGE_H */
