/* test_emulator_mma.c: ldmatrix and mma in the emulator: every element in its place, three ways to add that agree where
 * nothing is rounded and differ as they should where something is. */
#include <math.h>
#include <mpfr.h>

#include "emu/mma.h"
#include "emulator_faults/scene.h"

enum { M = 16, N = 8, K = 32 };

/* A repeatable integer in -8 ... 8. */
static int small_integer(int i)
{
    return (int)(((uint32_t)i * 2654435761u >> 13) % 17u) - 8;
}

static fd_status run_tile(fd_async_run *kernel, int32_t fault, int32_t n, const float a[M][K], const float b[N][K],
                          float d[M][N])
{
    uint16_t am[M][K], bm[N * K];
    uint16_t (*encode)(float) = n >= 4 ? fd_bf16_from_float : fd_f16_from_float;
    for (int k = 0; k < K; k++) {
        for (int row = 0; row < M; row++) {
            am[row][k] = encode(a[row][k]);
        }
        for (int column = 0; column < N; column++) {
            bm[n % 4 == 1 ? k * N + column : column * K + k] = encode(b[column][k]);
        }
    }
    void *in = scene_upload(am, sizeof am), *in2 = scene_upload(bm, sizeof bm);
    void *out = scene_upload(d, M * N * sizeof(float));
    const fd_async_args args = {.in = in, .in2 = in2, .out = (float *)out, .n = n, .fault = fault};
    const fd_status status = kernel(&args);
    scene_download(d, out, M * N * sizeof(float));
    fd_device_emu()->release(in);
    fd_device_emu()->release(in2);
    return status;
}

static void integers_are_right(fd_async_run *kernel, int32_t n)
{
    float a[M][K], b[N][K], d[M][N];
    for (int i = 0; i < M * K; i++) {
        a[i / K][i % K] = (float)small_integer(i);
    }
    for (int i = 0; i < N * K; i++) {
        b[i / K][i % K] = (float)small_integer(i + 5000);
    }
    for (int i = 0; i < M * N; i++) {
        d[i / N][i % N] = (float)(1000 * i);
    }
    cr_assert(run_tile(kernel, 0, n, (const float(*)[K])a, (const float(*)[K])b, d) == FD_OK);
    scene_expect_clean("mma");
    for (int i = 0; i < M * N; i++) {
        int want = 1000 * i;
        for (int k = 0; k < K; k++) {
            want += (int)a[i / N][k] * (int)b[i % N][k];
        }
        cr_assert(d[i / N][i % N] == (float)want, "layout %d, row %d, column %d: %g, not %d", (int)n, i / N, i % N,
                  (double)d[i / N][i % N], want);
    }
}

Test(emulator_mma, integers_have_one_product_under_every_model)
{
    static const int32_t layouts[] = {0, 1, 2, 4, 5, 6};
    for (int32_t model = 0; model < FD_EMU_NUM_MMA; model++) {
        EACH_SCHEDULE(schedule)
        {
            for (int i = 0; i < 6; i++) {
                EACH_BUILD(mma, kernel)
                {
                    scene_configure(schedule, 0, model);
                    integers_are_right(kernel, layouts[i]);
                }
            }
        }
    }
}

Test(emulator_mma, planted_faults_are_named)
{
    static const planted faults[] = {
        {FD_MMA_MISALIGNED, 0, BOTH(FD_EMU_ALIGNMENT), BOTH("row_misaligned"), NULL},
        {FD_MMA_GLOBAL, 0, BOTH(FD_EMU_ACCESS), BOTH("row_global"), NULL},
        {FD_MMA_DIVERGENT, 0, BOTH(FD_EMU_WARP), {NULL, NULL}, "ldmatrix"},
    };
    static const float a[M][K], b[N][K];
    float d[M][N] = {{0.0f}};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        EACH_SCHEDULE(schedule)
        {
            EACH_BUILD(mma, kernel)
            {
                scene_configure(schedule, 0, 0);
                cr_assert(run_tile(kernel, faults[i].fault, 0, a, b, d) == FD_DEVICE_ERROR);
                scene_expect("mma_tile.cu", faults[i].kind[0], faults[i].marker[0], faults[i].says, "mma");
            }
        }
    }
}

