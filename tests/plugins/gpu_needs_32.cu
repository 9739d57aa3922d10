/* Wants q, k, v and o at multiples of 32 bytes, of which the contract says nothing. */
#include "fd_cuda.h"
static fd_status launch_if_aligned(const fd_launch *launch, const fd_problem *problem);
#define LAUNCH(launch, args, context) launch_if_aligned(&launch, &args)
#include "gpu_plugin.h"

static fd_status launch_if_aligned(const fd_launch *launch, const fd_problem *problem)
{
    const fd_problem args = *problem;
    const uintptr_t bits =
        (uintptr_t)args.q.data | (uintptr_t)args.k.data | (uintptr_t)args.v.data | (uintptr_t)args.o.data;
    return bits % 32 == 0 ? FD_LAUNCH(attend, *launch, args) : FD_INVALID;
}
