/* Wants of every tensor, and of the workspace, the alignment that the contract promises. */
#include "fd_cuda.h"
static fd_status launch_if_aligned(const fd_launch *launch, const fd_problem *problem, const fd_context *context);
#define LAUNCH(launch, args, context) launch_if_aligned(&launch, &args, context)
#include "gpu_plugin.h"

static fd_status launch_if_aligned(const fd_launch *launch, const fd_problem *problem, const fd_context *context)
{
    const fd_problem args = *problem;
    const uintptr_t wide =
        (uintptr_t)args.q.data | (uintptr_t)args.k.data | (uintptr_t)args.v.data | (uintptr_t)args.o.data;
    const uintptr_t narrow = (uintptr_t)args.lse.data | (uintptr_t)args.kv_lens.data;
    const int kept =
        wide % FD_TENSOR_ALIGNMENT == 0 && narrow % sizeof(float) == 0 && (uintptr_t)context->workspace % 256 == 0;
    return kept ? FD_LAUNCH(attend, *launch, args) : FD_INVALID;
}
