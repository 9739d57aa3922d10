/* test_merge.c: results over disjoint keys merge into the result over all of them, whoever made them and in whatever
 * order; empty ones leave no trace. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bound.h"
#include "commands.h"
#include "execute.h"
#include "gen.h"
#include "ladder.h"
#include "oracle.h"

enum { HEADS = 4, DIM = 8, PARTS_MAX = 4, ROWS = HEADS, VALUES = ROWS * DIM };

/* One sequence, four heads; o and lse of every part are contiguous. */
typedef struct result {
    float o[VALUES], lse[ROWS];
} result;

static fd_tensor tensor_o(result *x)
{
    return (fd_tensor){.data = x->o, .stride = {VALUES, VALUES, DIM, 1}, .dtype = FD_F32};
}

static fd_tensor tensor_lse(result *x)
{
    return (fd_tensor){.data = x->lse, .stride = {ROWS, ROWS, 1, 1}, .dtype = FD_F32};
}

static fd_problem outputs(result *to)
{
    return (fd_problem){.size = sizeof(fd_problem),
                        .batch = 1,
                        .heads_q = HEADS,
                        .heads_kv = 2,
                        .q_len = 1,
                        .head_dim = DIM,
                        .head_dim_v = DIM,
                        .window_left = -1,
                        .window_right = -1,
                        .o = tensor_o(to),
                        .lse = tensor_lse(to)};
}

/* The parts in the order given. o and lse hold NaN before. */
static result merge(const result *const *parts, int32_t n)
{
    result to, from[PARTS_MAX];
    fd_tensor o[PARTS_MAX], lse[PARTS_MAX];
    memset(&to, 0xff, sizeof to);
    for (int32_t part = 0; part < n; part++) {
        from[part] = *parts[part];
        o[part] = tensor_o(&from[part]);
        lse[part] = tensor_lse(&from[part]);
    }
    const fd_problem p = outputs(&to);
    cr_assert_eq(fd_ladder_find(7)->merge(&p, n, o, lse, NULL), FD_OK);
    return to;
}

static result empty(void)
{
    result x = {.o = {0.0f}};
    for (int h = 0; h < ROWS; h++) {
        x.lse[h] = -INFINITY;
    }
    return x;
}

static bool same(const result *x, const result *y)
{
    return memcmp(x, y, sizeof *x) == 0;
}

Test(merge, nothing_and_nothing_but_empty_parts_are_empty)
{
    const result none = empty();
    result unwritten = empty(), got;
    memset(unwritten.o, 0xff, sizeof unwritten.o); /* o of an empty part is not looked at */
    for (int32_t n = 0; n <= PARTS_MAX; n++) {
        got = merge((const result *const[]){&none, &none, &none, &none}, n);
        cr_expect(same(&got, &none), "%d empty parts", (int)n);
        got = merge((const result *const[]){&unwritten, &unwritten, &unwritten, &unwritten}, n);
        cr_expect(same(&got, &none), "%d empty parts, o not written", (int)n);
    }
    result to;
    const fd_problem p = outputs(&to);
    cr_expect_eq(fd_ladder_find(7)->merge(&p, -1, NULL, NULL, NULL), FD_INVALID);
}

/* (empty, empty, finite) in all orders, and every row on its own: one row of a part may be empty, the next not. */
Test(merge, empty_parts_leave_the_other_bit_for_bit)
{
    const result none = empty();
    result one = empty();
    for (int i = 0; i < VALUES; i++) {
        one.o[i] = i % 3 == 0 ? -0.0f : i % 3 == 1 ? 0x1.fffffep-3f * (float)i : 0x1p-149f;
    }
    one.lse[0] = 88.8f;
    one.lse[1] = -46000.0f;
    one.lse[2] = 0.0f;
    one.lse[3] = -INFINITY;
    memset(one.o + 3 * DIM, 0, DIM * sizeof(float));
    for (int32_t n = 1; n <= PARTS_MAX; n++) {
        for (int32_t at = 0; at < n; at++) {
            const result *parts[PARTS_MAX] = {&none, &none, &none, &none};
            parts[at] = &one;
            const result got = merge(parts, n);
            cr_expect(same(&got, &one), "%d parts, the other at %d", (int)n, (int)at);
        }
    }
}

