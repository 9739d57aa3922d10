/* test_plan.c: what a kernel may rely on, whoever chose the cut. */
#include "test_plan.h"

/* ---- Every plan ---------------------------------------------------------------------------------- */

/* Nothing about the cut but this decides whether answers are right. */
static void check_cover(const fd_plan *plan, int64_t kv_len)
{
    int64_t next = 0, begin, end;
    for (int32_t split = 0; split < plan->num_splits; split++) {
        fd_split_range(plan, kv_len, split, &begin, &end);
        cr_assert(begin == next && end >= begin && end <= kv_len && end - begin <= plan->split_size,
                  "split %d of %d x %lld keys holds [%lld, %lld) of %lld", split, plan->num_splits,
                  (long long)plan->split_size, (long long)begin, (long long)end, (long long)kv_len);
        next = end;
    }
    cr_assert_eq(next, kv_len);
}

/* The same for caches of 2^31 keys: from the first and last split alone. */
static void check_shape(const fd_split_policy *policy, const fd_problem *p, const fd_plan *plan)
{
    const int64_t keys = fd_plan_keys(p) > 0 ? fd_plan_keys(p) : 1;
    const int64_t tile = policy->tile > 0 ? policy->tile : 1;
    const int64_t most = policy->num_splits_max > 0 ? policy->num_splits_max : INT32_MAX;
    int64_t begin, end;
    cr_assert(plan->size == sizeof *plan && plan->tile == policy->tile && plan->reserved == 0);
    cr_assert(plan->num_splits >= 1 && plan->num_splits <= most);
    cr_assert(plan->split_size >= tile && plan->split_size % tile == 0 && plan->split_size < keys + tile);
    cr_assert(plan->num_splits * plan->split_size >= keys);
    fd_split_range(plan, keys, plan->num_splits - 1, &begin, &end);
    cr_assert_eq(end, keys);
    cr_assert(p->num_splits_request > 0 || begin < end, "an empty split that nobody asked for");
    cr_assert(p->num_splits_request <= 0 || plan->num_splits == p->num_splits_request);
}

static const fd_split_policy small_policies[] = {
    {.kind = FD_SPLIT_NONE},
    {.kind = FD_SPLIT_CHUNK, .chunk = 1},
    {.kind = FD_SPLIT_CHUNK, .chunk = 64, .no_split_below = 100},
    {.kind = FD_SPLIT_FILL, .heads = 1},
    {.kind = FD_SPLIT_FILL, .heads = 3, .split_size_min = 20, .num_splits_max = 7},
};
enum { NUM_POLICIES = sizeof small_policies / sizeof *small_policies };

Test(plan, every_key_is_in_exactly_one_split)
{
    const fd_machine machine = machine_of(13, 2);
    for (int32_t tile = 0; tile <= 17; tile++) {
        for (int64_t kv_len = 0; kv_len <= 300; kv_len++) {
            for (int k = 0; k < NUM_POLICIES; k++) {
                fd_split_policy policy = small_policies[k];
                policy.tile = tile;
                const fd_problem p = problem_of(2, kv_len);
                const fd_plan plan = planned(&policy, &p, &machine);
                check_shape(&policy, &p, &plan);
                check_cover(&plan, kv_len);
                check_cover(&plan, kv_len / 2); /* a graph captured with this plan, replayed early */
                check_cover(&plan, 0);
            }
        }
    }
}

Test(plan, requests_are_honoured_at_every_length_and_tile)
{
    const fd_split_policy policies[] = {{.kind = FD_SPLIT_CHUNK, .chunk = 7},
                                        {.kind = FD_SPLIT_CHUNK, .chunk = 64, .no_split_below = 1000}};
    for (int32_t tile = 1; tile <= 17; tile++) {
        for (int64_t kv_len = 0; kv_len <= 300; kv_len += 1 + tile % 3) {
            for (int32_t request = 1; request <= 310; request += 3) {
                fd_split_policy policy = policies[request / 3 % 2];
                policy.tile = tile;
                fd_problem p = problem_of(1, kv_len);
                p.num_splits_request = request;
                fd_plan plan = planned(&policy, &p, NULL);
                check_shape(&policy, &p, &plan);
                check_cover(&plan, kv_len);
                cr_assert_lt((plan.split_size - tile) * request, kv_len > 0 ? kv_len : 1, "larger than it need be");

                p.num_splits_request = 0;
                p.split_size_request = request;
                plan = planned(&policy, &p, NULL);
                check_shape(&policy, &p, &plan);
                check_cover(&plan, kv_len);
                cr_assert(plan.num_splits == 1 || (plan.split_size >= request && plan.split_size < request + tile));
            }
        }
    }
}

