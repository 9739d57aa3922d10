/* test_oracle.c: the oracle against closed forms and against the formula written a second, clumsier way: exp(s) without
 * a maximum, 2000 bits. Everything else in this repository is judged by the oracle; nothing but this file judges it. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <mpfr.h>
#include <pthread.h>
#include <stdlib.h>

#include "oracle.h"

enum { TRUTH_BITS = 2000 };

/* ---- Problems ---------------------------------------------------------------------------------- */

static uint64_t random_state = 1;

static float uniform(void) /* in [-1, 1) */
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (float)((int64_t)(random_state >> 40) - (1 << 23)) * 0x1p-23f;
}

static int32_t below(int32_t n)
{
    return (int32_t)((double)n * 0.5 * (1.0 + (double)uniform()));
}

/* [n0, n1, n2, n3] elements, innermost stride `step`, `pad` unused ones after every row; all bytes 0xff, a NaN. */
static fd_tensor tensor(int32_t dtype, int64_t n0, int64_t n1, int64_t n2, int64_t n3, int64_t step, int64_t pad)
{
    fd_tensor x = {.dtype = dtype,
                   .stride = {n1 * n2 * (n3 * step + pad), n2 * (n3 * step + pad), n3 * step + pad, step}};
    const size_t bytes = (size_t)(n0 * x.stride[0]) * fd_dtype_bytes(dtype) + 1;
    x.data = malloc(bytes);
    cr_assert_not_null(x.data, "out of memory");
    memset(x.data, 0xff, bytes);
    return x;
}

static void put(fd_tensor *x, int32_t b, int64_t y, int32_t h, int32_t i, float value)
{
    fd_store(x, b * x->stride[0] + y * x->stride[1] + h * x->stride[2] + i * x->stride[3], value);
}

static fd_problem problem(int32_t batch, int32_t heads_q, int32_t heads_kv, int32_t head_dim, int32_t head_dim_v,
                          int64_t kv_capacity, int32_t dtype_q, int32_t dtype_kv, int64_t step, int64_t pad)
{
    fd_problem p = {.size = sizeof p, .batch = batch, .heads_q = heads_q, .heads_kv = heads_kv, .q_len = 1};
    p.head_dim = head_dim;
    p.head_dim_v = head_dim_v;
    p.kv_capacity = kv_capacity;
    p.sm_scale = 1.0f;
    p.window_left = p.window_right = -1;
    p.q = tensor(dtype_q, batch, 1, heads_q, head_dim, step, pad);
    p.k = tensor(dtype_kv, batch, kv_capacity, heads_kv, head_dim, step, pad);
    p.v = tensor(dtype_kv, batch, kv_capacity, heads_kv, head_dim_v, step, pad);
    p.o = tensor(FD_F32, batch, 1, heads_q, head_dim_v, 1, 0);
    p.features = fd_features(&p);
    return p;
}

/* One head, fp32: the given q, keys and first elements of v. */
static fd_problem small(int32_t n, int32_t head_dim, const float *q, const float *k, const float *v)
{
    fd_problem p = problem(1, 1, 1, head_dim, 1, n, FD_F32, FD_F32, 1, 0);
    memcpy(p.q.data, q, (size_t)head_dim * sizeof *q);
    memcpy(p.k.data, k, (size_t)(n * head_dim) * sizeof *k);
    memcpy(p.v.data, v, (size_t)n * sizeof *v);
    return p;
}

static void fill_random(fd_problem *p, float amplitude_q, float amplitude_v)
{
    for (int32_t b = 0; b < p->batch; b++) {
        for (int32_t h = 0; h < p->heads_q; h++) {
            for (int32_t i = 0; i < p->head_dim; i++) {
                put(&p->q, b, 0, h, i, amplitude_q * uniform());
            }
        }
        for (int64_t j = 0; j < fd_kv_len(p, b); j++) { /* the tail stays NaN */
            for (int32_t i = 0; i < p->heads_kv * p->head_dim; i++) {
                put(&p->k, b, j, i / p->head_dim, i % p->head_dim, 2.0f * uniform());
            }
            for (int32_t i = 0; i < p->heads_kv * p->head_dim_v; i++) {
                put(&p->v, b, j, i / p->head_dim_v, i % p->head_dim_v, amplitude_v * uniform());
            }
        }
    }
}

