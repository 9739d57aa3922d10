/* test_bug_cases.c: bugs that people reported of other decode kernels, each as the smallest input that shows it, through
 * every rung and every path. Names are those of the log from which they come; E: empty sets, U: uninitialised memory. In
 * test_bug_numbers.c, I: indexing, N: numbers, S: semantics. Left out, for want of the feature in any rung: masks (E05-E07,
 * U04, S01, S02), pages (U02, I08, I09), q_len > 1, scales (S04). */
#include "bug_scene.h"

/* ---- E: empty sets ---- */

static void merge_with_empties(const fd_rung *rung)
{
    float o[3][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}, {1.5f, -2.25f}}, lse[3] = {-INFINITY, -INFINITY, 0.7f};
    float got_o[2], got_lse;
    fd_scene s = make(1, 1, 1, 2, 4, FD_F32, LENS(4));
    s.problem.o.data = got_o;
    s.problem.lse.data = &got_lse;
    for (int finite = 0; finite <= 3; finite++) { /* its place; 3: all three are empty */
        fd_tensor partial_o[3], partial_lse[3];
        for (int c = 0; c < 3; c++) {
            const int from = c == finite ? 2 : 0;
            partial_o[c] = (fd_tensor){.data = o[from], .stride = {2, 2, 2, 1}};
            partial_lse[c] = (fd_tensor){.data = &lse[from], .stride = {1, 1, 1, 1}};
        }
        const fd_context context = {.size = sizeof context};
        cr_assert_eq(rung->merge(&s.problem, 3, partial_o, partial_lse, &context), FD_OK);
        const int from = finite < 3 ? 2 : 0;
        cr_assert(got_o[0] == o[from][0] && got_o[1] == o[from][1] && got_lse == lse[from], "%s", rung->name);
    }
    fd_scene_free(&s);
}

/* 61 states without a key behind three with one: the same bits as the three alone. Also merge(), where it is offered. */
Test(bug_cases, E01_empty_states_are_the_identity)
{
    fd_scene s = make(2, 4, 2, 8, 70, FD_F32, LENS(3, 1));
    float o[2][64], lse[2][8];
    char why[200];
    fd_scene_fill(&s, 1, 1.0f, 1.0f, 1.0f);
    for (int k = 0; k < fd_ladder_count; k++) {
        if (!takes(&s, fd_ladder[k])) {
            continue;
        }
        const fd_path paths[2] = {{0, 1}, {64, 0}};
        for (int x = 0; x < 2; x++) {
            cr_assert_eq(fd_scene_run(&s, fd_ladder[k], paths[x], FD_POISON_NAN, NULL, o[x], lse[x], why, sizeof why),
                         FD_OK, "%s", why);
        }
        cr_assert(memcmp(o[0], o[1], sizeof o[0]) == 0 && memcmp(lse[0], lse[1], sizeof lse[0]) == 0, "%s",
                  fd_ladder[k]->name);
        if (fd_ladder[k]->merge != NULL) {
            merge_with_empties(fd_ladder[k]);
        }
    }
    finish(&s, "E01");
}

/* Split sizes 5 and 8 and 2 or 7 splits cut these so that later splits are empty, short or full, row by row. */
Test(bug_cases, E02_some_or_none_in_each_split)
{
    judge_random(5, 2, 1, 16, 20, LENS(0, 8, 5, 12, 16), "E02");
}

Test(bug_cases, E03_a_request_without_keys_inside_a_batch)
{
    judge_random(3, 4, 2, 64, 17, LENS(17, 0, 1), "E03");
    judge_random(2, 4, 2, 64, 1, LENS(0, 0), "E03, all empty");
}

Test(bug_cases, E04_lse_of_no_key_is_minus_infinity)
{
    judge_random(1, 4, 2, 8, 5, LENS(0), "E04");
    judge_random(1, 4, 2, 8, 0, LENS(0), "E04, no slot at all");
}

Test(bug_cases, E08_common_logits_far_from_zero)
{
    const float keys[] = {-64.0f, -1.375f, -83.0f, -1381.0f, 64.0f, 1381.0f}; /* -46341, -1e3, -6e4, -1e6 */
    for (size_t x = 0; x < sizeof keys / sizeof *keys; x++) {
        for (int d = 0; d < 3; d++) {
            fd_scene s = make(1, 2, 1, 128, 5, all_dtypes[d], LENS(2));
            s.problem.sm_scale = 0x1.6a09e6p-4f; /* 1 / sqrt(128) */
            set_q(&s, 64.0f);
            set_visible(&s, &s.problem.k, keys[x]);
            set_visible(&s, &s.problem.v, 1.0f);
            want_all(&s, 1.0f);
            judge(&s, "E08");
            float o[256], lse[2];
            char why[200];
            for (int k = 1; k < fd_ladder_count && x == 0; k++) { /* 01 says that it fails here */
                if (!takes(&s, fd_ladder[k])) {
                    continue;
                }
                cr_assert_eq(
                    fd_scene_run(&s, fd_ladder[k], (fd_path){0, 1}, FD_POISON_NAN, NULL, o, lse, why, sizeof why),
                    FD_OK);
                cr_assert_float_eq((double)lse[0], -46340.95 + 0.6931, 0.01, "%s", fd_ladder[k]->name);
            }
            fd_scene_free(&s);
        }
    }
}

