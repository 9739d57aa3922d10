/* Launches on CUDA's default stream, whatever stream it was given. */
#include "fd_cuda.h"
static fd_status launch_there(const fd_launch *launch, const fd_problem *problem);
#define LAUNCH(launch, args, context) launch_there(&launch, &args)
#include "gpu_plugin.h"

static fd_status launch_there(const fd_launch *launch, const fd_problem *problem)
{
    fd_launch there = *launch;
    const fd_problem args = *problem;
    there.stream = NULL;
    return FD_LAUNCH(attend, there, args);
}
