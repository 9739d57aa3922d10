/* test_oracle_fast.c: the fast oracle against the plain one at FD_ORACLE_EXACT_BITS, on inputs chosen to break it. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "oracle_compare.h"
#include "oracle_exp.h"
#include "oracle_fast.h"
#include "test_oracle.h"

/* ---- Both on one row --------------------------------------------------------------------------- */

static void expect_agreement(const fd_problem *p, int32_t b, int32_t t, int32_t h, int bits, const char *what)
{
    fd_oracle_row fast, plain;
    fd_disagreement d = {0};
    char why[256] = "";
    cr_assert(fd_oracle_row_init(&fast, p->kv_capacity, p->head_dim_v) == FD_OK &&
                  fd_oracle_row_init(&plain, p->kv_capacity, p->head_dim_v) == FD_OK,
              "out of memory");
    cr_assert_eq(fd_oracle_fast(p, b, t, h, &fast, why, sizeof why), FD_OK, "%s: %s", what, why);
    cr_assert_eq(fd_oracle(p, b, t, h, bits, &plain, why, sizeof why), FD_OK, "%s: %s", what, why);
    fd_oracle_compare(&fast, &plain, p->head_dim, &d);
    cr_expect(fd_oracle_agree(&d), "%s: %s[%lld] is %.3g radii or %.3g units apart", what, d.where, (long long)d.index,
              d.radii, d.other);
    for (int32_t i = 0; i < p->head_dim_v; i++) {
        cr_expect(fast.radius[i] <= 0x1p-60 * fast.gauge[i] + 0x1p-999, "%s: radius[%d] %g of the gauge %g", what, i,
                  fast.radius[i], fast.gauge[i]);
    }
    cr_expect(fast.kv_len == 0 || fast.lse_radius <= 0x1p-60 + 0x1p-104 * fabs(fast.lse), "%s: lse_radius %g", what,
              fast.lse_radius);
    fd_oracle_row_free(&fast);
    fd_oracle_row_free(&plain);
}

/* One head, one dimension of q and k unless head_dim says more; then p is dropped. */
static void expect_small(fd_problem p, const char *what)
{
    expect_agreement(&p, 0, 0, 0, FD_ORACLE_EXACT_BITS, what);
    drop(&p);
}

/* ---- Adversarial rows -------------------------------------------------------------------------- */

/* A key of weight 1 with v = 0, three with v = 1.25 far below: the answer consists of the small weights only. An oracle
 * whose weights have a common absolute precision is off by more than a good kernel's bound from a gap of 87 on, and calls
 * the kernel wrong. Here up to the last gap that is not taken for infinite, and beyond. */
Test(oracle_fast, small_weights_keep_their_precision)
{
    const float gaps[] = {20, 40, 60, 80, 87, 95, 100, 110, 400, 690, 745, 810, 859.5f, 860, 860.5f, 1200, 5000};
    for (size_t c = 0; c < sizeof gaps / sizeof *gaps; c++) {
        for (int big = 0; big < 2; big++) {
            const float g = gaps[c], v = big ? FLT_MAX : 1.25f;
            char what[32];
            snprintf(what, sizeof what, "gap %g", (double)g);
            expect_small(
                small(4, 1, (const float[]){1.0f}, (const float[]){0.0f, -g, -g, -g}, (const float[]){0.0f, v, v, v}),
                what);
        }
    }
}

/* What a good kernel makes of it: the exact answer rounded to float is within 1 u of the gauge, and the oracle says so. */
Test(oracle_fast, does_not_accuse_a_right_kernel_at_large_gaps)
{
    for (float gap = 80.0f; gap <= 100.0f; gap += 1.0f) {
        fd_problem p = small(4, 1, (const float[]){1.0f}, (const float[]){0.0f, -gap, -gap, -gap},
                             (const float[]){0.0f, 1.25f, 1.25f, 1.25f});
        fd_oracle_row row, exact = ask(&p, 0, 0, FD_ORACLE_EXACT_BITS);
        char why[256];
        cr_assert_eq(fd_oracle_row_init(&row, 4, 1), FD_OK);
        cr_assert_eq(fd_oracle_fast(&p, 0, 0, 0, &row, why, sizeof why), FD_OK);
        const float kernel = (float)exact.o[0];
        const double err = fabs((double)kernel - row.o[0] - row.o_lo[0]);
        cr_expect(err <= 0x1p-24 * row.gauge[0] + 0x1p-150, "gap %g: %g u of the gauge", (double)gap,
                  err / (0x1p-24 * row.gauge[0]));
        fd_oracle_row_free(&row);
        fd_oracle_row_free(&exact);
        drop(&p);
    }
}