static void drop(fd_problem *p)
{
    void *const blocks[] = {p->q.data, p->k.data, p->v.data, p->o.data, p->kv_lens.data};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        free(blocks[i]);
    }
}

static fd_oracle_row ask(const fd_problem *p, int32_t b, int32_t h, int bits)
{
    fd_oracle_row row;
    char why[256] = "";
    cr_assert_eq(fd_oracle_row_init(&row, p->kv_capacity, p->head_dim_v), FD_OK, "out of memory");
    cr_assert_eq(fd_oracle(p, b, 0, h, bits, &row, why, sizeof why), FD_OK, "refused: %s", why);
    return row;
}

/* ---- The second opinion ------------------------------------------------------------------------ */

/* |high + low - want| <= radius; false on NaN. */
static bool within(double high, double low, mpfr_t want, double radius)
{
    mpfr_t x;
    mpfr_init2(x, TRUTH_BITS);
    mpfr_sub_d(x, want, high, MPFR_RNDN);
    mpfr_sub_d(x, x, low, MPFR_RNDN);
    mpfr_abs(x, x, MPFR_RNDN);
    const bool ok = mpfr_number_p(want) && mpfr_cmp_d(x, radius) <= 0;
    mpfr_clear(x);
    return ok;
}

static bool rounds_to(double got, mpfr_t want)
{
    return within(got, 0.0, want, 0x1p-52 * fabs(got) + 0x1p-1074);
}

/* want <= got <= want (1 + 1e-9) + slack */
static bool above(double got, mpfr_t want, double slack)
{
    return isfinite(got) && mpfr_cmp_d(want, got) <= 0 && got <= mpfr_get_d(want, MPFR_RNDN) * (1.0 + 1e-9) + slack;
}

