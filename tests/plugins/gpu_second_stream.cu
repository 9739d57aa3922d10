/* Launches on a stream of its own, which nothing ties to the one that it was given. */
#ifdef __CUDACC__
#define OWN_STREAM()                                                                                                   \
    static cudaStream_t own;                                                                                           \
    if (own == NULL && cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking) != cudaSuccess) {                        \
        return FD_DEVICE_ERROR;                                                                                        \
    }
#else
#define OWN_STREAM() static char own[1];
#endif
#include "fd_cuda.h"
static fd_status launch_elsewhere(const fd_launch *launch, const fd_problem *problem);
#define LAUNCH(launch, args, context) launch_elsewhere(&launch, &args)
#include "gpu_plugin.h"

static fd_status launch_elsewhere(const fd_launch *launch, const fd_problem *problem)
{
    OWN_STREAM()
    fd_launch there = *launch;
    const fd_problem args = *problem;
    there.stream = own;
    return FD_LAUNCH(attend, there, args);
}
