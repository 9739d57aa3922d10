/* measure.cu: see measure.h. */
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>

#include "fd_cuda.h"

#define THREADS 256
#define REPLAYS_MIN 5
#define HOLD_NS 2000000u /* longer than it takes to queue the replays; a replay after that needs no hold */

static fd_status good(cudaError_t error, const char *what, char *why, size_t n)
{
    if (error == cudaSuccess) {
        return FD_OK;
    }
    (void)cudaGetLastError();
    snprintf(why, n, "GPU: %s: %s", what, cudaGetErrorString(error));
    return FD_DEVICE_ERROR;
}

/* ---- Times ------------------------------------------------------------------------------------- */

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

/* ---- A read ------------------------------------------------------------------------------------ */

typedef struct {
    const unsigned char *k, *v;
    uint64_t chunks; /* of 16 bytes, in each */
    uint32_t *sink;
} read_args;

/* `loads` chunks a thread under way at a time. The sum is stored only if it is one value in 2^32 of one thread, which
 * the compiler cannot know to be rare. */
#define DEFINE_READ(name, loads, size)                                                                                 \
    FD_DEVICE_INLINE uint32_t name##_one(const unsigned char *data, uint64_t chunks)                                   \
    {                                                                                                                  \
        const uint64_t step = (uint64_t)gridDim.x * (size)*loads;                                                      \
        uint32_t sum = 0;                                                                                              \
        for (uint64_t block = (uint64_t)blockIdx.x * (size)*loads; block < chunks; block += step) {                    \
            fd_vec16 x[loads];                                                                                         \
            FD_UNROLL                                                                                                  \
            for (int i = 0; i < loads; i++) {                                                                          \
                const uint64_t at = block + (uint64_t)i * (size) + threadIdx.x;                                        \
                x[i] = fd_ld16_stream(data + 16 * (at < chunks ? at : chunks - 1));                                    \
            }                                                                                                          \
            FD_UNROLL                                                                                                  \
            for (int i = 0; i < loads; i++) {                                                                          \
                sum += x[i].w[0] ^ x[i].w[1] ^ x[i].w[2] ^ x[i].w[3];                                                  \
            }                                                                                                          \
        }                                                                                                              \
        return sum;                                                                                                    \
    }                                                                                                                  \
    FD_KERNEL(name, read_args, size)                                                                                   \
    {                                                                                                                  \
        const uint32_t sum = name##_one(args.k, args.chunks) + name##_one(args.v, args.chunks);                        \
        if (sum == 0x5bd1e995u && threadIdx.x == (size)-1) {                                                           \
            *args.sink = sum;                                                                                          \
        }                                                                                                              \
    }

DEFINE_READ(fd_k_read2, 2, THREADS)
DEFINE_READ(fd_k_read4, 4, THREADS)
DEFINE_READ(fd_k_read8, 8, THREADS)
DEFINE_READ(fd_k_read_alone1, 1, FD_GPU_READ_THREADS)
DEFINE_READ(fd_k_read_alone2, 2, FD_GPU_READ_THREADS)
DEFINE_READ(fd_k_read_alone4, 4, FD_GPU_READ_THREADS)
DEFINE_READ(fd_k_read_alone8, 8, FD_GPU_READ_THREADS)

/* Before anything is recorded: a graph cannot allocate. */
static fd_status read_sink(uint32_t **sink)
{
    static uint32_t *taken;
    const cudaError_t error = taken == NULL ? cudaMalloc((void **)&taken, sizeof *taken) : cudaSuccess;
    *sink = taken;
    return error == cudaSuccess ? FD_OK : fd_launch_failed("fd_k_read", error);
}

fd_status fd_gpu_read(const void *k, const void *v, size_t bytes, int way, void *stream)
{
    static const struct {
        int loads, blocks; /* blocks a multiprocessor, at most */
    } ways[FD_GPU_READ_WAYS] = {{2, 8}, {4, 4}, {4, 8}, {8, 2}, {8, 4}, {8, 8}};
    uint32_t *sink;
    int sms;
    const fd_status status = read_sink(&sink);
    const cudaError_t error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
    if (status != FD_OK || error != cudaSuccess) {
        return status != FD_OK ? status : fd_launch_failed("fd_k_read", error);
    }
    const uint64_t chunks = bytes / 16, per_block = (uint64_t)THREADS * (uint64_t)ways[way].loads;
    const uint64_t needed = (chunks + per_block - 1) / per_block, most = (uint64_t)sms * (uint64_t)ways[way].blocks;
    const read_args args = {(const unsigned char *)k, (const unsigned char *)v, chunks, sink};
    const fd_launch launch = {
        .grid = {(uint32_t)(needed < most ? needed : most), 1, 1}, .block = {THREADS, 1, 1}, .stream = stream};
    switch (ways[way].loads) {
    case 2:
        return FD_LAUNCH(fd_k_read2, launch, args);
    case 4:
        return FD_LAUNCH(fd_k_read4, launch, args);
    default:
        return FD_LAUNCH(fd_k_read8, launch, args);
    }
}

