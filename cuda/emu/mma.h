/* mma.h: how a tensor core may add up the products of one output element. NVIDIA does not say, and generations differ:
 * a rung must do under every model. */
#ifndef FD_EMU_MMA_H
#define FD_EMU_MMA_H

#include "emulator.h"

/* c + a[0] b[0] + ... + a[n - 1] b[n - 1] for n <= 16 numbers that are fp16 or bf16, under one of enum fd_emu_mma. */
float emu_mma_dot(int32_t model, float c, const float *a, const float *b, int n);

#endif /* FD_EMU_MMA_H */
