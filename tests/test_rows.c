/* test_rows.c: more than one query row, and the causal mask: which keys a row sees, and that generator, oracle, judge and
 * rungs mean the same ones. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "execute.h"
#include "gen.h"
#include "judge.h"
#include "ladder.h"
#include "oracle.h"

static fd_case a_case(int32_t q_len, bool causal, int32_t ahead)
{
    return (fd_case){.name = "rows",
                     .family = "gaussian",
                     .batch = 4,
                     .heads_q = 4,
                     .heads_kv = 2,
                     .head_dim = 16,
                     .head_dim_v = 8,
                     .kv_lens = {37, 0, 3, 70},
                     .kv_len = 70,
                     .split_size = 16,
                     .q_len = q_len,
                     .causal = causal,
                     .ahead = ahead,
                     .seed = 11};
}

static fd_instance create(const fd_case *c)
{
    fd_instance x;
    char why[256] = "";
    cr_assert_eq(fd_instance_create(&x, c, why, sizeof why), FD_OK, "%s", why);
    return x;
}

static fd_rounding rounding(void)
{
    const fd_libm_error libm = fd_libm_error_get("/nonexistent/libm_error.csv"); /* assumed, the same everywhere */
    return fd_host_rounding(&libm);
}

Test(rows, the_last_row_sees_all_and_each_row_before_it_a_key_less)
{
    const int32_t kv_lens[] = {10, 3, 0}, totals[] = {12, 12, 12};
    fd_problem p = {.size = sizeof p, .batch = 3, .q_len = 4, .kv_capacity = 10, .window_left = -1, .window_right = 0};
    p.kv_lens = (fd_tensor){.data = (void *)(uintptr_t)kv_lens, .stride = {1}, .dtype = FD_I32};
    const int64_t causal[3][4] = {{7, 8, 9, 10}, {0, 1, 2, 3}, {0, 0, 0, 0}};
    for (int32_t b = 0; b < 3; b++) {
        for (int32_t t = 0; t < 4; t++) {
            p.window_right = 0;
            cr_assert_eq(fd_visible_end(&p, b, t), causal[b][t], "b %d t %d", (int)b, (int)t);
            p.window_right = -1;
            cr_assert_eq(fd_visible_end(&p, b, t), kv_lens[b]);
            p.window_right = INT32_MAX;
            cr_assert_eq(fd_visible_end(&p, b, t), kv_lens[b]);
        }
    }
    p.window_right = 1;
    cr_assert(fd_visible_end(&p, 0, 0) == 8 && fd_visible_end(&p, 0, 3) == 10 && fd_visible_end(&p, 1, 0) == 1);

    /* A shard that begins at position 4 of 12: the queries are at positions 8 .. 11, slots 4 .. 7. */
    p.window_right = 0;
    p.kv_start = 4;
    p.kv_total_lens = (fd_tensor){.data = (void *)(uintptr_t)totals, .stride = {1}, .dtype = FD_I32};
    cr_assert(fd_visible_end(&p, 0, 0) == 5 && fd_visible_end(&p, 0, 3) == 8 && fd_visible_end(&p, 1, 0) == 3);
}

Test(rows, row_0_has_the_bits_of_plain_decode_and_no_two_rows_the_same)
{
    const fd_case one = a_case(1, false, 0), five = a_case(5, true, 0);
    fd_instance x = create(&one), y = create(&five);
    const fd_problem *p = &x.problem, *many = &y.problem;
    for (int32_t b = 0; b < p->batch; b++) {
        for (int32_t h = 0; h < p->heads_q; h++) {
            const float *q = (const float *)p->q.data + fd_row_at(&p->q, b, 0, h);
            const float *first = (const float *)many->q.data + fd_row_at(&many->q, b, 0, h);
            cr_assert(memcmp(q, first, sizeof(float) * (size_t)p->head_dim) == 0, "b %d h %d", (int)b, (int)h);
            for (int32_t t = 1; t < 5; t++) {
                const float *row = (const float *)many->q.data + fd_row_at(&many->q, b, t, h);
                cr_assert(row[0] != first[0] && row[1] != first[1]);
            }
        }
    }
    cr_assert(memcmp(x.k.data, y.k.data, x.k.bytes) == 0 && memcmp(x.kv_lens.data, y.kv_lens.data, 16) == 0);
    fd_instance_free(&x);
    fd_instance_free(&y);
}

