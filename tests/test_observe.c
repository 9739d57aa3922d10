/* test_observe.c: what `flashdecode observe` makes of the stamps of blocks, and what it can do without a GPU. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>

#include "commands.h"
#include "gpu/observe.h"
#include "observe.h"
#include "observe_stretch.h"

/* ---- Stretches ---- */

Test(observe, blocks_that_overlap_on_a_multiprocessor_are_one_stretch)
{
    fd_stretch x[] = {{1, 1, 40, 60}, {0, 1, 10, 20}, {0, 1, 0, 30}, {1, 1, 0, 40}, {0, 1, 50, 60}};
    fd_stretch_sort(x, 5);
    cr_assert_eq(fd_stretch_join(x, 5), 3);
    const fd_stretch want[] = {{0, 2, 0, 30}, {0, 1, 50, 60}, {1, 2, 0, 60}};
    for (int i = 0; i < 3; i++) {
        cr_expect(x[i].sm == want[i].sm && x[i].blocks == want[i].blocks && x[i].start == want[i].start &&
                      x[i].end == want[i].end,
                  "stretch %d", i);
    }
    const fd_stretch_sum sum = fd_stretch_total(x, 3);
    cr_expect_eq(sum.sms, 2);
    cr_expect_eq(sum.busy, 30 + 10 + 60);
    cr_expect(sum.start == 0 && sum.end == 60);
}

Test(observe, a_short_block_inside_a_long_one_does_not_end_it)
{
    fd_stretch x[] = {{3, 1, 0, 100}, {3, 1, 10, 20}, {3, 1, 90, 95}};
    fd_stretch_sort(x, 3);
    cr_assert_eq(fd_stretch_join(x, 3), 1);
    cr_expect_eq(x[0].end, 100);
    cr_expect_eq(x[0].blocks, 3);
}

Test(observe, the_step_of_a_clock)
{
    const fd_stretch x[] = {{0, 1, 0, 96}, {0, 1, 160, 224}}, one[] = {{0, 1, 0, 0}};
    cr_expect_eq(fd_stretch_step(x, 2), 32);
    cr_expect_eq(fd_stretch_step(one, 1), 0);
}

/* ---- Who gets stamps ---- */

static fd_stamp *launch(int64_t blocks)
{
    const fd_observed_launch l = {.kernel = "k", .blocks = blocks};
    return fd_gpu_observing(&l);
}

Test(observe, launches_get_stamps_one_behind_the_other_and_only_when_asked)
{
    static fd_stamp stamps[10];
    fd_observed_launch seen[FD_OBSERVED_MAX];
    cr_expect_null(launch(1));
    fd_gpu_observe(stamps, 10);
    cr_expect_eq(launch(4), stamps);
    cr_expect_eq(launch(6), stamps + 4);
    fd_gpu_observe(NULL, 0);
    cr_expect_null(launch(1), "after the end");
    cr_assert_eq(fd_gpu_observed(seen), 2);
    cr_expect(seen[0].first == 0 && seen[0].blocks == 4 && seen[1].first == 4 && seen[1].blocks == 6);
}

Test(observe, a_launch_without_room_is_not_forgotten)
{
    static fd_stamp stamps[10];
    fd_observed_launch seen[FD_OBSERVED_MAX];
    fd_gpu_observe(stamps, 10);
    cr_expect_eq(launch(10), stamps);
    cr_expect_null(launch(1));
    cr_expect_eq(fd_gpu_observed(seen), -1);
    fd_gpu_observe(stamps, 10);
    cr_expect_eq(launch(10), stamps, "begun again");
    cr_expect_eq(fd_gpu_observed(seen), 1);
}

/* ---- The command ---- */

static int parse(int argc, char **argv, fd_observe_options *o)
{
    cr_redirect_stderr();
    return fd_observe_parse(argc, argv, o);
}

Test(observe, its_first_word_says_what)
{
    fd_observe_options o;
    char *good[] = {"observe", "splits", "--heads", "32:32", "--splits", "0,16", NULL};
    cr_assert_eq(parse(6, good, &o), -1);
    cr_expect_eq(o.what, FD_OBSERVE_SPLITS);
    cr_expect(o.shape.heads_kv == 32 && o.num_splits == 2 && o.splits[1] == 16 && o.kv_lens[0] == 65536);
    char *none[] = {"observe", NULL}, *wrong[] = {"observe", "smz", NULL}, *more[] = {"observe", "sms", "x", NULL};
    cr_expect_eq(parse(1, none, &o), FD_EXIT_USAGE);
    cr_expect_eq(parse(2, wrong, &o), FD_EXIT_USAGE);
    cr_expect_eq(parse(3, more, &o), FD_EXIT_USAGE);
}

Test(observe, without_a_gpu_nothing_runs)
{
    char *argv[] = {"observe", "blocks", NULL};
    cr_redirect_stderr();
    cr_expect_eq(fd_cmd_observe(2, argv), FD_EXIT_NOTHING);
}