/* Every field of the row, for logits small enough for exp. */
static void verify(const fd_problem *p, int32_t b, int32_t h, const fd_oracle_row *row)
{
    const int64_t n = fd_kv_len(p, b);
    const int32_t h_kv = h / (p->heads_q / p->heads_kv);
    mpfr_t s[64], a[64], e[64], sum, max, lse, o, gauge, moment[3], x, y;
    cr_assert(n >= 1 && n <= 64, "this test takes 1 to 64 keys");
    mpfr_inits2(TRUTH_BITS, sum, max, lse, o, gauge, moment[0], moment[1], moment[2], x, y, (mpfr_ptr)0);
    mpfr_set_zero(sum, 1);
    for (int64_t j = 0; j < n; j++) {
        mpfr_inits2(TRUTH_BITS, s[j], a[j], e[j], (mpfr_ptr)0);
        mpfr_set_zero(s[j], 1);
        mpfr_set_zero(a[j], 1);
        for (int32_t i = 0; i < p->head_dim; i++) { /* the scale on each factor, the row stepped through by hand */
            mpfr_set_flt(x, fd_load(&p->q, b * p->q.stride[0] + h * p->q.stride[2] + i * p->q.stride[3]), MPFR_RNDN);
            mpfr_set_flt(
                y, fd_load(&p->k, b * p->k.stride[0] + j * p->k.stride[1] + h_kv * p->k.stride[2] + i * p->k.stride[3]),
                MPFR_RNDN);
            mpfr_mul(x, x, y, MPFR_RNDN);
            mpfr_set_flt(y, p->sm_scale, MPFR_RNDN);
            mpfr_mul(x, x, y, MPFR_RNDN);
            mpfr_add(s[j], s[j], x, MPFR_RNDN);
            mpfr_abs(x, x, MPFR_RNDN);
            mpfr_add(a[j], a[j], x, MPFR_RNDN);
        }
        mpfr_exp(e[j], s[j], MPFR_RNDN);
        mpfr_add(sum, sum, e[j], MPFR_RNDN);
        if (j == 0 || mpfr_cmp(s[j], max) > 0) {
            mpfr_set(max, s[j], MPFR_RNDN);
        }
    }
    mpfr_log(lse, sum, MPFR_RNDN);
    cr_expect_eq(row->kv_len, n, "kv_len %lld", (long long)row->kv_len);
    cr_expect(within(row->lse, row->lse_lo, lse, row->lse_radius), "lse %a", row->lse);
    cr_expect(row->lse_radius <= 0x1p-60 * (1.0 + fabs(row->lse)), "lse_radius %g", row->lse_radius);
    cr_expect(rounds_to(row->s_max, max), "s_max %a", row->s_max);

    double a_max = 0.0, gap_max = 0.0;
    for (int64_t j = 0; j < n; j++) {
        mpfr_sub(x, max, s[j], MPFR_RNDN);
        mpfr_div(e[j], e[j], sum, MPFR_RNDN); /* p_j from here on */
        cr_expect(rounds_to(row->gap[j], x) && row->gap[j] >= 0.0, "gap[%lld] %a", (long long)j, row->gap[j]);
        cr_expect(rounds_to(row->p[j], e[j]), "p[%lld] %a", (long long)j, row->p[j]);
        cr_expect(above(row->a[j], a[j], 0.0), "a[%lld] %a", (long long)j, row->a[j]);
        a_max = fmax(a_max, row->a[j]);
        gap_max = fmax(gap_max, row->gap[j]);
    }
    cr_expect(row->a_max == a_max && row->gap_max == gap_max, "a_max %a, gap_max %a", row->a_max, row->gap_max);

    for (int32_t i = 0; i < p->head_dim_v; i++) {
        mpfr_ptr all[] = {o, gauge, moment[0], moment[1], moment[2]};
        for (int c = 0; c < 5; c++) {
            mpfr_set_zero(all[c], 1);
        }
        for (int pass = 0; pass < 2; pass++) { /* o and gauge, then the moments around o */
            for (int64_t j = 0; j < n; j++) {
                mpfr_set_flt(x,
                             fd_load(&p->v, b * p->v.stride[0] + j * p->v.stride[1] + h_kv * p->v.stride[2] +
                                                i * p->v.stride[3]),
                             MPFR_RNDN);
                if (pass == 0) {
                    mpfr_fma(o, e[j], x, o, MPFR_RNDN);
                    mpfr_abs(x, x, MPFR_RNDN);
                    mpfr_fma(gauge, e[j], x, gauge, MPFR_RNDN);
                    continue;
                }
                mpfr_sub(x, x, o, MPFR_RNDN);
                mpfr_abs(x, x, MPFR_RNDN);
                mpfr_mul(x, x, e[j], MPFR_RNDN);
                mpfr_add(moment[0], moment[0], x, MPFR_RNDN);
                mpfr_fma(moment[1], x, a[j], moment[1], MPFR_RNDN);
                mpfr_sub(y, max, s[j], MPFR_RNDN);
                mpfr_fma(moment[2], x, y, moment[2], MPFR_RNDN);
            }
        }
        const double slack = 0x1p-90 * row->gauge[i] + 0x1p-900;
        cr_expect(within(row->o[i], row->o_lo[i], o, row->radius[i]), "o[%d] %a", i, row->o[i]);
        cr_expect(row->radius[i] <= 0x1p-60 * row->gauge[i] + 0x1p-1000, "radius[%d] %g", i, row->radius[i]);
        cr_expect(rounds_to(row->gauge[i], gauge), "gauge[%d] %a", i, row->gauge[i]);
        cr_expect(above(row->spread[i], moment[0], slack), "spread[%d] %a", i, row->spread[i]);
        cr_expect(above(row->spread_a[i], moment[1], slack * (1.0 + a_max)), "spread_a[%d] %a", i, row->spread_a[i]);
        cr_expect(above(row->spread_gap[i], moment[2], slack * (1.0 + gap_max)), "spread_gap[%d] %a", i,
                  row->spread_gap[i]);
    }
    for (int64_t j = 0; j < n; j++) {
        mpfr_clears(s[j], a[j], e[j], (mpfr_ptr)0);
    }
    mpfr_clears(sum, max, lse, o, gauge, moment[0], moment[1], moment[2], x, y, (mpfr_ptr)0);
}

static void verify_small(fd_problem *p)
{
    fd_oracle_row row = ask(p, 0, 0, FD_ORACLE_BITS);
    verify(p, 0, 0, &row);
    fd_oracle_row_free(&row);
}

