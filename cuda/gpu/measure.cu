/* measure.cu: see measure.h. */
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>

#include "fd_cuda.h"
#include "gpu/good.cuh"

#define REPLAYS_MIN 5
#define HOLD_NS 2000000u /* longer than it takes to queue the replays; a replay after that needs no hold */

typedef struct {
    uint64_t ns;
} hold_args;

FD_KERNEL(fd_k_hold, hold_args, 1)
{
    const uint64_t start = fd_clock();
    while (fd_clock() - start < args.ns) {
        fd_spin();
    }
}

fd_status fd_gpu_hold(void *stream)
{
    const hold_args hold = {HOLD_NS};
    const fd_launch launch = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .stream = stream};
    return FD_LAUNCH(fd_k_hold, launch, hold);
}

/* Kernel number `part` of each call of a recorded graph, in a graph of its own, one behind the other. Nodes are listed in
 * the order of their recording, of which CUDA promises nothing: calls that do not repeat are refused. */
static fd_status keep_part(cudaGraph_t *recorded, int calls, int part, int *parts, char *why, size_t n)
{
    size_t count = 0;
    fd_status status = good(cudaGraphGetNodes(*recorded, NULL, &count), "counting a graph", why, n);
    if (status != FD_OK) {
        return status;
    }
    *parts = (int)(count / (size_t)calls);
    if (part < 0 || *parts == 1) {
        return FD_OK;
    }
    cudaGraphNode_t *nodes = (cudaGraphNode_t *)calloc(count, sizeof *nodes), last = NULL;
    cudaKernelNodeParams first = {}, other = {};
    cudaGraph_t kept = NULL;
    snprintf(why, n, "no kernel %d in a call of %d", part, *parts);
    status = nodes != NULL && part < *parts ? FD_OK : FD_INVALID;
    if (status == FD_OK) {
        status = good(cudaGraphGetNodes(*recorded, nodes, &count), "listing a graph", why, n);
    }
    if (status == FD_OK) {
        status = good(cudaGraphCreate(&kept, 0), "a graph", why, n);
    }
    for (size_t i = 0; i < count && status == FD_OK; i++) {
        const size_t of = i % (size_t)*parts;
        status = good(cudaGraphKernelNodeGetParams(nodes[of], &first), "a graph's kernel", why, n);
        if (status == FD_OK) {
            status = good(cudaGraphKernelNodeGetParams(nodes[i], &other), "a graph's kernel", why, n);
        }
        if (status == FD_OK && first.func != other.func) {
            snprintf(why, n, "the calls of a graph are not of the same kernels");
            status = FD_INVALID;
        }
        if (status == FD_OK && (int)of == part) {
            cudaGraphNode_t node = NULL;
            status = good(cudaGraphAddKernelNode(&node, kept, &last, last != NULL, &other), "keeping a kernel", why, n);
            last = node;
        }
    }
    free(nodes);
    if (status == FD_OK) {
        cudaGraphDestroy(*recorded);
        *recorded = kept;
    } else if (kept != NULL) {
        cudaGraphDestroy(kept);
    }
    return status;
}

static fd_status capture(cudaStream_t stream, fd_gpu_work *work, void *data, int calls, int part, int *parts,
                         cudaGraphExec_t *graph, char *why, size_t n)
{
    cudaGraph_t recorded = NULL;
    fd_status status =
        good(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "beginning a graph", why, n);
    if (status != FD_OK) {
        return status;
    }
    fd_status called = FD_OK;
    for (int call = 0; call < calls && called == FD_OK; call++) {
        called = work(data, call, stream);
    }
    status = good(cudaStreamEndCapture(stream, &recorded), "recording a graph", why, n);
    if (called != FD_OK) {
        snprintf(why, n, "a call returned %s while a graph was recorded. %s", fd_status_name(called), fd_gpu_refused());
        status = called;
    }
    if (status == FD_OK) {
        status = keep_part(&recorded, calls, part, parts, why, n);
    }
    if (status == FD_OK) {
        status = good(cudaGraphInstantiate(graph, recorded, 0), "making a graph", why, n);
    }
    if (recorded != NULL) {
        cudaGraphDestroy(recorded);
    }
    return status;
}

/* Replays, an event before each and behind the last. */
static fd_status replay(cudaStream_t stream, cudaGraphExec_t graph, cudaEvent_t *events, int replays, int calls,
                        double *ns, char *why, size_t n)
{
    fd_status status = fd_gpu_hold(stream);
    for (int r = 0; r <= replays && status == FD_OK; r++) {
        status = good(cudaEventRecord(events[r], stream), "an event", why, n);
        if (status == FD_OK && r < replays) {
            status = good(cudaGraphLaunch(graph, stream), "replaying a graph", why, n);
        }
    }
    if (status == FD_OK) {
        status = good(cudaStreamSynchronize(stream), "a replay", why, n);
    }
    for (int r = 0; r < replays && status == FD_OK; r++) {
        float ms = 0.0f;
        status = good(cudaEventElapsedTime(&ms, events[r], events[r + 1]), "a time", why, n);
        ns[r] = 1e6 * (double)ms / calls;
    }
    return status;
}

fd_status fd_gpu_time(fd_gpu_work *work, void *data, int calls, double seconds, double *ns, int capacity, int *replays,
                      char *why, size_t n)
{
    int parts;
    return fd_gpu_time_part(work, data, calls, -1, &parts, seconds, ns, capacity, replays, why, n);
}