/* The oracle's masked row is its unmasked row on a cache that ends there. */
Test(rows, the_oracle_of_a_masked_row_is_that_of_a_shorter_cache)
{
    for (int32_t ahead = 0; ahead < 3; ahead++) {
        const fd_case c = a_case(5, true, ahead);
        fd_instance x = create(&c);
        fd_problem cut = x.problem;
        int32_t seen[FD_CASE_BATCH_MAX];
        memcpy(seen, c.kv_lens, sizeof seen);
        cut.kv_lens.data = seen;
        cut.kv_lens_host = seen;
        cut.window_right = -1;
        cut.features = fd_features(&cut);
        fd_oracle_row masked, shorter;
        char why[256] = "";
        cr_assert_eq(fd_oracle_row_init(&masked, 80, c.head_dim_v), FD_OK);
        cr_assert_eq(fd_oracle_row_init(&shorter, 80, c.head_dim_v), FD_OK);
        for (int32_t b = 0; b < c.batch; b++) {
            for (int32_t t = 0; t < c.q_len; t++) {
                const int32_t end = c.kv_lens[b] - c.q_len + t + 1 + ahead;
                seen[b] = end < 0 ? 0 : end < c.kv_lens[b] ? end : c.kv_lens[b];
                cr_assert_eq(fd_oracle(&x.problem, b, t, 1, FD_ORACLE_BITS, &masked, why, sizeof why), FD_OK, "%s",
                             why);
                cr_assert_eq(fd_oracle(&cut, b, t, 1, FD_ORACLE_BITS, &shorter, why, sizeof why), FD_OK, "%s", why);
                cr_assert_eq(masked.kv_len, seen[b], "b %d t %d: %lld keys", (int)b, (int)t, (long long)masked.kv_len);
                cr_assert(masked.lse == shorter.lse && memcmp(masked.o, shorter.o, 8 * sizeof(double)) == 0);
            }
            seen[b] = c.kv_lens[b];
        }
        fd_oracle_row_free(&masked);
        fd_oracle_row_free(&shorter);
        fd_instance_free(&x);
    }
}

/* The claimed exact answers, against a mean of the visible keys taken in double. */
Test(rows, exact_answers_are_those_of_the_visible_keys)
{
    int known = 0, hidden = 0;
    const char *const families[] = {"flat-integer", "selector"};
    for (int f = 0; f < 2; f++) {
        fd_case c = a_case(6, true, 0);
        snprintf(c.family, sizeof c.family, "%s", families[f]);
        fd_instance x = create(&c);
        fd_oracle_row row;
        char why[256];
        float o[8];
        cr_assert_eq(fd_oracle_row_init(&row, 80, 8), FD_OK);
        for (int64_t r = 0; r < fd_row_count(&x.problem); r++) {
            int32_t b, t, h;
            fd_row_of_index(&x.problem, r, &b, &t, &h);
            if (!fd_gen_exact(&c, &x.problem, b, t, h, o)) {
                hidden += f == 1;
                continue;
            }
            known += f == 0 && fd_visible_end(&x.problem, b, t) > 0;
            cr_assert_eq(fd_oracle(&x.problem, b, t, h, FD_ORACLE_BITS, &row, why, sizeof why), FD_OK);
            for (int32_t i = 0; i < 8; i++) {
                cr_assert(fabs((double)o[i] - row.o[i]) < 1e-30, "%s b %d t %d: %g, not %g", families[f], (int)b,
                          (int)t, (double)o[i], row.o[i]);
            }
        }
        fd_oracle_row_free(&row);
        fd_instance_free(&x);
    }
    cr_assert(known > 0 && hidden > 0, "%d means known, %d selected keys out of sight", known, hidden);
}

/* A rung that is right but for one query row. */
static int32_t spoiled_t;

static fd_status spoil(const fd_problem *p, const fd_context *c)
{
    const fd_status status = fd_ladder_find(2)->run(p, c);
    for (int32_t b = 0; b < p->batch; b++) {
        const int64_t at = fd_row_at(&p->o, b, spoiled_t, 2);
        fd_store(&p->o, at, 1.001f * fd_load(&p->o, at) + (fd_visible_end(p, b, spoiled_t) == 0 ? 1e-30f : 0.0f));
    }
    return status;
}

Test(rows, the_judge_passes_the_ladder_and_names_the_row_that_is_wrong)
{
    const fd_rounding r = rounding();
    char why[256] = "";
    for (int32_t causal = 0; causal < 2; causal++) {
        const fd_case c = a_case(5, causal == 1, 0);
        fd_instance x = create(&c);
        fd_rung wrong = *fd_ladder_find(2);
        wrong.run = spoil;
        const fd_rung **rungs = calloc((size_t)fd_ladder_cpu_count + 1, sizeof *rungs);
        fd_outcome *out = calloc((size_t)fd_ladder_cpu_count + 1, sizeof *out);
        memcpy(rungs, fd_ladder, (size_t)fd_ladder_cpu_count * sizeof *rungs);
        rungs[fd_ladder_cpu_count] = &wrong;
        for (spoiled_t = 0; spoiled_t < 5; spoiled_t++) {
            cr_assert_eq(fd_judge(&x, rungs, fd_ladder_cpu_count + 1, &r, out, why, sizeof why), FD_OK, "%s", why);
            for (int k = 0; k < fd_ladder_cpu_count; k++) {
                cr_assert_eq(out[k].verdict, FD_PASS, "%s: %s", rungs[k]->name, out[k].reason);
                cr_assert_eq(out[k].rows, causal ? 4 * (5 + 0 + 3 + 5) : 4 * 15, "rows with a key");
            }
            cr_assert_eq(out[fd_ladder_cpu_count].verdict, FD_FAIL, "row %d", (int)spoiled_t);
            cr_assert(out[fd_ladder_cpu_count].worst.t == spoiled_t && out[fd_ladder_cpu_count].worst.h == 2);
            fd_outcomes_free(out, fd_ladder_cpu_count + 1);
        }
        free(rungs);
        free(out);
        fd_instance_free(&x);
    }
}
