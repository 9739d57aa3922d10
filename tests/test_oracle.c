/* test_oracle.c: the oracle against closed forms and against the formula written a second, clumsier way: exp(s) without
 * a maximum, 2000 bits. Everything else in this repository is judged by the oracle; nothing but this file judges it. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <mpfr.h>
#include <stdlib.h>

#include "test_oracle.h"

enum { TRUTH_BITS = 2000 };

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
    float k[8] = {0.0f};
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
