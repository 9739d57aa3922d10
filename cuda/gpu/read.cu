/* read.cu: the read of k and v that kernels are held against; see measure.h. */
#include "fd_cuda.h"
#include "measure.h"

#define THREADS 256

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
