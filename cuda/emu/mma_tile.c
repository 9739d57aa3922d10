/* mma_tile.c: a whole tile of mma.m16n8k16, as mma_dot.c says, in loops without branches that a compiler makes vectors of:
 * products on the emulator are most of the work of the tensor core rungs. */
#include <math.h>
#include <string.h>

#include "mma.h"

static void unpack_bf16(const uint32_t *pairs, int num_pairs, float *x)
{
    for (int i = 0; i < num_pairs; i++) {
        x[2 * i] = fd_float_from_bits(pairs[i] << 16);
        x[2 * i + 1] = fd_float_from_bits(pairs[i] & 0xffff0000u);
    }
}

/* The same bits mean 2^-112 of the number in fp32, subnormal ones too; infinity and NaN want the largest exponent. */
static uint32_t bits_of_f16(uint32_t half)
{
    const uint32_t magnitude = (half & 0x7fffu) << 13;
    const uint32_t bits = fd_bits_from_float(fd_float_from_bits(magnitude) * 0x1p112f);
    return bits | (magnitude >= 0x7c00u << 13 ? 0x7f800000u : 0u) | (half & 0x8000u) << 16;
}

static void unpack_f16(const uint32_t *pairs, int num_pairs, float *x)
{
    for (int i = 0; i < num_pairs; i++) {
        x[2 * i] = fd_float_from_bits(bits_of_f16(pairs[i]));
        x[2 * i + 1] = fd_float_from_bits(bits_of_f16(pairs[i] >> 16));
    }
}

void emu_mma_unpack(bool bf16, const uint32_t *pairs, int num_pairs, float *x)
{
    (bf16 ? unpack_bf16 : unpack_f16)(pairs, num_pairs, x);
}

/* Smallest and largest size of the numbers that are not 0, as bits, which are in the order of sizes; NaN is above all.
 * 0 and 0: there are none. */
static void sizes(const float *x, int n, int32_t *smallest, int32_t *largest)
{
    int32_t low = INT32_MAX, high = 0;
    for (int i = 0; i < n; i++) {
        const uint32_t size = fd_bits_from_float(x[i]) & 0x7fffffffu;
        const int32_t below = (int32_t)((size - 1u) ^ 0x80000000u); /* in the order of sizes; 0 comes last */
        low = below < low ? below : low;
        high = (int32_t)size > high ? (int32_t)size : high;
    }
    *smallest = (int32_t)(((uint32_t)low ^ 0x80000000u) + 1u);
    *largest = high;
}

static float of_size(int32_t size)
{
    return fd_float_from_bits((uint32_t)size);
}

/* Is each product of an a and a b exact in fp32? It is, between two 16-bit numbers, where none is subnormal. */
static bool products_are_exact(const float *a, int num_a, const float *b, int num_b)
{
    int32_t low_a, high_a, low_b, high_b;
    sizes(a, num_a, &low_a, &high_a);
    sizes(b, num_b, &low_b, &high_b);
    if (high_a == 0 || high_b == 0) {
        return high_a + high_b < 0x7f800000; /* products of 0 with what is finite */
    }
    return of_size(high_a) * of_size(high_b) < INFINITY && of_size(low_a) * of_size(low_b) >= 0x1p-126f;
}

/* A row of zeros, of which a group of few heads leaves many: it changes no sum, but -0. */
static bool adds_nothing(const float a[EMU_MMA_K], const float d[EMU_MMA_N])
{
    uint32_t size = 0, negative_zero = 0;
    for (int k = 0; k < EMU_MMA_K; k++) {
        size |= fd_bits_from_float(a[k]) << 1;
    }
    for (int column = 0; column < EMU_MMA_N; column++) {
        negative_zero |= fd_bits_from_float(d[column]) == 0x80000000u;
    }
    return (size | negative_zero) == 0;
}

/* As sequential(), where no product is rounded. The columns go side by side, for a compiler to make vectors of. */
static void all_sequential(float d[EMU_MMA_M][EMU_MMA_N], const float a[EMU_MMA_M][EMU_MMA_K],
                           const float b[EMU_MMA_N][EMU_MMA_K])
{
    float b_rows[EMU_MMA_K][EMU_MMA_N];
    for (int column = 0; column < EMU_MMA_N; column++) {
        for (int k = 0; k < EMU_MMA_K; k++) {
            b_rows[k][column] = b[column][k];
        }
    }
    for (int row = 0; row < EMU_MMA_M; row++) {
        if (adds_nothing(a[row], d[row])) {
            continue;
        }
        float sum[EMU_MMA_N];
        memcpy(sum, d[row], sizeof sum);
        for (int k = 0; k < EMU_MMA_K; k++) {
            for (int column = 0; column < EMU_MMA_N; column++) {
                sum[column] += a[row][k] * b_rows[k][column];
            }
        }
        memcpy(d[row], sum, sizeof sum);
    }
}

void emu_mma_tile(int32_t model, float d[EMU_MMA_M][EMU_MMA_N], const float a[EMU_MMA_M][EMU_MMA_K],
                  const float b[EMU_MMA_N][EMU_MMA_K])
{
    if (model == FD_EMU_MMA_SEQUENTIAL &&
        products_are_exact(a[0], EMU_MMA_M * EMU_MMA_K, b[0], EMU_MMA_N * EMU_MMA_K)) {
        all_sequential(d, a, b);
        return;
    }
    for (int row = 0; row < EMU_MMA_M; row++) {
        for (int column = 0; column < EMU_MMA_N; column++) {
            d[row][column] = emu_mma_dot(model, d[row][column], a[row], b[column], EMU_MMA_K);
        }
    }
}
