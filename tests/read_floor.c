/* read_floor.c: see read_floor.h. Eight vector accumulators keep enough loads under way that addition never waits;
 * 32-byte loads where the processor has them, as 16-byte ones fall short in the level-2 cache. */
#include "read_floor.h"

#define VECTOR_BYTES 32
#define ACCUMULATORS 8
#define BLOCK_BYTES ((size_t)VECTOR_BYTES * ACCUMULATORS)

typedef uint64_t vector __attribute__((vector_size(VECTOR_BYTES)));

/* A macro, as a function with the wider target could not be inlined into one without. */
#define DEFINE_SUM_BLOCKS(name, attributes)                                                                            \
    attributes static uint64_t name(const unsigned char *data, size_t blocks)                                          \
    {                                                                                                                  \
        vector sum[ACCUMULATORS] = {{0}}, x;                                                                           \
        for (size_t block = 0; block < blocks; block++, data += BLOCK_BYTES) {                                         \
            SUM_ONE(0) SUM_ONE(1) SUM_ONE(2) SUM_ONE(3) SUM_ONE(4) SUM_ONE(5) SUM_ONE(6) SUM_ONE(7)                    \
        }                                                                                                              \
        for (int a = 1; a < ACCUMULATORS; a++) {                                                                       \
            sum[0] += sum[a];                                                                                          \
        }                                                                                                              \
        return sum[0][0] + sum[0][1] + sum[0][2] + sum[0][3];                                                          \
    }
#define SUM_ONE(a)                                                                                                     \
    memcpy(&x, data + (a)*VECTOR_BYTES, VECTOR_BYTES);                                                                 \
    sum[a] += x;

DEFINE_SUM_BLOCKS(sum_blocks, )

#ifdef __x86_64__
DEFINE_SUM_BLOCKS(sum_blocks_avx2, __attribute__((target("avx2"))))
#endif

static uint64_t sum_part(const unsigned char *data, size_t bytes)
{
    const size_t blocks = bytes / BLOCK_BYTES;
#ifdef __x86_64__
    uint64_t sum = __builtin_cpu_supports("avx2") ? sum_blocks_avx2(data, blocks) : sum_blocks(data, blocks);
#else
    uint64_t sum = sum_blocks(data, blocks);
#endif
    size_t at = blocks * BLOCK_BYTES;
    for (uint64_t word; at + sizeof word <= bytes; at += sizeof word) {
        memcpy(&word, data + at, sizeof word);
        sum += word;
    }
    for (; at < bytes; at++) {
        sum += data[at];
    }
    return sum;
}

uint64_t fd_read_sum(const void *data, size_t bytes, int32_t threads)
{
    if (threads <= 1) { /* no parallel region: small buffers are read faster than a team starts */
        return sum_part(data, bytes);
    }
    const size_t part = (bytes / (size_t)threads + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
    uint64_t sum = 0;
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : sum)
#endif
    for (int32_t t = 0; t < threads; t++) {
        const size_t begin = (size_t)t * part < bytes ? (size_t)t * part : bytes;
        const size_t end = t + 1 < threads && begin + part < bytes ? begin + part : bytes;
        sum += sum_part((const unsigned char *)data + begin, end - begin);
    }
    return sum;
}