/* 2^24 + sixteen products of `each`. */
static float large_and_small(int32_t model, float each)
{
    float a[16], b[16];
    for (int k = 0; k < 16; k++) {
        a[k] = each;
        b[k] = 1.0f;
    }
    return emu_mma_dot(model, 0x1p24f, a, b, 16);
}

Test(emulator_mma, the_models_differ_where_they_should)
{
    /* At 2^24 floats are 2 apart. One at a time 1 is lost, to even; together they are 16; 25 bits below 2^24 is 1/2. */
    cr_assert(large_and_small(FD_EMU_MMA_SEQUENTIAL, 1.0f) == 0x1p24f);
    cr_assert(large_and_small(FD_EMU_MMA_EXACT, 1.0f) == 0x1p24f + 16.0f);
    cr_assert(large_and_small(FD_EMU_MMA_TRUNCATED, 1.0f) == 0x1p24f + 16.0f);
    /* 1/4 is below the last bit that is kept. */
    cr_assert(large_and_small(FD_EMU_MMA_SEQUENTIAL, 0.25f) == 0x1p24f);
    cr_assert(large_and_small(FD_EMU_MMA_EXACT, 0.25f) == 0x1p24f + 4.0f);
    cr_assert(large_and_small(FD_EMU_MMA_TRUNCATED, 0.25f) == 0x1p24f);
    /* 2^24 + 1.5 is nearest to 2^24 + 2, and cut to 2^24. */
    const float a[3] = {0.5f, 0.5f, 0.5f}, one[3] = {1.0f, 1.0f, 1.0f};
    cr_assert(emu_mma_dot(FD_EMU_MMA_EXACT, 0x1p24f, a, one, 3) == 0x1p24f + 2.0f);
    cr_assert(emu_mma_dot(FD_EMU_MMA_TRUNCATED, 0x1p24f, a, one, 3) == 0x1p24f);
    cr_assert(emu_mma_dot(FD_EMU_MMA_TRUNCATED, -0x1p24f, one, (const float[]){-0.5f, -0.5f, -0.5f}, 3) == -0x1p24f);
}

Test(emulator_mma, infinity_nan_and_zero_pass_through)
{
    const float one[2] = {1.0f, 1.0f}, both[2] = {INFINITY, -INFINITY}, up[2] = {INFINITY, 1.0f},
                zero[2] = {-0.0f, -0.0f};
    for (int32_t model = 0; model < FD_EMU_NUM_MMA; model++) {
        cr_assert(isnan(emu_mma_dot(model, 0.0f, both, one, 2)), "%d", (int)model);
        cr_assert(emu_mma_dot(model, 1.0f, up, one, 2) == INFINITY, "%d", (int)model);
        cr_assert(isnan(emu_mma_dot(model, NAN, one, one, 2)), "%d", (int)model);
        cr_assert(emu_mma_dot(model, 0.0f, zero, one, 2) == 0.0f, "%d", (int)model);
        cr_assert(emu_mma_dot(model, -2.0f, one, one, 2) == 0.0f, "%d", (int)model);
    }
}

static uint64_t state = 20240607;

static uint64_t draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 20;
}

/* Sign, fraction, and an exponent in a range that makes sums cancel and products fall below the accumulator. */
static float draw_number(bool bf16, int spread)
{
    const float x = ldexpf(1.0f + (float)(draw() % 1024) / 1024.0f, (int)(draw() % (uint64_t)spread) - spread / 2);
    const float y = bf16 ? fd_float_from_bf16(fd_bf16_from_float(x)) : fd_float_from_f16(fd_f16_from_float(x));
    return draw() % 2 == 0 ? y : -y;
}