Test(oracle_fast, one_huge_logit)
{
    const float q[] = {FLT_MAX, 1.0f};
    expect_small(small(3, 2, q, (const float[]){0, 1, FLT_MAX, 2, 0, 3}, (const float[]){1, -2, 5}), "one 2^256");
    expect_small(small(3, 2, q, (const float[]){FLT_MAX, 1, FLT_MAX, 2, FLT_MAX, 3}, (const float[]){1, -2, 5}),
                 "all 2^256, apart by 1");
    expect_small(small(3, 2, q, (const float[]){-FLT_MAX, 1, -FLT_MAX, 2, 0, -3}, (const float[]){1, -2, 5}),
                 "two -2^256");
}

Test(oracle_fast, products_that_cancel)
{
    const float big = FLT_MAX, tiny = 0x1p-149f;
    expect_small(small(3, 3, (const float[]){big, big, 1.0f},
                       (const float[]){big, -big, 0, big, -big, -0.625f, -big, big, -3}, (const float[]){1, -2, 5}),
                 "2^256 - 2^256");
    expect_small(small(3, 3, (const float[]){big, big, tiny},
                       (const float[]){big, big, tiny, -big, -big, 0, big, big, 0}, (const float[]){big, -big, 0.5f}),
                 "from 2^257 to 2^-298");
    expect_small(small(4, 1, (const float[]){0.37f}, (const float[]){1.0f, 1.0f, -2.5f, 0.3f},
                       (const float[]){big, -big, tiny, 1.0f}),
                 "values cancel");
    float k[256], v[256];
    for (int32_t j = 0; j < 256; j++) {
        k[j] = 5.0f * uniform();
        v[j] = j % 2 == 0 ? 1.0f + 0.5f * uniform() : -v[j - 1];
        k[j] = j % 2 == 0 ? k[j] : k[j - 1];
    }
    expect_small(small(256, 1, (const float[]){1.0f}, k, v), "alternating signs, o = 0");
}

Test(oracle_fast, subnormals_and_any_sm_scale)
{
    const float scales[] = {0.0f, -0.0f, 1.0f, -1.0f, 0x1p-149f, -0x1p-149f, FLT_MAX, -FLT_MAX, 0.0883883f};
    const float amplitudes[] = {0x1p-149f, 0x1p-140f, 0x1p-75f, 1.0f, 0x1p63f, 0x1p127f};
    for (size_t s = 0; s < sizeof scales / sizeof *scales; s++) {
        for (size_t c = 0; c < sizeof amplitudes / sizeof *amplitudes; c++) {
            const float x = amplitudes[c];
            fd_problem p =
                small(5, 2, (const float[]){x, 1.0f}, (const float[]){0, 0, -x, 1, -1.5f * x, x, x, -x, 0.3f, 0.7f},
                      (const float[]){1, -2, 5, 0x1p-149f, -0x1.8p-148f});
            p.sm_scale = scales[s];
            char what[64];
            snprintf(what, sizeof what, "sm_scale %a, amplitude %a", (double)scales[s], (double)x);
            expect_small(p, what);
        }
    }
}

Test(oracle_fast, constant_values_come_back_exactly)
{
    fd_problem p = problem(1, 1, 1, 8, 2, 1000, FD_F32, FD_F32, 1, 0);
    fill_random(&p, 3.0f, 1.0f);
    for (int64_t j = 0; j < 1000; j++) {
        put(&p.v, 0, j, 0, 0, 1.0f);
        put(&p.v, 0, j, 0, 1, -0x1p-30f);
    }
    fd_oracle_row row;
    char why[256];
    cr_assert_eq(fd_oracle_row_init(&row, 1000, 2), FD_OK);
    cr_assert_eq(fd_oracle_fast(&p, 0, 0, 0, &row, why, sizeof why), FD_OK);
    cr_expect(row.o[0] == 1.0 && row.o_lo[0] == 0.0 && row.o[1] == -0x1p-30 && row.o_lo[1] == 0.0, "o %a + %a, %a + %a",
              row.o[0], row.o_lo[0], row.o[1], row.o_lo[1]);
    fd_oracle_row_free(&row);
    drop(&p);
}