/* Partition sums 2 and 8, values 0 and 1: o = 0.8, lse = ln 10. Base 2 on either side gives 0.723 or 0.881. */
Test(merge, weights_are_natural)
{
    for (float offset = -60000.0f; offset <= 60000.0f; offset += 20000.0f) {
        result two = empty(), eight = empty();
        for (int h = 0; h < ROWS; h++) {
            two.lse[h] = logf(2.0f) + offset;
            eight.lse[h] = logf(8.0f) + offset;
            memset(two.o, 0, sizeof two.o);
            for (int i = 0; i < DIM; i++) {
                eight.o[h * DIM + i] = 1.0f;
            }
        }
        const result got = merge((const result *const[]){&two, &eight}, 2);
        const result swapped = merge((const result *const[]){&eight, &two}, 2);
        const double off = 1e-6 + 0x1p-24 * fabs((double)offset);
        cr_expect(fabs((double)got.o[5] - 0.8) <= off, "%g", (double)got.o[5]);
        cr_expect(fabs((double)got.lse[1] - log(10.0) - (double)offset) <= 2.0 * off, "%g", (double)got.lse[1]);
        cr_expect(same(&got, &swapped), "the order of two parts changes bits");
    }
}

/* NaN and +infinity are not numbers to merge: the row is NaN, and no other. */
Test(merge, a_broken_row_stays_alone)
{
    const float broken[] = {NAN, INFINITY};
    for (int x = 0; x < 2; x++) {
        result one = empty(), other = empty();
        for (int h = 0; h < ROWS; h++) {
            one.lse[h] = other.lse[h] = 1.0f;
        }
        const result want = merge((const result *const[]){&one, &other}, 2);
        one.lse[1] = broken[x];
        const result got = merge((const result *const[]){&one, &other}, 2);
        for (int h = 0; h < ROWS; h++) {
            cr_expect(h == 1 ? isnan(got.o[h * DIM]) && isnan(got.lse[h]) : got.lse[h] == want.lse[h], "row %d", h);
        }
    }
}

/* ---- Parts of a cache, each computed by a rung as a cache of its own --------------------------------- */

static fd_rounding rounding(void)
{
    const fd_libm_error libm = fd_libm_error_get("/nonexistent/libm_error.csv"); /* assumed, the same everywhere */
    return fd_host_rounding(&libm);
}

/* Keys [begin, end) of the instance by the rung of that number. */
static result shard(const fd_instance *x, int32_t number, int64_t begin, int64_t end)
{
    const fd_rung *rung = fd_ladder_find(number);
    result to;
    fd_problem p = x->problem;
    int32_t kv_len = (int32_t)(end - begin);
    char why[160];
    p.k.data = (float *)p.k.data + begin * p.k.stride[1];
    p.v.data = (float *)p.v.data + begin * p.v.stride[1];
    p.kv_lens = (fd_tensor){.data = &kv_len, .stride = {1}, .dtype = FD_I32};
    p.kv_lens_host = &kv_len;
    p.kv_capacity = kv_len;
    p.o = tensor_o(&to);
    p.lse = tensor_lse(&to);
    fd_plan *plan = NULL;
    cr_assert_eq(fd_supports(rung, &p, why, sizeof why), FD_OK, "%s", why);
    cr_assert_eq(fd_plan_for(rung, &p, &plan, why, sizeof why), FD_OK, "%s", why);
    fd_context c = {.size = sizeof c, .plan = plan, .plan_device = plan};
    c.workspace = malloc(fd_workspace_bytes(rung, &p, plan) + 1);
    cr_assert_eq(rung->run(&p, &c), FD_OK);
    free(c.workspace);
    free(plan);
    return to;
}

