/* mirror.h: one run of a rung that takes device memory only. Everything it may touch is copied there with its guards,
 * and what it wrote is copied back, so that the same checks serve as on the host. */
#ifndef FD_MIRROR_H
#define FD_MIRROR_H

#include "device.h"
#include "instance.h"

#define FD_MIRROR_INPUTS 40

typedef struct fd_memory { /* of one run; every pointer of the problem leads into one of these */
    const fd_buffer *inputs[FD_MIRROR_INPUTS];
    int num_inputs;
    fd_buffer *o, *lse, *workspace;
    fd_tensor *extra; /* [num_extra] tensors that the problem does not have; moved in place */
    int num_extra;
    bool tight; /* the guards behind inputs stay here: a sanitizer sees the first byte that is read behind one */

    /* After run(), before anything is copied back: where everything still is. NULL: nothing to do. */
    fd_status (*then)(void *data, const fd_rung *rung, const fd_problem *there, const fd_context *context, char *why,
                      size_t n);
    void *then_data;
} fd_memory;

/* The tensors of a problem, in the order of their fields. */
#define FD_NUM_TENSORS 11
extern const char *const fd_tensor_names[FD_NUM_TENSORS];
void fd_problem_tensors(fd_problem *problem, fd_tensor *tensors[FD_NUM_TENSORS]);

/* The problem as the device would see it before anything is copied: tensors in device memory, host pointers. For
 * supports(), plan(), workspace() and arith(), which read no tensor. */
fd_problem fd_problem_on_device(const fd_problem *problem);

/* Copies inputs, outputs, workspace and plan to the device, runs, and copies o, lse and workspace back. FD_OK; FD_INVALID if inputs or plan were written to there; else what run() or the device says. Whether the
 * guards of o, lse and workspace are intact is left to the caller, as after a run on the host. */
fd_status fd_run_mirrored(const fd_device *device, const fd_rung *rung, const fd_problem *problem, const fd_plan *plan,
                          const fd_memory *memory, char *why, size_t n);

#endif /* FD_MIRROR_H */