/* p has exactly these gaps, a common logit above them, and the v of `small`: compared with plain numbers -gap. */
static void verify_gaps(fd_problem *p, int32_t n, const float *gap)
{
    float k[8];
    for (int32_t j = 0; j < n; j++) {
        k[j] = -gap[j];
    }
    fd_problem plain = small(n, 1, (const float[]){1.0f}, k, p->v.data);
    verify_small(&plain);
    fd_oracle_row got = ask(p, 0, 0, FD_ORACLE_BITS), want = ask(&plain, 0, 0, FD_ORACLE_BITS);
    for (int32_t j = 0; j < n; j++) {
        cr_expect_eq(got.gap[j], (double)gap[j], "gap[%d] %a", j, got.gap[j]);
        cr_expect_eq(got.p[j], want.p[j], "p[%d] %a", j, got.p[j]);
    }
    cr_expect(got.o[0] == want.o[0] && got.o_lo[0] == want.o_lo[0], "o %a, want %a", got.o[0], want.o[0]);
    fd_oracle_row_free(&got);
    fd_oracle_row_free(&want);
    drop(&plain);
}

/* ---- Closed forms ------------------------------------------------------------------------------ */

Test(oracle, one_key_returns_v_and_s)
{
    fd_problem p = small(1, 2, (const float[]){3.0f, 0x1p-20f}, (const float[]){0.1f, 0.7f}, (const float[]){-0.3f});
    p.sm_scale = 0x1p-3f;
    const double s = (3.0 * (double)0.1f + 0x1p-20 * (double)0.7f) * 0x1p-3; /* fits 53 bits */
    fd_oracle_row row = ask(&p, 0, 0, FD_ORACLE_BITS);
    cr_expect(row.o[0] == (double)-0.3f && row.o_lo[0] == 0.0, "o %a + %a", row.o[0], row.o_lo[0]);
    cr_expect(row.lse == s && row.lse_lo == 0.0 && row.s_max == s, "lse %a + %a, want %a", row.lse, row.lse_lo, s);
    cr_expect(row.gauge[0] == (double)0.3f && row.p[0] == 1.0 && row.gap[0] == 0.0, "gauge %a", row.gauge[0]);
    verify(&p, 0, 0, &row);
    fd_oracle_row_free(&row);
    drop(&p);
}

/* q = 0: o is the mean, lse is ln n. Equal keys: the same, moved by s. */
Test(oracle, equal_logits_give_the_mean)
{
    mpfr_t want;
    mpfr_init2(want, TRUTH_BITS);
    for (int equal = 0; equal < 2; equal++) {
        fd_problem p = small(5, 1, (const float[]){equal ? 2.0f : 0.0f},
                             equal ? (const float[]){3, 3, 3, 3, 3} : (const float[]){1, -2, 3, 50, -6},
                             (const float[]){1, -7, 4, 0, 5});
        fd_oracle_row row = ask(&p, 0, 0, FD_ORACLE_BITS);
        mpfr_set_d(want, 3.0, MPFR_RNDN);
        mpfr_div_ui(want, want, 5, MPFR_RNDN);
        cr_expect(within(row.o[0], row.o_lo[0], want, 0x1p-105 * 0.6), "o %a + %a", row.o[0], row.o_lo[0]);
        cr_expect_eq(row.gauge[0], 3.4, "gauge %a", row.gauge[0]);
        mpfr_set_ui(want, 5, MPFR_RNDN);
        mpfr_log(want, want, MPFR_RNDN);
        mpfr_add_ui(want, want, equal ? 6 : 0, MPFR_RNDN);
        cr_expect(within(row.lse, row.lse_lo, want, 0x1p-100), "lse %a + %a", row.lse, row.lse_lo);
        verify(&p, 0, 0, &row);
        fd_oracle_row_free(&row);
        drop(&p);
    }
    mpfr_clear(want);
}

/* s = (0, -x), v = (1, 0): o = 1 / (1 + e^-x) and lse = log1p(e^-x). */
Test(oracle, two_keys_give_the_logistic_function)
{
    const float xs[] = {0x1p-100f, 1e-3f, 0.6931472f, 5.0f, 40.0f, 87.3f, 700.0f};
    mpfr_t e, want;
    mpfr_inits2(TRUTH_BITS, e, want, (mpfr_ptr)0);
    for (size_t c = 0; c < sizeof xs / sizeof *xs; c++) {
        fd_problem p = small(2, 1, (const float[]){1.0f}, (const float[]){0.0f, -xs[c]}, (const float[]){1.0f, 0.0f});
        fd_oracle_row row = ask(&p, 0, 0, FD_ORACLE_BITS);
        mpfr_set_flt(e, -xs[c], MPFR_RNDN);
        mpfr_exp(e, e, MPFR_RNDN);
        mpfr_add_ui(want, e, 1, MPFR_RNDN);
        mpfr_ui_div(want, 1, want, MPFR_RNDN);
        cr_expect(within(row.o[0], row.o_lo[0], want, row.radius[0]), "x = %g: o %a", (double)xs[c], row.o[0]);
        mpfr_log1p(want, e, MPFR_RNDN);
        cr_expect(within(row.lse, row.lse_lo, want, row.lse_radius), "x = %g: lse %a", (double)xs[c], row.lse);
        verify(&p, 0, 0, &row);
        fd_oracle_row_free(&row);
        drop(&p);
    }
    mpfr_clears(e, want, (mpfr_ptr)0);
}