Test(plan, large_inputs_neither_overflow_nor_leave_the_grid)
{
    for (int k = 0; k < 200000; k++) {
        const fd_machine machine = machine_of(1 + (int32_t)random_size(INT32_MAX), (int32_t)random_size(INT32_MAX));
        const fd_split_policy policy = {.kind = (int32_t)random_below(3),
                                        .tile = (int32_t)random_size(INT32_MAX),
                                        .heads = 1 + (int32_t)random_size(INT32_MAX),
                                        .num_splits_max = random_below(2) ? 0 : FD_GRID_YZ_MAX,
                                        .chunk = 1 + random_size(INT64_MAX),
                                        .split_size_min = random_size(INT64_MAX),
                                        .no_split_below = random_below(4) ? 0 : random_size(INT64_MAX)};
        fd_problem p = problem_of((int32_t)random_size(INT32_MAX),
                                  random_below(2) ? INT32_MAX - random_below(300) : random_size(INT32_MAX));
        p.num_splits_request = random_below(4) ? 0 : 1 + (int32_t)random_size(FD_GRID_YZ_MAX);
        const fd_plan plan = planned(&policy, &p, &machine), again = planned(&policy, &p, &machine);
        check_shape(&policy, &p, &plan);
        cr_assert_eq(memcmp(&plan, &again, sizeof plan), 0);
        if (plan.num_splits < 1000) {
            check_cover(&plan, p.kv_capacity);
            check_cover(&plan, random_below(p.kv_capacity + 1));
        }
    }
}

Test(plan, the_longest_bound_counts_and_capacity_only_without_bounds)
{
    const int32_t lens[] = {5, 40, 12};
    fd_problem p = problem_of(3, 100);
    cr_assert_eq(fd_plan_keys(&p), 100);
    p.kv_lens_host = lens;
    cr_assert_eq(fd_plan_keys(&p), 40);
    p.batch = 1;
    cr_assert_eq(fd_plan_keys(&p), 5);
    p.batch = 0;
    cr_assert_eq(fd_plan_keys(&p), 0);
}

Test(plan, what_makes_no_sense_is_refused_by_name_and_writes_nothing)
{
    const fd_machine machine = machine_of(132, 1), none = machine_of(0, 1), negative = machine_of(132, -1);
    const fd_split_policy chunk = {.kind = FD_SPLIT_CHUNK, .chunk = 512}, yz = {.num_splits_max = FD_GRID_YZ_MAX};
    const fd_split_policy fill = {.kind = FD_SPLIT_FILL, .heads = 8};
    const fd_problem p = problem_of(1, 70000), beyond = problem_of(1, INT64_C(1) << 31);
    fd_problem small_splits = p, many_splits = p;
    small_splits.split_size_request = 1;
    many_splits.num_splits_request = FD_GRID_YZ_MAX + 1;
    const struct {
        fd_split_policy policy;
        const fd_problem *p;
        const fd_machine *machine;
        const char *says;
    } wrong[] = {
        {chunk, &beyond, &machine, "kv_capacity 2147483648 is above 2^31 - 1, the largest kv_len"},
        {yz, &small_splits, &machine, "70000 splits are asked for, the most here is 65535"},
        {yz, &many_splits, &machine, "65536 splits are asked for, the most here is 65535"},
        {fill, &p, &none, "num_units 0"},
        {fill, &p, &negative, "blocks_per_unit -1"},
        {{.kind = FD_SPLIT_FILL}, &p, &machine, "heads 0"},
        {{.kind = FD_SPLIT_CHUNK}, &p, &machine, "chunk is 0 keys, expected 1 or more"},
        {{.kind = 3}, &p, &machine, "kind 3"},
        {{.kind = -1}, &p, &machine, "kind -1"},
        {{.tile = -1}, &p, &machine, "negative"},
        {{.num_splits_max = -1}, &p, &machine, "negative"},
        {{.split_size_min = -1}, &p, &machine, "negative"},
        {{.no_split_below = -1}, &p, &machine, "negative"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        fd_plan plan;
        char why[160] = "";
        memset(&plan, 0x5a, sizeof plan);
        const fd_plan before = plan;
        cr_assert_eq(fd_plan_splits(&wrong[i].policy, wrong[i].p, wrong[i].machine, &plan, why, sizeof why), FD_INVALID,
                     "%s", wrong[i].says);
        cr_assert_not_null(strstr(why, wrong[i].says), "'%s' does not say '%s'", why, wrong[i].says);
        cr_assert_eq(memcmp(&plan, &before, sizeof plan), 0);
        cr_assert_eq(fd_plan_splits(&wrong[i].policy, wrong[i].p, wrong[i].machine, &plan, NULL, 0), FD_INVALID);
    }
    many_splits.num_splits_request = FD_GRID_YZ_MAX;
    cr_assert_eq(planned(&yz, &many_splits, &machine).num_splits, FD_GRID_YZ_MAX);
}
