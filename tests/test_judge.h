/* test_judge.h: a rung with a planted fault, for the judge's suites. */
#ifndef FD_TEST_JUDGE_H
#define FD_TEST_JUDGE_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "execute.h"
#include "judge.h"
#include "ladder.h"
#include "row.h"

/* What the planted rung does to the answer of rung 05, and where: element i of row b = 0, h. */
static struct {
    void (*after)(const fd_problem *p, const fd_context *c);
    int32_t h, i;
    float value;
} plant;

static inline fd_status planted_run(const fd_problem *p, const fd_context *c)
{
    const fd_status status = fd_ladder_find(5)->run(p, c);
    plant.after(p, c);
    return status;
}

static inline fd_rung planted(void (*after)(const fd_problem *p, const fd_context *c))
{
    fd_rung rung = *fd_ladder_find(5);
    rung.name = "planted";
    rung.run = planted_run;
    plant.after = after;
    return rung;
}

static inline float *element(const fd_problem *p, int32_t h, int32_t i)
{
    return (float *)p->o.data + fd_row_at(&p->o, 0, 0, h) + i * p->o.stride[3];
}

static inline fd_case a_case(const char *family, const char *argument, int32_t kv_len)
{
    fd_case c = {.batch = 1,
                 .heads_q = 4,
                 .heads_kv = 2,
                 .head_dim = 16,
                 .head_dim_v = 16,
                 .kv_lens = {kv_len},
                 .kv_len = kv_len,
                 .split_size = 64,
                 .seed = 11};
    snprintf(c.name, sizeof c.name, "test %s %s", family, argument);
    snprintf(c.family, sizeof c.family, "%s", family);
    snprintf(c.argument, sizeof c.argument, "%s", argument);
    return c;
}

static inline fd_rounding rounding(void)
{
    const fd_libm_error libm = fd_libm_error_get("/nonexistent/libm_error.csv"); /* assumed, the same everywhere */
    return fd_host_rounding(&libm);
}

static enum fd_tier highest = FD_TIER_STATISTICAL; /* a test has a process of its own */

/* The outcome of one rung on one case; the instance is left in *x for more. */
static inline fd_outcome judge(const fd_rung *rung, const fd_case *c, fd_instance *x)
{
    char why[200] = "";
    fd_outcome out;
    const fd_rounding r = rounding();
    cr_assert_eq(fd_instance_create(x, c, why, sizeof why), FD_OK, "%s", why);
    cr_assert_eq(fd_judge_tiers(x, &rung, 1, &r, highest, &out, why, sizeof why), FD_OK, "%s", why);
    return out;
}

static inline void finish(fd_outcome *out, fd_instance *x)
{
    fd_outcomes_free(out, 1);
    fd_instance_free(x);
}

static inline void expect(const fd_rung *rung, const fd_case *c, enum fd_verdict verdict, enum fd_tier tier,
                          const char *said)
{
    fd_instance x;
    fd_outcome out = judge(rung, c, &x);
    cr_assert_eq(out.verdict, (int32_t)verdict, "verdict %d: %s", out.verdict, out.reason);
    cr_assert_eq(out.tier, (int32_t)tier, "tier %d: %s", out.tier, out.reason);
    cr_assert(strstr(out.reason, said) != NULL, "'%s' does not say '%s'", out.reason, said);
    finish(&out, &x);
}

#endif /* FD_TEST_JUDGE_H */