Test(oracle, selector_returns_its_value)
{
    fd_problem p = small(4, 1, (const float[]){64.0f}, (const float[]){-32, -32, 0, -32},
                         (const float[]){1e30f, -FLT_MAX, 0x1.234568p-40f, 3.0f});
    fd_oracle_row row = ask(&p, 0, 0, FD_ORACLE_BITS);
    cr_expect(row.o[0] == 0x1.234568p-40 && row.o_lo[0] == 0.0, "o %a + %a", row.o[0], row.o_lo[0]);
    cr_expect(row.gap[0] == 2048.0 && row.gap[2] == 0.0 && row.p[2] == 1.0 && row.p[0] == 0.0, "gap %a", row.gap[0]);
    verify(&p, 0, 0, &row);
    fd_oracle_row_free(&row);
    drop(&p);
}

/* ---- Against the second opinion ---------------------------------------------------------------- */

/* Groups, dtypes, strides, head_dim_v, ragged and empty rows; and each row again with 64 bits more. */
Test(oracle, agrees_with_the_clumsy_formula)
{
    const int32_t dtypes[] = {FD_F32, FD_F16, FD_BF16};
    for (int32_t c = 0; c < 40; c++) {
        const int32_t heads_kv = 1 + below(2), heads_q = heads_kv * (1 + below(3)), batch = 1 + below(3);
        fd_problem p = problem(batch, heads_q, heads_kv, 1 + below(20), 1 + below(6), 1 + below(33), dtypes[c % 3],
                               dtypes[c / 3 % 3], 1 + below(2), below(4));
        p.sm_scale = c % 7 == 0 ? -3.0f : 0.3f * (1.5f + uniform());
        if (c % 2 == 0) {
            p.kv_lens = tensor(FD_I32, batch, 1, 1, 1, 1, c % 4);
            for (int32_t b = 0; b < batch; b++) {
                ((int32_t *)p.kv_lens.data)[b * p.kv_lens.stride[0]] = below((int32_t)p.kv_capacity + 1);
            }
        }
        p.features = fd_features(&p);
        fill_random(&p, c % 5 == 0 ? 60.0f : 3.0f, c % 3 == 1 ? 200.0f : 1.0f);
        if (c % 8 == 3) { /* all heads read the first KV head of the first sequence */
            p.k.stride[0] = p.k.stride[2] = p.v.stride[0] = p.v.stride[2] = 0;
        }
        for (int32_t r = 0; r < batch * heads_q; r++) {
            const int32_t b = r / heads_q, h = r % heads_q;
            fd_oracle_row row = ask(&p, b, h, FD_ORACLE_BITS), finer = ask(&p, b, h, FD_ORACLE_BITS + 64);
            if (fd_kv_len(&p, b) > 0) {
                verify(&p, b, h, &row);
            } else {
                cr_expect(isinf(row.lse) && row.lse < 0.0 && row.kv_len == 0, "empty row: lse %a", row.lse);
            }
            for (int32_t i = 0; i < p.head_dim_v; i++) {
                const double apart = fabs(row.o[i] - finer.o[i] + (row.o_lo[i] - finer.o_lo[i]));
                cr_expect(apart <= row.radius[i] && finer.radius[i] <= row.radius[i], "64 bits more: %g apart", apart);
                cr_expect(row.kv_len > 0 || (row.o[i] == 0.0 && row.gauge[i] == 0.0), "empty row: o %a", row.o[i]);
            }
            fd_oracle_row_free(&row);
            fd_oracle_row_free(&finer);
        }
        drop(&p);
    }
}

/* A key of weight 1 with v = 0, three with v = 1.25 far below: o and its gauge consist of the small weights only, so an
 * oracle with absolute precision loses them where a good kernel still has them. */