/* The next permutation of n numbers in lexical order; false after the last. */
static bool next_order(int32_t *order, int32_t n)
{
    int32_t i = n - 2, j = n - 1;
    while (i >= 0 && order[i] > order[i + 1]) {
        i--;
    }
    if (i < 0) {
        return false;
    }
    while (order[j] < order[i]) {
        j--;
    }
    int32_t swap = order[i];
    order[i] = order[j];
    order[j] = swap;
    for (i++, j = n - 1; i < j; i++, j--) {
        swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    return true;
}

static void expect_within(const fd_bound *bound, const fd_oracle_row *row, const result *got, int32_t h,
                          const char *what)
{
    for (int32_t i = 0; i < DIM; i++) {
        const double err = fabs(((double)got->o[h * DIM + i] - row->o[i]) - row->o_lo[i]);
        cr_expect(err <= bound->o[i], "%s: o is at %g of its bound", what, err / bound->o[i]);
    }
    const double err = fabs(((double)got->lse[h] - row->lse) - row->lse_lo);
    cr_expect(err <= bound->lse, "%s: lse is at %g of its bound", what, err / bound->lse);
}

/* Shards of unequal length, one of them empty, each by another rung, in all 24 orders: within the bound of one tree of
 * merges over the longest shard, hence within two of them of each other. */
static void every_order(const char *family, const char *argument)
{
    fd_case c = {.batch = 1,
                 .heads_q = HEADS,
                 .heads_kv = 2,
                 .head_dim = DIM,
                 .head_dim_v = DIM,
                 .kv_lens = {150},
                 .kv_len = 150,
                 .seed = 3};
    snprintf(c.name, sizeof c.name, "merge");
    snprintf(c.family, sizeof c.family, "%s", family);
    snprintf(c.argument, sizeof c.argument, "%s", argument);
    fd_instance x;
    fd_oracle_row row;
    fd_bound bound;
    char why[256], what[120];
    cr_assert_eq(fd_instance_create(&x, &c, why, sizeof why), FD_OK, "%s", why);
    cr_assert(fd_oracle_row_init(&row, 160, DIM) == FD_OK && fd_bound_init(&bound, 160, DIM) == FD_OK);
    const result parts[PARTS_MAX] = {shard(&x, 2, 0, 100), shard(&x, 5, 100, 101), shard(&x, 3, 101, 101),
                                     shard(&x, 2, 101, 150)};
    const fd_rounding r = rounding();
    const fd_arith arith = {.size = sizeof arith,
                            .num_levels = 2,
                            .level = {{100, FD_MERGE_ADD, FD_SEQUENTIAL, 0, 0}, {4, FD_MERGE_LSE, FD_TREE, 0, 0}}};
    int32_t order[PARTS_MAX] = {0, 1, 2, 3};
    do {
        const result *chosen[PARTS_MAX];
        for (int32_t part = 0; part < PARTS_MAX; part++) {
            chosen[part] = &parts[order[part]];
        }
        const result got = merge(chosen, PARTS_MAX);
        for (int32_t h = 0; h < HEADS; h++) {
            cr_assert_eq(fd_oracle(&x.problem, 0, 0, h, FD_ORACLE_BITS, &row, why, sizeof why), FD_OK, "%s", why);
            fd_bound_row(&arith, &r, &x.problem, 0, h, &row, &bound);
            cr_assert(bound.known && bound.admissible);
            snprintf(what, sizeof what, "%s, order %d%d%d%d, head %d", family, (int)order[0], (int)order[1],
                     (int)order[2], (int)order[3], (int)h);
            expect_within(&bound, &row, &got, h, what);
        }
    } while (next_order(order, PARTS_MAX));
    fd_bound_free(&bound);
    fd_oracle_row_free(&row);
    fd_instance_free(&x);
}

Test(merge, shards_in_every_order_are_within_the_bound)
{
    every_order("gaussian", "");
    every_order("peaky", "40");
    every_order("negative", "-120");
    every_order("negative", "-46000");
}

/* The tree is that of run(): splits merged as shards of one call each have the bits of the one call. */
Test(merge, shards_cut_like_splits_have_the_bits_of_one_call)
{
    fd_case c = {.name = "merge",
                 .family = "gaussian",
                 .batch = 1,
                 .heads_q = HEADS,
                 .heads_kv = 2,
                 .head_dim = DIM,
                 .head_dim_v = DIM,
                 .kv_lens = {95},
                 .kv_len = 95,
                 .split_size = 32,
                 .seed = 4};
    fd_instance x;
    char why[256];
    cr_assert_eq(fd_instance_create(&x, &c, why, sizeof why), FD_OK, "%s", why);
    const result whole = shard(&x, 7, 0, 95);
    const result parts[] = {shard(&x, 7, 0, 32), shard(&x, 7, 32, 64), shard(&x, 7, 64, 95)};
    const result got = merge((const result *const[]){&parts[0], &parts[1], &parts[2]}, 3);
    cr_expect(same(&got, &whole));

    /* Eight splits: four and four are the two halves of the tree, three and five are not. */
    x.c.split_size = 12;
    x.problem.split_size_request = 12;
    const result eight = shard(&x, 7, 0, 95), half[] = {shard(&x, 7, 0, 48), shard(&x, 7, 48, 95)};
    const result other[] = {shard(&x, 7, 0, 36), shard(&x, 7, 36, 95)};
    const result halves = merge((const result *const[]){&half[0], &half[1]}, 2);
    const result uneven = merge((const result *const[]){&other[0], &other[1]}, 2);
    cr_expect(same(&halves, &eight) && !same(&uneven, &eight));
    fd_instance_free(&x);
}
