/* test_plan.h: small problems and machines for the planner's two suites. */
#ifndef FD_TEST_PLAN_H
#define FD_TEST_PLAN_H

#include <criterion/criterion.h>

#include "plan.h"

static uint64_t state = 1;

/* xorshift64*, from the top bits down: the same numbers on every machine. */
static inline int64_t random_below(int64_t limit)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (int64_t)((state * UINT64_C(0x2545f4914f6cdd1d) >> 1) % (uint64_t)limit);
}

/* A number below limit whose size is random, not only its value. */
static inline int64_t random_size(int64_t limit)
{
    return random_below(random_below(2) ? limit : 1 + limit / (INT64_C(2) << random_below(30)));
}

static inline fd_machine machine_of(int32_t units, int32_t blocks)
{
    return (fd_machine){.size = sizeof(fd_machine), .space = FD_DEVICE, .num_units = units, .blocks_per_unit = blocks};
}

static inline fd_problem problem_of(int32_t batch, int64_t kv_len)
{
    return (fd_problem){.size = sizeof(fd_problem), .batch = batch, .kv_capacity = kv_len};
}

static inline fd_plan planned(const fd_split_policy *policy, const fd_problem *p, const fd_machine *machine)
{
    fd_plan plan = {.size = 0};
    char why[160] = "";
    cr_assert_eq(fd_plan_splits(policy, p, machine, &plan, why, sizeof why), FD_OK, "%s", why);
    return plan;
}

#endif /* FD_TEST_PLAN_H */
