/* test_splits.c: the errors of `flashdecode splits` are the judge's, and splitting is measured where it happens. */
#include <criterion/criterion.h>

#include "commands.h"
#include "judge.h"
#include "ladder.h"
#include "splits.h"

static const fd_case small = {.name = "gaussian",
                              .family = "gaussian",
                              .batch = 1,
                              .heads_q = 1,
                              .heads_kv = 1,
                              .head_dim = 16,
                              .head_dim_v = 16,
                              .kv_lens = {700},
                              .kv_len = 700,
                              .seed = 5};

static fd_rounding rounding_here(void)
{
    const fd_libm_error libm = fd_libm_error_get(NULL);
    return fd_host_rounding(&libm);
}

Test(splits, one_seed_is_judged_alike)
{
    char why[256];
    fd_instance instance;
    fd_outcome outcome;
    const fd_rung *rung = fd_ladder_find(5);
    const fd_rounding rounding = rounding_here();
    fd_case c = small;
    c.split_size = 100;
    cr_assert_eq(fd_instance_create(&instance, &c, why, sizeof why), FD_OK, "%s", why);
    cr_assert_eq(fd_judge(&instance, &rung, 1, &rounding, &outcome, why, sizeof why), FD_OK, "%s", why);

    fd_split_point point = {.rung = rung, .num_splits_request = 7};
    cr_assert_eq(fd_splits_measure(&small, 1, &rounding, &point, 1, why, sizeof why), FD_OK, "%s", why);
    cr_assert(point.num_splits == 7 && point.split_size == 100);
    cr_assert(point.err_max > 0.0 && point.err_max == outcome.err_max, "%g, not %g", point.err_max, outcome.err_max);
    cr_assert_float_eq(point.bound, outcome.bound, 1e-9 * outcome.bound);
    cr_assert_eq(point.roundings, outcome.h_n + outcome.h_d + 1);
    cr_assert_leq(point.ratio, 1.0);
    fd_outcomes_free(&outcome, 1);
    fd_instance_free(&instance);
}

Test(splits, seeds_are_pooled)
{
    char why[256];
    const fd_rounding rounding = rounding_here();
    fd_split_point all[] = {{.rung = fd_ladder_find(7), .num_splits_request = 3}};
    fd_split_point one[] = {{.rung = fd_ladder_find(7), .num_splits_request = 3}};
    double largest = 0.0;
    for (uint64_t seed = 0; seed < 3; seed++) {
        fd_case c = small;
        c.seed += seed;
        cr_assert_eq(fd_splits_measure(&c, 1, &rounding, one, 1, why, sizeof why), FD_OK);
        largest = one[0].err_max > largest ? one[0].err_max : largest;
    }
    cr_assert_eq(fd_splits_measure(&small, 3, &rounding, all, 1, why, sizeof why), FD_OK);
    cr_assert(all[0].err_max == largest && all[0].elements == 48 && all[0].err_p50 < all[0].err_p90);
}

static fd_status one_percent_off(const fd_problem *p, const fd_context *context)
{
    fd_problem other = *p;
    other.sm_scale *= 1.01f;
    return fd_ladder_find(5)->run(&other, context);
}

Test(splits, a_wrong_rung_is_above_its_bound)
{
    char why[256];
    const fd_rounding rounding = rounding_here();
    fd_rung rung = *fd_ladder_find(5);
    rung.run = one_percent_off;
    fd_split_point point = {.rung = &rung, .num_splits_request = 4};
    cr_assert_eq(fd_splits_measure(&small, 1, &rounding, &point, 1, why, sizeof why), FD_OK);
    cr_assert_not(point.ratio <= 1.0);
}

Test(splits, only_rungs_that_split_are_asked)
{
    char why[256];
    fd_instance x;
    cr_assert_eq(fd_instance_create(&x, &small, why, sizeof why), FD_OK);
    cr_assert_not(fd_splits_on_request(fd_ladder_find(1), &x.problem));
    cr_assert_not(fd_splits_on_request(fd_ladder_find(4), &x.problem));
    cr_assert(fd_splits_on_request(fd_ladder_find(5), &x.problem));
    cr_assert(fd_splits_on_request(fd_ladder_find(22), &x.problem));
    fd_instance_free(&x);
}