/* 1 000 003 keys, and again with all of them equal. */
Test(oracle_fast, a_million_keys)
{
    const int64_t n = 1000003;
    fd_problem p = problem(1, 1, 1, 2, 1, n, FD_F32, FD_BF16, 1, 0);
    fill_random(&p, 8.0f, 1.0f);
    expect_agreement(&p, 0, 0, 0, FD_ORACLE_BITS, "a million keys");
    p.k.stride[1] = 0;
    p.v.stride[1] = 0;
    expect_agreement(&p, 0, 0, 0, FD_ORACLE_BITS, "a million times the same key");
    drop(&p);
}

/* ---- Random ones ------------------------------------------------------------------------------- */

static uint32_t random_bits(void)
{
    uniform();
    return (uint32_t)(random_state >> 32);
}

/* A finite float of any exponent between low and high (powers of two; -149 and 127 at most), any sign. */
static float any_float(int low, int high)
{
    const float x = ldexpf(1.0f + 0.5f * (1.0f + uniform()), low + below(high - low + 1));
    return fminf(random_bits() & 1u ? x : -x, FLT_MAX);
}

/* Shapes, types, strides, ragged and empty rows, several query rows with and without a mask; exponents of q, k and v each
 * from a range of its own, which may be all of float. */
Test(oracle_fast, random_shapes_and_exponents)
{
    const int32_t dtypes[] = {FD_F32, FD_F16, FD_BF16};
    for (int32_t c = 0; c < 150; c++) {
        const int32_t heads_kv = 1 + below(2), heads_q = heads_kv * (1 + below(3)), batch = 1 + below(3);
        const int32_t dtype_kv = dtypes[below(3)];
        fd_problem p = problem(batch, heads_q, heads_kv, 1 + below(70), 1 + below(20), 1 + below(60), dtypes[below(3)],
                               dtype_kv, 1 + below(2), below(4));
        p.q_len = 1 + below(3);
        p.window_right = below(3) - 1;
        free(p.q.data);
        p.q = tensor(p.q.dtype, batch, p.q_len, heads_q, p.head_dim, 1, below(3));
        free(p.o.data);
        p.o = tensor(FD_F32, batch, p.q_len, heads_q, p.head_dim_v, 1, 0);
        p.kv_lens = tensor(FD_I32, batch, 1, 1, 1, 1, 0);
        const int wide = below(4), e_q = wide == 0 ? 126 : 3, e_k = wide <= 1 ? 126 : 4, e_v = wide == 2 ? 126 : 2;
        p.sm_scale = wide >= 2 ? 0.25f * uniform() : any_float(-149, wide == 1 ? 0 : 127);
        for (int32_t b = 0; b < batch; b++) {
            ((int32_t *)p.kv_lens.data)[b * p.kv_lens.stride[0]] = below((int32_t)p.kv_capacity + 1);
            for (int64_t x = 0; x < (int64_t)p.q_len * heads_q * p.head_dim; x++) {
                put(&p.q, b, x / p.head_dim / heads_q, (int32_t)(x / p.head_dim % heads_q), (int32_t)(x % p.head_dim),
                    p.q.dtype == FD_F16 ? any_float(-24, 14) : any_float(-e_q, e_q));
            }
            for (int64_t x = 0; x < fd_kv_len(&p, b) * heads_kv * p.head_dim; x++) {
                put(&p.k, b, x / p.head_dim / heads_kv, (int32_t)(x / p.head_dim % heads_kv), (int32_t)(x % p.head_dim),
                    dtype_kv == FD_F16 ? any_float(-24, 14) : any_float(-e_k - (e_k > 99 ? 23 : 0), e_k));
            }
            for (int64_t x = 0; x < fd_kv_len(&p, b) * heads_kv * p.head_dim_v; x++) {
                put(&p.v, b, x / p.head_dim_v / heads_kv, (int32_t)(x / p.head_dim_v % heads_kv),
                    (int32_t)(x % p.head_dim_v),
                    dtype_kv == FD_F16 ? any_float(-24, 14) : any_float(-e_v - (e_v > 99 ? 23 : 0), e_v));
            }
        }
        p.features = fd_features(&p);
        char what[64];
        snprintf(what, sizeof what, "problem %d, ranges %d", c, wide);
        for (int32_t r = 0; r < batch * p.q_len * heads_q; r++) {
            expect_agreement(&p, r / heads_q / p.q_len, r / heads_q % p.q_len, r % heads_q, FD_ORACLE_EXACT_BITS, what);
        }
        drop(&p);
    }
}