fd_status fd_gpu_read_alone(const void *k, const void *v, size_t bytes, int loads, int blocks, void *stream)
{
    uint32_t *sink;
    int shared;
    const fd_status status = read_sink(&sink);
    const cudaError_t error = cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
    if (status != FD_OK || error != cudaSuccess) {
        return status != FD_OK ? status : fd_launch_failed("fd_k_read", error);
    }
    const read_args args = {(const unsigned char *)k, (const unsigned char *)v, bytes / 16, sink};
    const fd_launch launch = {.grid = {(uint32_t)blocks, 1, 1},
                              .block = {FD_GPU_READ_THREADS, 1, 1},
                              .smem = (uint32_t)shared,
                              .stream = stream};
    switch (loads) {
    case 1:
        return FD_LAUNCH(fd_k_read_alone1, launch, args);
    case 2:
        return FD_LAUNCH(fd_k_read_alone2, launch, args);
    case 4:
        return FD_LAUNCH(fd_k_read_alone4, launch, args);
    case 8:
        return FD_LAUNCH(fd_k_read_alone8, launch, args);
    default:
        return FD_INVALID;
    }
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

/* ---- Data -------------------------------------------------------------------------------------- */

typedef struct {
    fd_tensor x;
    int64_t elements;
    uint64_t seed;
} fill_args;

FD_KERNEL(fd_k_fill, fill_args, THREADS)
{
    const int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < args.elements; i += step) {
        uint64_t z = args.seed * 0x9e3779b97f4a7c15u + (uint64_t)i; /* splitmix64's finisher */
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        z ^= z >> 31;
        fd_store(&args.x, i, (float)(int32_t)(z >> 32) * 0x1p-31f);
    }
}

fd_status fd_gpu_fill(const fd_tensor *x, int64_t elements, uint64_t seed, char *why, size_t n)
{
    const fill_args args = {*x, elements, seed};
    const fd_launch launch = {.grid = {4096, 1, 1}, .block = {THREADS, 1, 1}};
    const fd_status status = FD_LAUNCH(fd_k_fill, launch, args);
    return status == FD_OK ? good(cudaDeviceSynchronize(), "filling memory", why, n) : status;
}

/* ---- Memory ------------------------------------------------------------------------------------ */

fd_status fd_gpu_set_ones(void *data, size_t bytes, char *why, size_t n)
{
    const fd_status status = good(cudaMemset(data, 0xff, bytes), "filling memory", why, n);
    return status == FD_OK ? good(cudaDeviceSynchronize(), "filling memory", why, n) : status;
}

typedef struct {
    const uint32_t *words;
    uint64_t count;
    unsigned long long *first; /* word; count: none */
} find_args;

FD_KERNEL(fd_k_find_not_ones, find_args, THREADS)
{
    const uint64_t step = (uint64_t)gridDim.x * THREADS;
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < args.count; i += step) {
        if (args.words[i] != 0xffffffffu) {
            atomicMin(args.first, (unsigned long long)i);
        }
    }
}

fd_status fd_gpu_find_not_ones(const void *data, size_t bytes, int64_t *at, char *why, size_t n)
{
    unsigned long long first = bytes / 4, *there = NULL;
    *at = -1;
    fd_status status = good(cudaMalloc((void **)&there, sizeof first), "memory for a result", why, n);
    if (status == FD_OK) {
        status = good(cudaMemcpy(there, &first, sizeof first, cudaMemcpyHostToDevice), "looking at memory", why, n);
    }
    if (status == FD_OK) {
        const find_args args = {(const uint32_t *)data, bytes / 4, there};
        const fd_launch launch = {.grid = {4096, 1, 1}, .block = {THREADS, 1, 1}};
        status = FD_LAUNCH(fd_k_find_not_ones, launch, args);
    }
    if (status == FD_OK) {
        status = good(cudaMemcpy(&first, there, sizeof first, cudaMemcpyDeviceToHost), "looking at memory", why, n);
    }
    cudaFree(there);
    if (status == FD_OK && first < bytes / 4) {
        *at = (int64_t)(4 * first);
    }
    return status;
}

/* ---- Functions --------------------------------------------------------------------------------- */

typedef struct {
    int32_t function;
    uint32_t first;
    uint64_t count;
    float *values;
} evaluate_args;

FD_KERNEL(fd_k_evaluate, evaluate_args, THREADS)
{
    const uint64_t step = (uint64_t)gridDim.x * THREADS;
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < args.count; i += step) {
        const float x = __uint_as_float(args.first + (uint32_t)i);
        float y;
        switch (args.function) {
        case FD_GPU_EXPF:
            y = expf(x);
            break;
        case FD_GPU_LOGF:
            y = logf(x);
            break;
        case FD_GPU_EXP2F:
            y = fd_exp2(x);
            break;
        case FD_GPU_EX2_APPROX_FTZ:
            y = fd_exp2_approx(x);
            break;
        case FD_GPU_EX2_APPROX:
            asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
            break;
        case FD_GPU_LG2_APPROX_FTZ:
            asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
            break;
        default:
            asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
            break;
        }
        args.values[i] = y;
    }
}

fd_status fd_gpu_evaluate(int function, uint32_t first, size_t count, float *values, char *why, size_t n)
{
    const size_t most = (size_t)1 << 26; /* 256 MiB at a time */
    float *there = NULL;
    fd_status status = good(cudaMalloc((void **)&there, most * sizeof *there), "memory for results", why, n);
    for (size_t at = 0; at < count && status == FD_OK; at += most) {
        const size_t part = count - at < most ? count - at : most;
        const evaluate_args args = {function, first + (uint32_t)at, part, there};
        const fd_launch launch = {.grid = {4096, 1, 1}, .block = {THREADS, 1, 1}};
        status = FD_LAUNCH(fd_k_evaluate, launch, args);
        if (status == FD_OK) {
            status = good(cudaMemcpy(values + at, there, part * sizeof *values, cudaMemcpyDeviceToHost),
                          "evaluating a function", why, n);
        }
    }
    cudaFree(there);
    return status;
}

const char *fd_gpu_toolkit(void)
{
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
    return "nvcc " TEXT(__CUDACC_VER_MAJOR__) "." TEXT(__CUDACC_VER_MINOR__) "." TEXT(__CUDACC_VER_BUILD__);
}
