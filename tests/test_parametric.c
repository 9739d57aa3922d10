/* test_parametric.c: can the detection curves be trusted? The faulty rung without a fault is rung 05; a large fault is
 * seen; a larger one is seen better. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "commands.h"
#include "execute.h"
#include "judge.h"
#include "ladder.h"
#include "parametric.h"
#include "sigma.h"

static fd_case a_case(const char *family, int32_t dtype, int32_t kv_len)
{
    fd_case c = {.dtype_q = dtype,
                 .dtype_kv = dtype,
                 .dtype_o = dtype,
                 .batch = 2,
                 .heads_q = 2,
                 .heads_kv = 1,
                 .head_dim = 32,
                 .head_dim_v = 32,
                 .kv_lens = {kv_len, 0},
                 .kv_len = kv_len,
                 .split_size = 256,
                 .seed = 7};
    snprintf(c.name, sizeof c.name, "test %s", family);
    snprintf(c.family, sizeof c.family, "%s", family);
    return c;
}

static void judge(const fd_case *c, const fd_rung *const *rungs, int count, fd_outcome *outcomes)
{
    const fd_libm_error libm = fd_libm_error_get("/nonexistent/libm_error.csv"); /* assumed, the same everywhere */
    const fd_rounding rounding = fd_host_rounding(&libm);
    fd_instance x;
    char why[200];
    cr_assert_eq(fd_instance_create(&x, c, why, sizeof why), FD_OK, "%s", why);
    cr_assert_eq(fd_judge(&x, rungs, count, &rounding, outcomes, why, sizeof why), FD_OK, "%s", why);
    fd_instance_free(&x);
}

/* Splits of 256 and a last one of 9; an empty sequence; every dtype. */
Test(parametric, level_0_is_rung_05_bit_for_bit)
{
    for (int32_t dtype = FD_F32; dtype <= FD_BF16; dtype++) {
        const fd_case c = a_case("ragged-spike", dtype, 521);
        const fd_rung *rungs[1 + FD_NUM_FAULTS] = {fd_ladder_find(5)};
        fd_outcome outcomes[1 + FD_NUM_FAULTS];
        for (int32_t fault = 0; fault < FD_NUM_FAULTS; fault++) {
            rungs[1 + fault] = fd_parametric(fault, fault, 0);
        }
        judge(&c, rungs, 1 + FD_NUM_FAULTS, outcomes);
        const size_t rows = (size_t)(c.batch * c.heads_q), values = rows * (size_t)c.head_dim;
        for (int k = 0; k <= FD_NUM_FAULTS; k++) {
            cr_expect_eq(outcomes[k].verdict, FD_PASS, "%s: %s", rungs[k]->name, outcomes[k].reason);
            cr_expect_eq(memcmp(outcomes[k].o, outcomes[0].o, values * sizeof(float)), 0, "%s", rungs[k]->name);
            cr_expect_eq(memcmp(outcomes[k].lse, outcomes[0].lse, rows * sizeof(float)), 0, "%s", rungs[k]->name);
        }
        fd_outcomes_free(outcomes, 1 + FD_NUM_FAULTS);
    }
}

static double margin(const fd_outcome *out)
{
    return fmax(fmax(out->ratio, out->lse_ratio), fmax(out->z_max, out->z_lse) / FD_SIGMA_LIMIT);
}

/* Gross, middling, none to speak of. A key is dropped from the same cache whatever the level, so it has one level here. */
Test(parametric, the_largest_is_detected_and_a_larger_one_more)
{
    static const int32_t levels[] = {1, 8, 16};
    for (int32_t dtype = FD_F32; dtype <= FD_BF16; dtype++) {
        const fd_case c = a_case("gaussian", dtype, 512);
        const fd_rung *rungs[3 * FD_NUM_FAULTS];
        fd_outcome outcomes[3 * FD_NUM_FAULTS];
        for (int x = 0; x < 3 * FD_NUM_FAULTS; x++) {
            rungs[x] = fd_parametric(x, x / 3, levels[x % 3]);
        }
        judge(&c, rungs, 3 * FD_NUM_FAULTS, outcomes);
        for (int x = 0; x < 3 * FD_NUM_FAULTS; x++) {
            if (x % 3 == 0) {
                cr_expect_eq(outcomes[x].verdict, FD_FAIL, "%s, dtype %d", rungs[x]->name, dtype);
            } else {
                const double larger = margin(&outcomes[x - 1]), smaller = margin(&outcomes[x]);
                cr_expect(x / 3 == FD_FAULT_KEY ? smaller == larger : smaller < larger, "%s, dtype %d: %g after %g",
                          rungs[x]->name, dtype, smaller, larger);
                cr_expect(outcomes[x].verdict == FD_PASS || outcomes[x - 1].verdict == FD_FAIL);
            }
        }
        fd_outcomes_free(outcomes, 3 * FD_NUM_FAULTS);
    }
}

/* One key of n, left out: seen while n is small, by margins that fall with n. */
Test(parametric, one_key_of_more_is_seen_less)
{
    double last = HUGE_VAL;
    for (int32_t level = 4; level <= 10; level += 3) {
        const fd_case c = a_case("gaussian", FD_BF16, (int32_t)1 << level);
        const fd_rung *rung = fd_parametric(0, FD_FAULT_KEY, level);
        fd_outcome out;
        judge(&c, &rung, 1, &out);
        cr_expect_eq(out.verdict, FD_FAIL);
        cr_expect_lt(margin(&out), last);
        last = margin(&out);
        fd_outcomes_free(&out, 1);
    }
}

Test(parametric, rounding_to_bits_is_to_nearest_even)
{
    cr_expect_eq(fd_round_to_bits(1.0f + 0x1p-8f, 8), 1.0f); /* ties */
    cr_expect_eq(fd_round_to_bits(1.0f + 0x3p-8f, 8), 1.0f + 0x1p-6f);
    cr_expect_eq(fd_round_to_bits(-1.0f - 0x1.001p-8f, 8), -1.0f - 0x1p-7f);
    cr_expect_eq(fd_round_to_bits(0x1.ffp0f, 8), 2.0f); /* the carry */
    cr_expect_eq(fd_round_to_bits(3.5f, 1), 4.0f);
    cr_expect_eq(fd_round_to_bits(2.5f, 1), 2.0f);
    cr_expect_eq(fd_round_to_bits(0.0f, 1), 0.0f);
    cr_expect_eq(fd_round_to_bits(-INFINITY, 3), -INFINITY);
    cr_expect_eq(fd_round_to_bits(0x1.fffffep0f, 24), 0x1.fffffep0f);
    for (uint64_t x = 0x00800000u; x < 0x7f000000u; x += 0x12345u) { /* 8 bits are bf16, 11 in its range fp16 */
        const float value = fd_float_from_bits((uint32_t)x);
        cr_assert_eq(fd_round_to_bits(value, 8), fd_float_from_bf16(fd_bf16_from_float(value)));
        if (value >= 0x1p-14f && value <= 65504.0f) {
            cr_assert_eq(fd_round_to_bits(value, 11), fd_float_from_f16(fd_f16_from_float(value)));
        }
    }
}
