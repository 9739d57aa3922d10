/* test_plan_policies.c: what each policy of the planner promises, and what `flashdecode plan` takes. */
#include <stdio.h>

#include "plan_options.h"
#include "test_plan.h"

/* ---- Each policy --------------------------------------------------------------------------------- */

Test(plan, a_chunk_depends_on_no_batch_and_no_machine)
{
    const struct {
        fd_split_policy policy;
        int64_t kv_len;
        int32_t num_splits;
        int64_t split_size;
    } cases[] = {
        {{.kind = FD_SPLIT_CHUNK, .chunk = 1024}, 65536, 64, 1024}, /* the guide's example */
        {{.kind = FD_SPLIT_CHUNK, .chunk = 1024}, 65537, 65, 1024},
        {{.kind = FD_SPLIT_CHUNK, .chunk = 1024}, 1024, 1, 1024},
        {{.kind = FD_SPLIT_CHUNK, .chunk = 128, .no_split_below = 512}, 511, 1, 511}, /* dynamic activation */
        {{.kind = FD_SPLIT_CHUNK, .chunk = 128, .no_split_below = 512}, 512, 4, 128},
        {{.kind = FD_SPLIT_CHUNK, .chunk = 1000, .tile = 64}, 4096, 4, 1024},
        {{.kind = FD_SPLIT_CHUNK, .chunk = 16, .num_splits_max = FD_GRID_YZ_MAX}, 16 * 65535, 65535, 16},
        {{.kind = FD_SPLIT_CHUNK, .chunk = 16, .num_splits_max = FD_GRID_YZ_MAX}, 16 * 65535 + 1, 61681, 17},
        {{.kind = FD_SPLIT_NONE, .tile = 64}, 100, 1, 128},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int32_t batch = 1; batch <= 1000; batch *= 10) {
            const fd_problem p = problem_of(batch, cases[i].kv_len);
            const fd_plan plan = planned(&cases[i].policy, &p, NULL);
            cr_assert(plan.num_splits == cases[i].num_splits && plan.split_size == cases[i].split_size,
                      "case %zu: %d splits of %lld keys", i, plan.num_splits, (long long)plan.split_size);
        }
    }
}

/* 132 multiprocessors, one block each, tiles of 128 keys, fp16 heads that share a block by group. Published heuristics
 * answer the line of 131072 keys with anything from 8 (a fixed cap) to 256 (chunks of 512). */