fd_status fd_gpu_time_part(fd_gpu_work *work, void *data, int calls, int part, int *parts, double seconds, double *ns,
                           int capacity, int *replays, char *why, size_t n)
{
    cudaStream_t stream = NULL;
    cudaGraphExec_t graph = NULL;
    cudaEvent_t *events = (cudaEvent_t *)calloc((size_t)capacity + 1, sizeof *events);
    *replays = 0;
    snprintf(why, n, "no memory for %d events", capacity);
    fd_status status = events != NULL ? FD_OK : FD_NO_MEMORY;
    for (int r = 0; r <= capacity && status == FD_OK; r++) {
        status = good(cudaEventCreate(&events[r]), "an event", why, n);
    }
    if (status == FD_OK) {
        status = good(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream", why, n);
    }
    if (status == FD_OK) {
        status = capture(stream, work, data, calls, part, parts, &graph, why, n);
    }
    if (status == FD_OK) {
        status = replay(stream, graph, events, 1, calls, ns, why, n);
    }
    if (status == FD_OK) {
        const double fit = 1e9 * seconds / (ns[0] * calls + 1.0);
        *replays = fit > capacity ? capacity : fit < REPLAYS_MIN ? REPLAYS_MIN : (int)fit;
        *replays = *replays < capacity ? *replays : capacity;
        status = replay(stream, graph, events, *replays, calls, ns, why, n);
    }
    if (graph != NULL) {
        cudaGraphExecDestroy(graph);
    }
    if (stream != NULL) {
        cudaStreamDestroy(stream);
    }
    for (int r = 0; r <= capacity && events != NULL && events[r] != NULL; r++) {
        cudaEventDestroy(events[r]);
    }
    free(events);
    return status;
}

/* One call behind a write, between two events. */
static fd_status time_call(fd_gpu_work *work, void *data, int number, void *flushed, size_t flush, cudaStream_t stream,
                           cudaEvent_t *events, char *why, size_t n)
{
    fd_status status = good(cudaMemsetAsync(flushed, number & 0xff, flush, stream), "a write", why, n);
    status = status == FD_OK ? good(cudaEventRecord(events[0], stream), "an event", why, n) : status;
    if (status == FD_OK) {
        status = work(data, number, stream);
        if (status != FD_OK) {
            snprintf(why, n, "a call returned %s while it was timed. %s", fd_status_name(status), fd_gpu_refused());
        }
    }
    return status == FD_OK ? good(cudaEventRecord(events[1], stream), "an event", why, n) : status;
}

fd_status fd_gpu_time_pairs(fd_gpu_work *run, void *run_data, fd_gpu_work *other, void *other_data, size_t flush,
                            int pairs, double *run_ns, double *other_ns, char *why, size_t n)
{
    enum { EACH = 4 }; /* events a pair */
    cudaStream_t stream = NULL;
    void *flushed = NULL;
    const int count = EACH * pairs;
    cudaEvent_t *events = (cudaEvent_t *)calloc((size_t)count + 1, sizeof *events);
    snprintf(why, n, "no memory for %d events", count);
    fd_status status = events != NULL ? FD_OK : FD_NO_MEMORY;
    for (int i = 0; i < count && status == FD_OK; i++) {
        status = good(cudaEventCreate(&events[i]), "an event", why, n);
    }
    status = status == FD_OK ? good(cudaMalloc(&flushed, flush), "memory to write over the cache", why, n) : status;
    status =
        status == FD_OK ? good(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream", why, n) : status;
    for (int i = 0; i < pairs && status == FD_OK; i++) {
        cudaEvent_t *const here = events + EACH * i;
        status = time_call(run, run_data, i, flushed, flush, stream, here, why, n);
        status = status == FD_OK ? time_call(other, other_data, i, flushed, flush, stream, here + 2, why, n) : status;
    }
    if (stream != NULL) {
        const fd_status ended = good(cudaStreamSynchronize(stream), "timed calls", why, n);
        status = status == FD_OK ? ended : status;
    }
    for (int i = 0; i < pairs && status == FD_OK; i++) {
        float ms[2] = {0.0f, 0.0f};
        status = good(cudaEventElapsedTime(&ms[0], events[EACH * i], events[EACH * i + 1]), "a time", why, n);
        status = status == FD_OK
                     ? good(cudaEventElapsedTime(&ms[1], events[EACH * i + 2], events[EACH * i + 3]), "a time", why, n)
                     : status;
        run_ns[i] = 1e6 * (double)ms[0];
        other_ns[i] = 1e6 * (double)ms[1];
    }
    if (stream != NULL) {
        cudaStreamDestroy(stream);
    }
    for (int i = 0; i < count && events != NULL && events[i] != NULL; i++) {
        cudaEventDestroy(events[i]);
    }
    cudaFree(flushed);
    free(events);
    return status;
}

typedef struct {
    int32_t unused;
} nothing_args;

FD_KERNEL(fd_k_nothing, nothing_args, 32)
{
    (void)args;
}

fd_status fd_gpu_nothing(void *stream)
{
    const nothing_args args = {0};
    const fd_launch launch = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .stream = stream};
    return FD_LAUNCH(fd_k_nothing, launch, args);
}

const char *fd_gpu_toolkit(void)
{
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
    return "nvcc " TEXT(__CUDACC_VER_MAJOR__) "." TEXT(__CUDACC_VER_MINOR__) "." TEXT(__CUDACC_VER_BUILD__);
}