Test(oracle, is_accurate_relative_to_the_gauge_at_large_gaps)
{
    for (int32_t g = 20; g <= 110; g += 10) {
        const float gap = (float)g;
        fd_problem p = small(4, 1, (const float[]){1.0f}, (const float[]){0.0f, -gap, -gap, -gap},
                             (const float[]){0.0f, 1.25f, 1.25f, 1.25f});
        verify_small(&p);
        drop(&p);
    }
}

/* Cancellation in o: a radius relative to the gauge is all that can be had, and it must hold. */
Test(oracle, holds_its_radius_when_values_cancel)
{
    fd_problem p = small(4, 1, (const float[]){0.37f}, (const float[]){1.0f, 1.0f, -2.5f, 0.3f},
                         (const float[]){FLT_MAX, -FLT_MAX, 0x1p-149f, 1.0f});
    verify_small(&p);
    drop(&p);
}

/* ---- Exactness of logits and gaps -------------------------------------------------------------- */

Test(oracle, logits_survive_overflowing_products)
{
    const float big = FLT_MAX, q[] = {big, big, 1.0f};
    fd_problem p =
        small(3, 3, q, (const float[]){big, -big, 0, big, -big, -0.625f, -big, big, -3}, (const float[]){1, -2, 5});
    verify_gaps(&p, 3, (const float[]){0.0f, 0.625f, 3.0f});
    verify_small(&p); /* a reaches 2^257 */
    drop(&p);
}

Test(oracle, logits_keep_subnormal_products)
{
    const float tiny = 0x1p-149f;
    fd_problem p = small(3, 1, &(const float){tiny}, (const float[]){0, -tiny, -3 * tiny}, (const float[]){1, -2, 5});
    fd_oracle_row row = ask(&p, 0, 0, FD_ORACLE_BITS);
    cr_expect(row.gap[1] == 0x1p-298 && row.gap[2] == 0x1.8p-297 && row.a[2] >= 0x1.8p-297, "gap %a", row.gap[1]);
    verify(&p, 0, 0, &row);
    fd_oracle_row_free(&row);
    p.sm_scale = tiny;
    verify_small(&p);
    drop(&p);
}

/* With 2^200 in common, a logit rounded to FD_ORACLE_BITS has lost the difference. */
Test(oracle, gaps_survive_a_common_logit)
{
    const float bigs[] = {0x1p50f, 0x1p100f};
    for (int c = 0; c < 2; c++) {
        const float big = bigs[c], q[] = {big, 1.0f}, k[] = {big, 0.0f, big, -0.5f, big, -2.0f};
        const double s = (double)big * (double)big;
        fd_problem p = small(3, 2, q, k, (const float[]){1, -2, 5});
        verify_gaps(&p, 3, (const float[]){0.0f, 0.5f, 2.0f});
        fd_oracle_row row = ask(&p, 0, 0, FD_ORACLE_BITS); /* ln(1 + e^-0.5 + e^-2) = 0.55 is below an ulp of s */
        cr_expect(row.s_max == s && row.lse == s && row.lse_lo > 0.5 && row.lse_lo < 0.6, "lse_lo %a", row.lse_lo);
        fd_oracle_row_free(&row);
        drop(&p);
    }
}

/* The widest a logit can be, highest bit and lowest; gaps beyond MPFR's exponents. Everything stays finite. */
Test(oracle, takes_the_widest_logits)
{
    const float m = FLT_MAX, t = 0x1p-149f;
    const float k[] = {m, m, t, -m, -m, 0, m, m, 0};
    fd_problem p = small(3, 3, (const float[]){m, m, t}, k, (const float[]){m, -m, 0.5f});
    for (int c = 0; c < 2; c++) {
        p.sm_scale = c == 0 ? FLT_MAX : 0x1p-149f;
        fd_oracle_row row = ask(&p, 0, 0, FD_ORACLE_BITS);
        cr_expect_eq(row.gap[2], 0x1p-298 * (double)p.sm_scale, "gap %a", row.gap[2]);
        cr_expect_eq(row.gap[1], 4.0 * (double)m * (double)m * (double)p.sm_scale, "gap %a", row.gap[1]);
        cr_expect(isfinite(row.lse) && isfinite(row.a_max) && isfinite(row.spread_a[0]) &&
                      isfinite(row.spread_gap[0]) && row.p[1] == 0.0 && row.o[0] == 0.5 * (double)m + 0.25,
                  "o %a, spread_a %a", row.o[0], row.spread_a[0]);
        fd_oracle_row_free(&row);
    }
    drop(&p);
}