Test(plan, fill_on_a_card_of_132)
{
    const fd_machine machine = machine_of(132, 1);
    const struct {
        int32_t batch, heads_kv;
        int64_t kv_len;
        int32_t num_splits;
    } cases[] = {
        {1, 8, 128, 1},     {1, 8, 512, 4},     {1, 8, 2048, 16},   {1, 8, 8192, 16},  {1, 8, 65536, 16},
        {1, 8, 131072, 16}, {1, 32, 65536, 4},  {8, 8, 8192, 2},    {16, 8, 8192, 1},  {17, 8, 8192, 1},
        {64, 8, 8192, 1},   {1, 1, 65536, 128}, {1, 1, 16384, 128}, {1, 1, 16897, 67}, {1, 133, 65536, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const fd_split_policy policy = {.kind = FD_SPLIT_FILL, .heads = cases[i].heads_kv, .tile = 128};
        const fd_problem p = problem_of(cases[i].batch, cases[i].kv_len);
        cr_assert_eq(planned(&policy, &p, &machine).num_splits, cases[i].num_splits, "case %zu: %d", i,
                     planned(&policy, &p, &machine).num_splits);
    }
}

/* Blocks with a key, and the tiles of the longest block, by counting. */
static int64_t count_blocks(const int32_t *lens, int32_t batch, int32_t heads, const fd_plan *plan)
{
    int64_t blocks = 0, begin, end;
    for (int32_t b = 0; b < batch; b++) {
        for (int32_t split = 0; split < plan->num_splits; split++) {
            fd_split_range(plan, lens[b], split, &begin, &end);
            blocks += begin < end ? heads : 0;
        }
    }
    return blocks;
}

/* Equal lengths: never a second wave that could be avoided, and no other cut into one wave is shorter. */
Test(plan, fill_is_the_best_single_wave_for_equal_lengths)
{
    for (int32_t units = 1; units <= 24; units++) {
        for (int32_t heads = 1; heads <= 6; heads++) {
            for (int32_t batch = 1; batch <= 4; batch++) {
                for (int64_t tiles = 1; tiles <= 40; tiles++) {
                    const fd_machine machine = machine_of(units, 1);
                    const fd_split_policy policy = {.kind = FD_SPLIT_FILL, .heads = heads, .tile = 3};
                    const fd_problem p = problem_of(batch, 3 * tiles - 1);
                    const fd_plan plan = planned(&policy, &p, &machine);
                    const int64_t rows = heads * batch, room = rows <= units ? units / rows : 1;
                    cr_assert_leq(plan.num_splits, room, "a second wave");
                    cr_assert_eq(plan.split_size, 3 * ((tiles + room - 1) / room), "a longer wave than need be");
                }
            }
        }
    }
}

/* Ragged: the time of a greedy schedule is within twice the mean load of a slot, whatever the batch looks like. */
Test(plan, fill_balances_ragged_batches)
{
    enum { BATCH = 40 };
    int32_t lens[BATCH];
    for (int k = 0; k < 3000; k++) {
        const int32_t units = 1 + (int32_t)random_below(60), blocks = (int32_t)random_below(3);
        const int32_t heads = 1 + (int32_t)random_below(5);
        const int64_t slots = units * (blocks > 0 ? blocks : 1);
        int64_t work = 0;
        for (int b = 0; b < BATCH; b++) {
            lens[b] = (int32_t)random_size(400);
            work += (int64_t)heads * lens[b];
        }
        lens[k % BATCH] += 100000;
        work += (int64_t)heads * 100000;
        fd_problem p = problem_of(BATCH, INT32_MAX);
        p.kv_lens_host = lens;
        const fd_machine machine = machine_of(units, blocks);
        const fd_split_policy policy = {.kind = FD_SPLIT_FILL, .heads = heads};
        const fd_plan plan = planned(&policy, &p, &machine);
        const int64_t mean = (work + slots - 1) / slots;
        const bool one_wave = count_blocks(lens, BATCH, heads, &plan) <= slots;
        cr_assert(one_wave ? plan.split_size <= 2 * mean : plan.split_size <= mean, "%d splits of %lld, mean load %lld",
                  plan.num_splits, (long long)plan.split_size, (long long)mean);
    }
}

/* One long sequence among as many short ones as there are slots: a single wave would leave the long one uncut. */
Test(plan, fill_cuts_one_long_sequence_among_short_ones)
{
    int32_t lens[132];
    for (int b = 0; b < 132; b++) {
        lens[b] = b == 57 ? 131072 : 128;
    }
    fd_problem p = problem_of(132, 131072);
    const fd_machine machine = machine_of(132, 1);
    const fd_split_policy policy = {.kind = FD_SPLIT_FILL, .heads = 1, .tile = 128};
    cr_assert_eq(planned(&policy, &p, &machine).num_splits, 1);
    p.kv_lens_host = lens;
    const fd_plan plan = planned(&policy, &p, &machine);
    cr_assert(plan.split_size == 1152 && plan.num_splits == 114, "%d of %lld", plan.num_splits,
              (long long)plan.split_size); /* (1024 + 131) / 132 tiles, rounded up: 9 */
}

/* One wave while its longest split is within twice the mean load; beyond, splits of the mean load. */
Test(plan, fill_leaves_one_wave_where_it_is_twice_the_mean)
{
    const struct {
        int32_t lens[4];
        int32_t num_splits, split_size; /* in tiles */
    } cases[] = {{{8, 4, 2, 2}, 1, 8}, {{9, 4, 2, 1}, 3, 4}, {{10, 6, 8, 9}, 1, 10}, {{9, 7, 0, 0}, 2, 5}};
    const fd_machine machine = machine_of(4, 1), two = machine_of(2, 2);
    const fd_split_policy policy = {.kind = FD_SPLIT_FILL, .heads = 1, .tile = 10};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t lens[4];
        for (int b = 0; b < 4; b++) {
            lens[b] = 10 * cases[i].lens[b] - (cases[i].lens[b] > 0);
        }
        fd_problem p = problem_of(4, 1000);
        p.kv_lens_host = lens;
        const fd_plan plan = planned(&policy, &p, &machine), same = planned(&policy, &p, &two);
        cr_assert(plan.num_splits == cases[i].num_splits && plan.split_size == 10 * cases[i].split_size,
                  "case %zu: %d splits of %lld", i, plan.num_splits, (long long)plan.split_size);
        cr_assert(same.num_splits == plan.num_splits && same.split_size == plan.split_size);
    }
}