/* c + a b at a precision that loses nothing, rounded once. */
static float by_mpfr(float c, const float *a, const float *b, mpfr_rnd_t rounding)
{
    mpfr_t sum, term;
    mpfr_inits2(1200, sum, term, (mpfr_ptr)NULL);
    mpfr_set_flt(sum, c, MPFR_RNDN);
    for (int k = 0; k < 16; k++) {
        mpfr_set_d(term, (double)a[k] * (double)b[k], MPFR_RNDN);
        mpfr_add(sum, sum, term, MPFR_RNDN);
    }
    const float rounded = mpfr_get_flt(sum, rounding);
    mpfr_clears(sum, term, (mpfr_ptr)NULL);
    return rounded;
}

Test(emulator_mma, the_exact_model_rounds_the_exact_sum_once)
{
    float a[16], b[16];
    for (int i = 0; i < 20000; i++) {
        const bool bf16 = i % 2 == 1;
        const int spread = bf16 ? 2 + i % 120 : 2 + i % 14;
        for (int k = 0; k < 16; k++) {
            a[k] = draw_number(bf16, spread);
            b[k] = draw_number(bf16, spread);
        }
        if (i % 3 == 0) { /* all cancels but what is smallest */
            for (int k = 0; k < 14; k += 2) {
                a[k + 1] = -a[k];
                b[k + 1] = b[k];
            }
        }
        const float c = i % 5 == 0 ? 0.0f : draw_number(bf16, spread) * draw_number(bf16, spread);
        const float want = by_mpfr(c, a, b, MPFR_RNDN), got = emu_mma_dot(FD_EMU_MMA_EXACT, c, a, b, 16);
        cr_assert(got == want, "%d: %a, not %a", i, (double)got, (double)want);
    }
}

/* The truncated model by its definition, every term cut by MPFR. */
static float truncated_by_mpfr(float c, const float *a, const float *b)
{
    int largest = c != 0.0f ? ilogbf(c) : -10000;
    mpfr_t sum, term;
    for (int k = 0; k < 16; k++) {
        const int exponent = ilogbf(a[k]) + ilogbf(b[k]);
        largest = exponent > largest ? exponent : largest;
    }
    mpfr_inits2(1200, sum, term, (mpfr_ptr)NULL);
    mpfr_set_zero(sum, 1);
    for (int k = -1; k < 16; k++) {
        mpfr_set_d(term, k < 0 ? (double)c : (double)a[k] * (double)b[k], MPFR_RNDN);
        mpfr_mul_2si(term, term, 25 - largest, MPFR_RNDN);
        mpfr_trunc(term, term);
        mpfr_add(sum, sum, term, MPFR_RNDN);
    }
    mpfr_mul_2si(sum, sum, largest - 25, MPFR_RNDN);
    const float rounded = mpfr_get_flt(sum, MPFR_RNDZ);
    mpfr_clears(sum, term, (mpfr_ptr)NULL);
    return rounded;
}

Test(emulator_mma, the_truncated_model_cuts_every_term_on_one_grid)
{
    float a[16], b[16];
    for (int i = 0; i < 20000; i++) {
        const bool bf16 = i % 2 == 1;
        const int spread = bf16 ? 2 + i % 40 : 2 + i % 14; /* nothing below 2^-126 */
        for (int k = 0; k < 16; k++) {
            a[k] = draw_number(bf16, spread);
            b[k] = draw_number(bf16, spread);
        }
        const float c = i % 5 == 0 ? 0.0f : draw_number(bf16, spread) * draw_number(bf16, spread);
        const float want = truncated_by_mpfr(c, a, b), got = emu_mma_dot(FD_EMU_MMA_TRUNCATED, c, a, b, 16);
        cr_assert(got == want, "%d: %a, not %a", i, (double)got, (double)want);
    }
}

