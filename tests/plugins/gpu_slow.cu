/* Right, and does everything twice. */
#include "fd_cuda.h"
static fd_status launch_often(const fd_launch *launch, const fd_problem *problem);
#define LAUNCH(launch, args, context) launch_often(&launch, &args)
#include "gpu_plugin.h"

static fd_status launch_often(const fd_launch *launch, const fd_problem *problem)
{
    const fd_problem args = *problem;
    fd_status status = FD_OK;
    for (int i = 0; i < 2 && status == FD_OK; i++) {
        status = FD_LAUNCH(attend, *launch, args);
    }
    return status;
}
