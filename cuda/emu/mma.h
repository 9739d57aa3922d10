/* mma.h: how a tensor core may add up the products of one output element. NVIDIA does not say, and generations differ:
 * a rung must do under every model. */
#ifndef FD_EMU_MMA_H
#define FD_EMU_MMA_H

#include "emulator.h"

/* c + a[0] b[0] + ... + a[n - 1] b[n - 1] for n <= 16 numbers that are fp16 or bf16, under one of enum fd_emu_mma. */
float emu_mma_dot(int32_t model, float c, const float *a, const float *b, int n);

enum { EMU_MMA_M = 16, EMU_MMA_N = 8, EMU_MMA_K = 16 }; /* of mma.m16n8k16 */

/* d += a b, each element of d as by emu_mma_dot(). b by columns. */
void emu_mma_tile(int32_t model, float d[EMU_MMA_M][EMU_MMA_N], const float a[EMU_MMA_M][EMU_MMA_K],
                  const float b[EMU_MMA_N][EMU_MMA_K]);

/* x [2 num_pairs]: fp16 or bf16 numbers in pairs, the lower half first. */
void emu_mma_unpack(bool bf16, const uint32_t *pairs, int num_pairs, float *x);

#endif /* FD_EMU_MMA_H */
