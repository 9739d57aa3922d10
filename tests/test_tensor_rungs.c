/* test_tensor_rungs.c: the rungs on tensor cores, judged under each way in which such a core may add, in each schedule, with
 * asynchronous copies as late as CUDA allows and at once. */
#include <criterion/criterion.h>

#include <stdlib.h>

#include "commands.h"
#include "emu/emulator.h"
#include "execute.h"
#include "judge.h"
#include "ladder.h"
#include "libm_error.h"

/* A cluster with a half empty tile; ragged with an empty sequence, groups of 3, V narrower than K; more than 8 heads a
 * group, splits that no cluster holds. */
static const fd_case shapes[] = {
    {.family = "gaussian",
     .dtype_q = FD_BF16,
     .dtype_kv = FD_BF16,
     .dtype_o = FD_F32,
     .batch = 1,
     .heads_q = 4,
     .heads_kv = 1,
     .head_dim = 128,
     .head_dim_v = 128,
     .kv_lens = {135},
     .kv_len = 135,
     .split_size = 64},
    {.family = "gaussian",
     .dtype_q = FD_F16,
     .dtype_kv = FD_F16,
     .dtype_o = FD_F32,
     .batch = 3,
     .heads_q = 6,
     .heads_kv = 2,
     .head_dim = 40,
     .head_dim_v = 24,
     .kv_lens = {65, 0, 17},
     .kv_len = 65},
    {.family = "peaky",
     .argument = "8",
     .dtype_q = FD_BF16,
     .dtype_kv = FD_BF16,
     .dtype_o = FD_F32,
     .batch = 1,
     .heads_q = 9,
     .heads_kv = 1,
     .head_dim = 64,
     .head_dim_v = 64,
     .kv_lens = {600},
     .kv_len = 600,
     .split_size = 64},
};
enum { NUM_SHAPES = sizeof shapes / sizeof *shapes, FIRST = 25, NUM_RUNGS = 4 };

static void judge(const fd_case *shape, const fd_emu_options *options)
{
    const fd_libm_error libm = fd_libm_error_get("/nonexistent/libm_error.csv"); /* assumed */
    const fd_rounding rounding = fd_host_rounding(&libm);
    const fd_rung *rungs[NUM_RUNGS];
    fd_outcome outcomes[NUM_RUNGS];
    char why[512];
    fd_case c = *shape;
    fd_instance instance;
    c.seed = 5;
    for (int k = 0; k < NUM_RUNGS; k++) {
        rungs[k] = fd_ladder_find(FIRST + k);
        cr_assert_not_null(rungs[k]);
    }
    fd_emu_configure(options);
    cr_assert_eq(fd_instance_create(&instance, &c, why, sizeof why), FD_OK, "%s", why);
    cr_assert_eq(fd_judge(&instance, rungs, NUM_RUNGS, &rounding, outcomes, why, sizeof why), FD_OK, "%s", why);
    for (int k = 0; k < NUM_RUNGS; k++) {
        cr_expect(outcomes[k].verdict == FD_PASS && outcomes[k].vacuous == 0 && outcomes[k].ratio <= 1.0,
                  "rung %d, schedule %d, copies %d, sums %d: %s", FIRST + k, options->schedule, options->async,
                  options->mma, outcomes[k].reason);
    }
    fd_outcomes_free(outcomes, NUM_RUNGS);
    fd_instance_free(&instance);
}

Test(tensor_rungs, pass_however_a_core_adds_and_whenever_copies_come)
{
    for (int i = 0; i < NUM_SHAPES; i++) {
        for (int32_t mma = 0; mma < FD_EMU_NUM_MMA; mma++) {
            const fd_emu_options options = {.schedule = mma, /* three of each: every one once */
                                            .async = mma % 2 == 0 ? FD_EMU_LATEST : FD_EMU_EARLIEST,
                                            .mma = (mma + i) % FD_EMU_NUM_MMA,
                                            .seed = 11,
                                            .num_units = 16,
                                            .spin_seconds = 10.0};
            judge(&shapes[i], &options);
        }
    }
    fd_emu_configure(NULL);
}

/* How a plan combines is no part of the arithmetic: a request that no cluster takes, for the cut that a cluster has. */
Test(tensor_rungs, a_cluster_and_a_second_kernel_have_the_same_bits)
{
    const fd_rung *rung = fd_ladder_find(28);
    const fd_machine machine = {
        .size = sizeof machine, .space = FD_DEVICE, .num_units = 132, .blocks_per_unit = 0, .compute_capability = 90};
    const fd_machine older = {
        .size = sizeof machine, .space = FD_DEVICE, .num_units = 132, .blocks_per_unit = 0, .compute_capability = 80};
    static float o[2][4 * 128], lse[2][4];
    char why[512];
    fd_case c = shapes[0];
    fd_instance instance;
    c.seed = 7;
    cr_assert_eq(fd_instance_create(&instance, &c, why, sizeof why), FD_OK, "%s", why);
    for (int k = 0; k < 2; k++) {
        fd_plan *plan = NULL;
        cr_assert_eq(fd_plan_on(k == 0 ? &machine : &older, rung, &instance.problem, &plan, why, sizeof why), FD_OK,
                     "%s", why);
        cr_assert_eq(plan->split_size, 64);
        cr_assert_eq(fd_workspace_bytes(rung, &instance.problem, plan) == 0, k == 0, "a cluster needs none");
        cr_assert_eq(fd_execute(rung, plan, &instance, true, FD_POISON_NAN, o[k], lse[k], why, sizeof why), FD_OK, "%s",
                     why);
        free(plan);
    }
    cr_expect_arr_eq(o[0], o[1], sizeof o[0]);
    cr_expect_arr_eq(lse[0], lse[1], sizeof lse[0]);
    fd_instance_free(&instance);
}
