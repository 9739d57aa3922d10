#include "async.h"

enum { M = 16, N = 8, K = 32 };

/* Two elements that lie `stride` apart, the first in the low half. */
FD_DEVICE_INLINE uint32_t pair(const uint16_t *x, int32_t stride)
{
    return (uint32_t)x[0] | (uint32_t)x[stride] << 16;
}

/* Fragments by the tables of PTX's "Matrix Fragments for mma.m16n8k16": element i of a is in row g for i = 0, 1, 4, 5, else
 * in row g + 8, and in column 2t + i % 2, + 8 for i >= 4; element i of b is in row 2t + i % 2, + 8 for i >= 2, column g. */
FD_DEVICE_INLINE void by_table(uint32_t a[4], uint32_t b[2], const uint16_t *am, const uint16_t *bm)
{
    const int32_t g = (int32_t)threadIdx.x >> 2, t = (int32_t)threadIdx.x % 4;
    for (int32_t i = 0; i < 8; i += 2) {
        const int32_t row = i < 2 || (i >= 4 && i < 6) ? g : g + 8, column = 2 * t + (i >= 4 ? 8 : 0);
        a[i / 2] = pair(am + row * K + column, 1);
    }
    for (int32_t i = 0; i < 4; i += 2) {
        b[i / 2] = pair(bm + g * K + 2 * t + (i >= 2 ? 8 : 0), 1);
    }
}

FD_KERNEL(fd_k_mma_tile, fd_async_args, FD_WARP)
{
    FD_SMEM_DYN(uint16_t, a); /* [M][K], then b: [N][K] or [K][N] */
    uint16_t *b = a + M * K;
    const int32_t lane = (int32_t)threadIdx.x, layout = args.n % 4, bf16 = args.n >= 4;
    uint32_t fa[4], fb[2], all_b[4];
    float d[4];
    for (int32_t i = lane; i < M * K; i += FD_WARP) {
        a[i] = ((const uint16_t *)args.in)[i];
    }
    for (int32_t i = lane; i < K * N; i += FD_WARP) {
        b[i] = ((const uint16_t *)args.in2)[i];
    }
    __syncthreads();
    for (int32_t i = 0; i < 4; i++) {
        d[i] = args.out[(lane / 4 + 8 * (i / 2)) * N + 2 * (lane % 4) + i % 2];
    }
    if (layout == 1) {
        fd_ldmatrix_x4_trans(all_b, b + lane * N);
    } else if (args.fault == FD_MMA_MISALIGNED) {
        fd_ldmatrix_x4(all_b, b + lane % 8 * K + 8 * (lane / 8) + 4); /* FAULT row_misaligned */
    } else if (args.fault == FD_MMA_GLOBAL) {
        fd_ldmatrix_x4(all_b, args.in); /* FAULT row_global */
    } else if (args.fault == FD_MMA_DIVERGENT && lane >= 16) {
        fd_ldmatrix_x4(all_b, b + lane % 8 * K + 8 * (lane / 8)); /* FAULT upper_half */
    } else {
        fd_ldmatrix_x4(all_b, b + lane % 8 * K + 8 * (lane / 8)); /* FAULT lower_half */
    }
    for (int32_t k = 0; k < K; k += 16) {
        fd_ldmatrix_x4(fa, a + lane % 16 * K + k + 8 * (lane / 16));
        fb[0] = all_b[k / 8];
        fb[1] = all_b[k / 8 + 1];
        if (layout == 2) {
            by_table(fa, fb, a + k, b + k);
        }
        if (bf16) {
            fd_mma_bf16(d, fa, fb);
        } else {
            fd_mma_f16(d, fa, fb);
        }
    }
    for (int32_t i = 0; i < 4; i++) {
        args.out[(lane / 4 + 8 * (i / 2)) * N + 2 * (lane % 4) + i % 2] = d[i];
    }
}

fd_status FD_ASYNC(mma)(const fd_async_args *args)
{
    const fd_launch launch = {.grid = {.x = 1}, .block = {.x = FD_WARP}, .smem = (M * K + K * N) * sizeof(uint16_t)};
    return FD_LAUNCH(fd_k_mma_tile, launch, *args);
}
