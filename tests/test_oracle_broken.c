/* test_oracle_broken.c: the fast oracle with one thing wrong, which the comparison with the plain one must see. The
 * source is compiled once more, with its parts replaced by the wrappers below. */
#include <criterion/criterion.h>

#include "oracle_compare.h"
#include "oracle_exp.h"
#include "oracle_fast.h"
#include "oracle_logits.h"
#include "test_oracle.h"

enum fault { NONE, LOW_WORD_DROPPED, CUT_TOO_EARLY, GAP_ROUNDED, LAST_LEVEL_DROPPED, SUM_ROUNDED, FAULTS };

static enum fault fault;

static fd_dd broken_exp(const fd_exp_table *table, fd_dd x)
{
    const fd_dd w = fd_exp_minus(table, x);
    return fault == LOW_WORD_DROPPED               ? (fd_dd){w.hi, 0.0}
           : fault == CUT_TOO_EARLY && x.hi > 50.0 ? (fd_dd){0.0, 0.0}
                                                   : w;
}

static fd_dd broken_scale(fd_dd x, double y)
{
    const fd_dd product = fd_dd_scale(x, y);
    return fault == GAP_ROUNDED ? (fd_dd){product.hi, 0.0} : product;
}

static fd_dd broken_minus(const fd_logits *logits, const double x[FD_LOGIT_LEVELS], int64_t j)
{
    const fd_dd first = {x[0] - logits->chunk[j], 0.0};
    return fault == LAST_LEVEL_DROPPED ? first : fd_logits_minus(logits, x, j);
}

static fd_dd broken_two_sum(double a, double b)
{
    const fd_dd sum = fd_two_sum(a, b);
    return fault == SUM_ROUNDED ? (fd_dd){sum.hi, 0.0} : sum;
}

#define fd_oracle_fast broken_oracle
#define fd_exp_minus broken_exp
#define fd_dd_scale broken_scale
#define fd_logits_minus broken_minus
#define fd_two_sum broken_two_sum
fd_status broken_oracle(const fd_problem *problem, int32_t b, int32_t t, int32_t h, fd_oracle_row *row, char *why,
                        size_t n);
#include "../reference/oracle_fast.c"

/* 300 random keys, and one far above them whose values are 0. */
static fd_problem prominent(void)
{
    fd_problem p = problem(1, 1, 1, 8, 3, 300, FD_F32, FD_F32, 1, 0);
    fill_random(&p, 2.0f, 1.0f);
    p.sm_scale = 0.3f;
    for (int32_t i = 0; i < 8; i++) {
        put(&p.k, 0, 17, 0, i, 120.0f * fd_load(&p.q, i));
        for (int32_t j = 0; i > 5 && j < 300; j++) { /* small enough that the dot products need two chunks */
            put(&p.k, 0, j, 0, i, 0x1p-20f * uniform());
        }
    }
    for (int32_t i = 0; i < 3; i++) {
        put(&p.v, 0, 17, 0, i, 0.0f);
    }
    return p;
}

Test(oracle_broken, every_fault_is_seen)
{
    static const char *const names[FAULTS] = {"none",        "low word of the weights dropped",  "cut at 50",
                                              "gap rounded", "last chunk of the logits dropped", "sums rounded"};
    fd_problem p = prominent();
    fd_oracle_row plain = ask(&p, 0, 0, FD_ORACLE_BITS), row;
    char why[256];
    cr_assert(plain.gap_max > 60.0 && plain.gap_max < 300.0, "gap_max %g", plain.gap_max);
    cr_assert_eq(fd_oracle_row_init(&row, 300, 3), FD_OK);
    for (fault = NONE; fault < FAULTS; fault++) {
        fd_disagreement d = {0};
        cr_assert_eq(broken_oracle(&p, 0, 0, 0, &row, why, sizeof why), FD_OK, "%s", why);
        fd_oracle_compare(&row, &plain, 8, &d);
        cr_expect_eq(fd_oracle_agree(&d), fault == NONE, "%s: %g radii, %g elsewhere", names[fault], d.radii, d.other);
        cr_expect(fault == NONE || d.radii > 1000.0, "%s: o and lse are only %g radii apart", names[fault], d.radii);
    }
    fd_oracle_row_free(&plain);
    fd_oracle_row_free(&row);
    drop(&p);
}

/* The comparison itself: NaN, a wrong shape, one unit too many. */
Test(oracle_broken, the_comparison_sees_every_field)
{
    fd_problem p = prominent();
    fd_oracle_row plain = ask(&p, 0, 0, FD_ORACLE_BITS), row;
    char why[256];
    cr_assert_eq(fd_oracle_row_init(&row, 300, 3), FD_OK);
    double *const fields[] = {&row.lse,      &row.lse_lo,   &row.s_max,     &row.a_max,       &row.gap_max,
                              &row.gap[5],   &row.p[5],     &row.a[5],      &row.o[1],        &row.o_lo[1],
                              &row.gauge[1], &row.v_max[1], &row.spread[1], &row.spread_a[1], &row.spread_gap[1]};
    fault = NONE;
    for (size_t f = 0; f < sizeof fields / sizeof *fields; f++) {
        for (int nan = 0; nan < 2; nan++) {
            fd_disagreement d = {0};
            cr_assert_eq(broken_oracle(&p, 0, 0, 0, &row, why, sizeof why), FD_OK, "%s", why);
            *fields[f] = nan ? (double)NAN : *fields[f] * 1.001 + 1e-3;
            fd_oracle_compare(&row, &plain, 8, &d);
            cr_expect(!fd_oracle_agree(&d), "field %zu, %s", f, nan ? "NaN" : "0.1 %% off");
        }
    }
    fd_oracle_row_free(&plain);
    fd_oracle_row_free(&row);
    drop(&p);
}