Test(oracle, takes_any_sm_scale)
{
    fd_problem p =
        small(3, 1, (const float[]){0x1p75f}, (const float[]){0, -0x1p74f, -0x1.8p75f}, (const float[]){1, -2, 5});
    p.sm_scale = 0x1p-149f;
    verify_gaps(&p, 3, (const float[]){0.0f, 1.0f, 3.0f});
    verify_small(&p);
    drop(&p);
    p = small(3, 1, (const float[]){0x1p-60f}, (const float[]){0, -0x1p-67f, -0x1.8p-66f}, (const float[]){1, -2, 5});
    p.sm_scale = 0x1p127f;
    verify_gaps(&p, 3, (const float[]){0.0f, 1.0f, 3.0f});
    verify_small(&p);
    drop(&p);
}

/* ---- Refusals ---------------------------------------------------------------------------------- */

static void expect_refusal(const fd_problem *p, int32_t b, int32_t t, int32_t h, int bits, fd_oracle_row *row,
                           fd_status status, const char *word)
{
    char why[256] = "";
    const fd_status got = fd_oracle(p, b, t, h, bits, row, why, sizeof why);
    cr_expect(got == status && strstr(why, word) != NULL && strchr(why, '\n') == NULL, "want \"%s\", got %d, \"%s\"",
              word, (int)got, why);
}

Test(oracle, refuses_visible_nan_by_name_and_reads_no_tail)
{
    fd_problem p = problem(2, 4, 2, 3, 2, 9, FD_F32, FD_BF16, 1, 1);
    p.kv_lens = tensor(FD_I32, 2, 1, 1, 1, 1, 0);
    memcpy(p.kv_lens.data, (const int32_t[]){6, 8}, 8);
    p.features = fd_features(&p);
    fill_random(&p, 1.0f, 1.0f);
    const struct {
        fd_tensor *x;
        int32_t y, h, i;
        const char *name;
    } bad[] = {
        {&p.q, 0, 3, 2, "q[1, 0, 3, 2] is"}, {&p.k, 7, 1, 2, "k[1, 7, 1, 2] is"}, {&p.v, 7, 1, 1, "v[1, 7, 1, 1] is"}};
    fd_oracle_row row = ask(&p, 1, 3, FD_ORACLE_BITS); /* fill_random left NaN in the tails */
    const double o = row.o[1];
    for (int c = 0; c < 6; c++) {
        fd_tensor *x = bad[c / 2].x;
        const int64_t at = x->stride[0] + bad[c / 2].y * x->stride[1] + bad[c / 2].h * x->stride[2] + bad[c / 2].i;
        const float kept = fd_load(x, at);
        fd_store(x, at, c % 2 == 0 ? (float)NAN : -(float)INFINITY);
        expect_refusal(&p, 1, 0, 3, FD_ORACLE_BITS, &row, FD_INVALID, bad[c / 2].name);
        fd_store(x, at, kept);
    }
    fd_oracle_row_free(&row);
    row = ask(&p, 1, 3, FD_ORACLE_BITS);
    cr_expect_eq(row.o[1], o, "o %a after, %a before", row.o[1], o);
    ((int32_t *)p.kv_lens.data)[1] = 9; /* the first slot of the tail becomes visible */
    expect_refusal(&p, 1, 0, 3, FD_ORACLE_BITS, &row, FD_INVALID, "k[1, 8, 1, 0] is");
    fd_oracle_row_free(&row);
    drop(&p);
}