Test(bug_cases, E09_E10_a_whole_split_is_empty)
{
    judge_random(3, 2, 1, 16, 8, LENS(5, 1, 0), "E09");        /* num_splits 2: the second has none for row 1 */
    judge_random(4, 2, 1, 16, 32, LENS(32, 24, 16, 8), "E10"); /* split_size 8: the last one, two, three are empty */
}

/* ---- U: uninitialised memory ---- */

/* Tails of v only, then of k only, hold each poison; the other tail holds ordinary numbers. */
static void judge_tails(int32_t batch, int64_t capacity, int32_t dim, const int32_t *kv_lens, const char *name)
{
    for (int x = 0; x < 2 * FD_NUM_POISONS; x++) {
        fd_scene s = make(batch, 4, 2, dim, capacity, FD_F32, kv_lens);
        fd_poison_fill(s.k.data, s.k.bytes, FD_POISON_FINITE);
        fd_poison_fill(s.v.data, s.v.bytes, FD_POISON_FINITE);
        fd_poison_fill(x % 2 == 0 ? s.v.data : s.k.data, s.v.bytes, (enum fd_poison)(x / 2));
        s.problem.sm_scale = 0.125f;
        fd_scene_fill(&s, 3, 1.0f, 1.0f, 1.0f);
        finish(&s, name);
    }
}

Test(bug_cases, U01_poison_behind_the_end_of_v_or_k)
{
    judge_tails(2, 3, 64, LENS(1, 3), "U01");
    judge_tails(4, 128, 64, LENS(32, 64, 96, 48), "U01, capacity 128");
}

Test(bug_cases, U03_a_length_inside_a_vector_load)
{
    judge_tails(1, 16, 64, LENS(9), "U03");
    judge_random(2, 2, 1, 80, 16, LENS(9, 15), "U03, head_dim 80");
    judge_random(2, 2, 1, 128, 16, LENS(9, 7), "U03, head_dim 128");
}

/* A workspace that a large batch has filled, then a small one with what it finds there. */
Test(bug_cases, U05_a_workspace_used_before)
{
    int32_t kv_lens[64];
    for (int b = 0; b < 64; b++) {
        kv_lens[b] = 100 + b;
    }
    fd_scene large = make(64, 4, 2, 16, 170, FD_F32, kv_lens), small = make(2, 4, 2, 16, 50, FD_F32, LENS(50, 9));
    fd_scene_fill(&large, 1, 1.0f, 1.0f, 1.0f);
    fd_scene_fill(&small, 2, 1.0f, 1.0f, 1.0f);
    float *o = calloc(64 * 64, sizeof *o), lse[256], fresh[128], reused[128], lse_fresh[8], lse_reused[8];
    char why[200] = "";
    const fd_path path = {0, 16};
    for (int k = 0; k < fd_ladder_count; k++) {
        if (!takes(&large, fd_ladder[k])) {
            continue;
        }
        fd_buffer workspace;
        cr_assert_eq(fd_buffer_alloc(&workspace, 1 << 20), FD_OK);
        cr_assert_eq(fd_scene_run(&large, fd_ladder[k], path, FD_POISON_NAN, &workspace, o, lse, why, sizeof why),
                     FD_OK, "%s", why);
        cr_assert_eq(
            fd_scene_run(&small, fd_ladder[k], path, FD_POISON_NAN, &workspace, reused, lse_reused, why, sizeof why),
            FD_OK, "%s", why);
        cr_assert_eq(fd_scene_run(&small, fd_ladder[k], path, FD_POISON_NAN, NULL, fresh, lse_fresh, why, sizeof why),
                     FD_OK);
        cr_assert(memcmp(fresh, reused, sizeof fresh) == 0 && memcmp(lse_fresh, lse_reused, sizeof lse_fresh) == 0,
                  "%s", fd_ladder[k]->name);
        fd_buffer_free(&workspace);
    }
    free(o);
    fd_scene_free(&large);
    finish(&small, "U05");
}

/* kv_len grows from 300 to 1100 by 37; splits automatic and 1 to 64; the answer is the last key. */
Test(bug_cases, U06_a_growing_cache_with_every_number_of_splits)
{
    fd_path paths[65];
    for (int x = 0; x <= 64; x++) {
        paths[x] = (fd_path){x, 0};
    }
    for (int32_t kv_len = 300; kv_len <= 1100; kv_len += 89) {
        fd_scene s = make(1, 1, 1, 4, 1104, FD_F32, LENS(kv_len));
        s.paths = paths;
        s.num_paths = 65;
        fd_scene_fill(&s, (uint64_t)kv_len, 1.0f, 1.0f, 1.0f);
        select_key(&s, 0, kv_len - 1);
        finish(&s, "U06");
    }
}
