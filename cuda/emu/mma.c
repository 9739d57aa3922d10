/* mma.c: ldmatrix and mma.sync.m16n8k16: what a warp does as one. Layouts: PTX ISA, "Warp-level matrix load instruction:
 * ldmatrix" and "Matrix Fragments for mma.m16n8k16 with floating point type". With g = lane / 4 and t = lane % 4:
 *
 *   a[0] row g, a[1] row g + 8: columns 2t, 2t + 1;  a[2], a[3] the same rows, columns 2t + 8, 2t + 9
 *   b[0] column g, rows 2t, 2t + 1;                  b[1] rows 2t + 8, 2t + 9
 *   d[0], d[1] row g, columns 2t, 2t + 1;            d[2], d[3] row g + 8 */
#include "mma.h"

#include <string.h>

#include "block.h"
#include "observe.h"

/* What a lane hands in; it lies on the lane's stack until all have met. */
typedef struct operands {
    float *d;
    const uint32_t *a, *b;
    uint32_t *r;
    const void *row;
} operands;

static const operands *of_lane(const emu_warp *warp, int lane)
{
    return (const operands *)(uintptr_t)warp->threads[lane].value;
}

/* Matrix i of four 8 x 8 ones: its row r is at the address of lane 8 i + r. */
static void load_matrices(const emu_warp *warp, bool transpose)
{
    for (int i = 0; i < 4; i++) {
        uint16_t x[8][8];
        for (int r = 0; r < 8; r++) {
            memcpy(x[r], of_lane(warp, 8 * i + r)->row, sizeof x[r]);
        }
        for (int lane = 0; lane < FD_WARP; lane++) {
            const int g = lane / 4, t = lane % 4;
            const uint16_t low = transpose ? x[2 * t][g] : x[g][2 * t];
            const uint16_t high = transpose ? x[2 * t + 1][g] : x[g][2 * t + 1];
            of_lane(warp, lane)->r[i] = (uint32_t)low | (uint32_t)high << 16;
        }
    }
}

static void multiply(const emu_warp *warp, bool bf16)
{
    static uint32_t a_pairs[EMU_MMA_M][EMU_MMA_K / 2], b_pairs[EMU_MMA_N][EMU_MMA_K / 2];
    static float a[EMU_MMA_M][EMU_MMA_K], b_columns[EMU_MMA_N][EMU_MMA_K];
    static float d[EMU_MMA_M][EMU_MMA_N];
    for (int lane = 0; lane < FD_WARP; lane++) {
        const operands *x = of_lane(warp, lane);
        const int g = lane / 4, t = lane % 4;
        for (int half = 0; half < 2; half++) {
            a_pairs[g][t + 4 * half] = x->a[2 * half];
            a_pairs[g + 8][t + 4 * half] = x->a[2 * half + 1];
            b_pairs[g][t + 4 * half] = x->b[half];
        }
        memcpy(&d[g][2 * t], x->d, 2 * sizeof *x->d);
        memcpy(&d[g + 8][2 * t], x->d + 2, 2 * sizeof *x->d);
    }
    emu_mma_unpack(bf16, a_pairs[0], EMU_MMA_M * EMU_MMA_K / 2, a[0]);
    emu_mma_unpack(bf16, b_pairs[0], EMU_MMA_N * EMU_MMA_K / 2, b_columns[0]);
    emu_mma_tile(emu_options.mma, d, (const float(*)[EMU_MMA_K])a, (const float(*)[EMU_MMA_K])b_columns);
    for (int lane = 0; lane < FD_WARP; lane++) {
        const operands *x = of_lane(warp, lane);
        const int g = lane / 4, t = lane % 4;
        memcpy(x->d, &d[g][2 * t], 2 * sizeof *x->d);
        memcpy(x->d + 2, &d[g + 8][2 * t], 2 * sizeof *x->d);
    }
}

void emu_matrix(const emu_warp *warp, int operation)
{
    if (operation == FD_EMU_LDMATRIX || operation == FD_EMU_LDMATRIX_TRANS) {
        load_matrices(warp, operation == FD_EMU_LDMATRIX_TRANS);
    } else {
        multiply(warp, operation == FD_EMU_MMA_BF16);
    }
}

void fd_emu_ldmatrix(int operation, uint32_t r[4], const void *row, const char *file, int line)
{
    const operands mine = {.r = r, .row = row};
    if ((uintptr_t)row % 16 != 0) {
        emu_report(FD_EMU_ALIGNMENT, file, line, "ldmatrix of a row at an address that is %u past a multiple of 16",
                   (unsigned)((uintptr_t)row % 16));
        emu_fail();
    }
    if (!emu_is_own_shared(emu_self()->warp->block, row, 16)) {
        emu_report(FD_EMU_ACCESS, file, line, "ldmatrix of a row that is not in shared memory of the block");
        emu_fail();
    }
    emu_observe_access(row, 16, false, false, __builtin_return_address(0));
    fd_emu_exchange(operation, FD_FULL_MASK, (uint64_t)(uintptr_t)&mine, 0, file, line);
}

void fd_emu_mma(int operation, float d[4], const uint32_t a[4], const uint32_t b[2], const char *file, int line)
{
    const operands mine = {.d = d, .a = a, .b = b};
    fd_emu_exchange(operation, FD_FULL_MASK, (uint64_t)(uintptr_t)&mine, 0, file, line);
}