Test(oracle, refuses_what_it_does_not_know_by_name)
{
    const uint32_t bits[] = {FD_PAGED, FD_WINDOW, FD_SOFTCAP, FD_SINKS, FD_SCALES, FD_SHARD};
    const fd_problem plain = problem(1, 1, 1, 4, 4, 8, FD_F32, FD_F32, 1, 0);
    float aside[64] = {0};
    int32_t page = 0;
    fd_oracle_row row;
    cr_assert_eq(fd_oracle_row_init(&row, 8, 4), FD_OK, "out of memory");
    for (size_t c = 0; c < sizeof bits / sizeof *bits; c++) {
        fd_problem p = plain;
        const fd_tensor more = {.data = aside, .stride = {1, 1, 1, 1}};
        p.page_size = bits[c] == FD_PAGED ? 8 : 0;
        p.num_pages = bits[c] == FD_PAGED ? 1 : 0;
        p.page_table = bits[c] == FD_PAGED ? (fd_tensor){&page, {1, 1, 1, 1}, FD_I32, FD_HOST} : (fd_tensor){0};
        p.window_left = bits[c] == FD_WINDOW ? 4 : -1;
        p.softcap = bits[c] == FD_SOFTCAP ? 30.0f : 0.0f;
        p.sinks = bits[c] == FD_SINKS ? more : (fd_tensor){0};
        p.k_scale = bits[c] == FD_SCALES ? more : (fd_tensor){0};
        p.kv_start = bits[c] == FD_SHARD ? 8 : 0;
        p.features = fd_features(&p);
        cr_expect_eq(p.features, bits[c], "the test sets 0x%x", p.features);
        expect_refusal(&p, 0, 0, 0, FD_ORACLE_BITS, &row, FD_UNSUPPORTED,
                       bits[c] == FD_WINDOW ? "window_left 4" : fd_feature_name(bits[c]));
    }
    fd_problem p = plain;
    p.k.space = FD_DEVICE;
    expect_refusal(&p, 0, 0, 0, FD_ORACLE_BITS, &row, FD_UNSUPPORTED, "device memory");
    p = plain;
    p.v.dtype = FD_I8;
    expect_refusal(&p, 0, 0, 0, FD_ORACLE_BITS, &row, FD_UNSUPPORTED, "int8");
    p = plain;
    expect_refusal(&p, 1, 0, 0, FD_ORACLE_BITS, &row, FD_INVALID, "[1, 0, 0]");
    expect_refusal(&p, 0, 0, -1, FD_ORACLE_BITS, &row, FD_INVALID, "[0, 0, -1]");
    expect_refusal(&p, 0, 0, 0, FD_ORACLE_BITS - 1, &row, FD_INVALID, "bits is 127");
    fd_oracle_row_free(&row);
    cr_assert_eq(fd_oracle_row_init(&row, 7, 4), FD_OK, "out of memory");
    expect_refusal(&p, 0, 0, 0, FD_ORACLE_BITS, &row, FD_INVALID, "7 keys");
    fd_oracle_row_free(&row);
    cr_expect_eq(fd_oracle_row_init(&row, INT64_MAX / 8, 4), FD_NO_MEMORY, "an impossible row was allocated");
    drop(&p);
}

/* ---- Threads ----------------------------------------------------------------------------------- */

typedef struct share {
    const fd_problem *p;
    int32_t head;
    fd_oracle_row row;
} share;

static void *answer(void *arg)
{
    share *mine = arg;
    char why[256];
    for (int repeat = 0; repeat < 20; repeat++) {
        fd_oracle(mine->p, 0, 0, mine->head, FD_ORACLE_BITS, &mine->row, why, sizeof why);
    }
    return NULL;
}

Test(oracle, two_threads_give_the_bits_of_one)
{
    cr_expect(mpfr_buildopt_tls_p(), "this MPFR was built without thread-safe caches");
    fd_problem p = problem(1, 2, 1, 16, 16, 64, FD_F32, FD_F32, 1, 0);
    fill_random(&p, 3.0f, 1.0f);
    share shares[2];
    pthread_t threads[2];
    for (int32_t c = 0; c < 2; c++) {
        shares[c].p = &p;
        shares[c].head = c;
        cr_assert_eq(fd_oracle_row_init(&shares[c].row, 64, 16), FD_OK, "out of memory");
        cr_assert_eq(pthread_create(&threads[c], NULL, answer, &shares[c]), 0, "no thread");
    }
    for (int32_t c = 0; c < 2; c++) {
        pthread_join(threads[c], NULL);
        fd_oracle_row alone = ask(&p, 0, c, FD_ORACLE_BITS);
        const size_t bytes = (3 * 64 + 7 * 16) * sizeof(double);
        cr_expect_eq(memcmp(alone.storage, shares[c].row.storage, bytes), 0, "head %d differs", c);
        cr_expect_eq(alone.lse, shares[c].row.lse, "lse of head %d differs", c);
        fd_oracle_row_free(&alone);
        fd_oracle_row_free(&shares[c].row);
    }
    drop(&p);
}