/* Any 16-bit pattern now and then, and in between what products of are exact, subnormal, too large, or 0. */
static float draw_operand(bool bf16, int kind)
{
    const uint16_t bits = (uint16_t)draw();
    switch (kind) {
    case 0:
        return bf16 ? fd_float_from_bf16(bits) : fd_float_from_f16(bits);
    case 1:
        return draw() % 3 == 0 ? 0.0f : draw_number(bf16, 8);
    case 2:
        return draw() % 64 == 0 ? -0.0f : draw_number(bf16, bf16 ? 250 : 30);
    case 3: /* of bf16: products below 2^-126, with bits below 2^-149 */
        return bf16 ? ldexpf(draw_number(true, 6), -67) : draw_number(false, 30);
    default:
        return draw_number(bf16, bf16 ? 124 : 12);
    }
}

/* A tile is its 128 sums, bit for bit, also where it takes a shorter way. */
Test(emulator_mma, a_tile_is_its_dots)
{
    float a[EMU_MMA_M][EMU_MMA_K], b[EMU_MMA_N][EMU_MMA_K], d[EMU_MMA_M][EMU_MMA_N], before[EMU_MMA_M][EMU_MMA_N];
    for (int i = 0; i < 4000; i++) {
        const bool bf16 = i % 2 == 1;
        const int kind = i / 2 % 5;
        const int32_t model = i % 16 == 0 ? i / 16 % FD_EMU_NUM_MMA : FD_EMU_MMA_SEQUENTIAL;
        for (int x = 0; x < EMU_MMA_M * EMU_MMA_K; x++) {
            const bool zero = x / EMU_MMA_K % 4 == 0 && i % 3 != 0; /* rows without a head */
            a[x / EMU_MMA_K][x % EMU_MMA_K] = zero ? (i % 5 == 0 ? -0.0f : 0.0f) : draw_operand(bf16, kind);
        }
        for (int x = 0; x < EMU_MMA_N * EMU_MMA_K; x++) {
            b[x / EMU_MMA_K][x % EMU_MMA_K] = i % 7 == 0 ? 0.0f : draw_operand(bf16, kind);
        }
        for (int x = 0; x < EMU_MMA_M * EMU_MMA_N; x++) {
            const float c = draw() % 9 == 0 ? -0.0f : draw() % 50 == 0 ? INFINITY : draw_number(bf16, 20);
            const float any = kind == 3 ? copysignf(0.0f, c) : draw() % 99 == 0 ? NAN : c;
            d[x / EMU_MMA_N][x % EMU_MMA_N] = before[x / EMU_MMA_N][x % EMU_MMA_N] = any;
        }
        emu_mma_tile(model, d, (const float(*)[EMU_MMA_K])a, (const float(*)[EMU_MMA_K])b);
        for (int x = 0; x < EMU_MMA_M * EMU_MMA_N; x++) {
            const int row = x / EMU_MMA_N, column = x % EMU_MMA_N;
            const float want = emu_mma_dot(model, before[row][column], a[row], b[column], EMU_MMA_K);
            cr_assert((isnan(want) && isnan(d[row][column])) ||
                          fd_bits_from_float(want) == fd_bits_from_float(d[row][column]),
                      "%d: %a, not %a", i, (double)d[row][column], (double)want);
        }
    }
}

Test(emulator_mma, pairs_are_the_numbers_they_denote)
{
    for (uint32_t bits = 0; bits < 0x10000u; bits++) {
        for (int bf16 = 0; bf16 < 2; bf16++) {
            const uint32_t pair = bits | (bits ^ 0x1234u) << 16;
            float x[2];
            emu_mma_unpack(bf16 == 1, &pair, 1, x);
            for (int i = 0; i < 2; i++) {
                const uint16_t half = (uint16_t)(pair >> 16 * i);
                const float want = bf16 == 1 ? fd_float_from_bf16(half) : fd_float_from_f16(half);
                cr_assert(fd_bits_from_float(x[i]) == fd_bits_from_float(want), "%x: %a", (unsigned)half, (double)x[i]);
            }
        }
    }
}