/* More rows than slots; and a work that 64 bits do not hold. */
Test(plan, fill_takes_the_mean_load_beyond_one_wave)
{
    const int32_t lens[] = {5, 1, 1, 1, 1, 1};
    const fd_machine ten = machine_of(10, 1), one = machine_of(1, 1);
    fd_split_policy policy = {.kind = FD_SPLIT_FILL, .heads = 3};
    fd_problem p = problem_of(6, 5);
    p.kv_lens_host = lens;
    const fd_plan plan = planned(&policy, &p, &ten);
    cr_assert(plan.num_splits == 2 && plan.split_size == 3, "%d of %lld", plan.num_splits, (long long)plan.split_size);

    policy.heads = 1 << 30;
    p = problem_of(1 << 30, 1 << 30);
    cr_assert_eq(planned(&policy, &p, &one).num_splits, 1);
}

Test(plan, fill_respects_its_limits)
{
    const fd_machine machine = machine_of(132, 1), unknown = machine_of(132, 0);
    fd_split_policy policy = {.kind = FD_SPLIT_FILL, .heads = 1, .tile = 64};
    const fd_problem p = problem_of(1, 8192);
    cr_assert_eq(planned(&policy, &p, &machine).split_size, 64);
    cr_assert_eq(planned(&policy, &p, &unknown).split_size, 64);
    policy.split_size_min = 129;
    cr_assert_eq(planned(&policy, &p, &machine).split_size, 192);
    policy.split_size_min = INT64_MAX;
    cr_assert_eq(planned(&policy, &p, &machine).num_splits, 1);
    policy.split_size_min = 0;
    policy.num_splits_max = 100;
    cr_assert_eq(planned(&policy, &p, &machine).num_splits, 64);
    policy.num_splits_max = 1;
    cr_assert_eq(planned(&policy, &p, &machine).num_splits, 1);
    policy.num_splits_max = 100;
    policy.no_split_below = 8192;
    cr_assert_eq(planned(&policy, &p, &machine).num_splits, 64);
    policy.no_split_below = 8193;
    cr_assert_eq(planned(&policy, &p, &machine).num_splits, 1);
}

/* ---- flashdecode plan ---------------------------------------------------------------------------- */

static int parse(fd_plan_options *options, int argc, char **argv)
{
    return fd_plan_parse(argc, argv, options);
}
#define PARSE(options, ...)                                                                                            \
    parse(options, (int)(sizeof((char *[]){"plan", __VA_ARGS__}) / sizeof(char *)),                                    \
          (char *[]){"plan", __VA_ARGS__, NULL})

Test(plan, options_are_read_and_nonsense_is_refused)
{
    fd_plan_options o;
    cr_assert_eq(PARSE(&o, "--batch", "3", "--heads", "32:8", "--kv-len", "1,2147483647", "--sms", "78",
                       "--blocks-per-sm", "2", "--policy", "chunk", "--chunk", "256", "--tile", "64"),
                 -1);
    cr_assert(o.batch == 3 && o.heads_q == 32 && o.heads_kv == 8 && o.sms == 78 && o.blocks_per_sm == 2);
    cr_assert(o.num_kv_lens == 2 && o.kv_lens[0] == 1 && o.kv_lens[1] == INT32_MAX);
    cr_assert(o.policy == FD_SPLIT_CHUNK && o.chunk == 256 && o.tile == 64);
    cr_assert_eq(PARSE(&o, "--batch", "1"), -1);
    cr_assert(o.policy == -1 && o.num_kv_lens > 1 && o.sms == 132);

    static const char *const wrong[][2] = {
        {"--batch", "0"},    {"--heads", "32"},    {"--heads", "30:8"},       {"--heads", "8:"},
        {"--heads", "8:8x"}, {"--kv-len", "1,"},   {"--kv-len", "-1"},        {"--sms", "1e3"},
        {"--sms", ""},       {"--policy", "fast"}, {"--blocks-per-sm", "33"}, {"--batch", "99999999999999999999"},
        {"extra", "word"},   {"--no-such", "1"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char option[24], value[24];
        snprintf(option, sizeof option, "%s", wrong[i][0]);
        snprintf(value, sizeof value, "%s", wrong[i][1]);
        cr_assert_eq(PARSE(&o, option, value), 2, "%s %s", option, value);
    }
}
