/* test_gen_families.c: exact answers are the exact answers, and a family's logits are where it says they are. */
#define _POSIX_C_SOURCE 200809L /* setenv */

#include <criterion/criterion.h>
#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>

#include "test_gen.h"

/* ---- Exact answers ---- */

/* The formula over the stored numbers, each weight rounded to fp32, sums in double. */
static void brute_force(const fd_problem *p, int32_t b, int32_t h, double *o)
{
    const int64_t kv_len = fd_kv_len(p, b);
    const int32_t h_kv = h / fd_group(p);
    double *s = (double *)malloc((size_t)kv_len * sizeof *s), largest = -(double)INFINITY, l = 0.0;
    cr_assert_not_null(s);
    for (int64_t j = 0; j < kv_len; j++) {
        s[j] = 0.0;
        for (int64_t i = 0; i < p->head_dim; i++) {
            s[j] += (double)fd_load(&p->q, fd_row_at(&p->q, b, 0, h) + i) *
                    (double)fd_load(&p->k, fd_kv_at(p, &p->k, b, j, h_kv) + i);
        }
        s[j] *= (double)p->sm_scale;
        largest = fmax(largest, s[j]);
    }
    for (int64_t i = 0; i < p->head_dim_v; i++) {
        o[i] = 0.0;
    }
    for (int64_t j = 0; j < kv_len; j++) {
        const double weight = (double)(float)exp(s[j] - largest);
        l += weight;
        for (int64_t i = 0; i < p->head_dim_v; i++) {
            o[i] += weight * (double)fd_load(&p->v, fd_kv_at(p, &p->v, b, j, h_kv) + i);
        }
    }
    for (int64_t i = 0; i < p->head_dim_v; i++) {
        o[i] /= l;
    }
    free(s);
}

/* Compares every row that claims an exact answer; returns how many do. */
static int compare_exact(const fd_case *c)
{
    fd_instance x = create(c);
    double want[64];
    float got[64];
    int rows = 0;
    for (int32_t b = 0; b < c->batch; b++) {
        for (int32_t h = 0; h < c->heads_q; h++) {
            if (!fd_gen_exact(c, &x.problem, b, 0, h, got)) {
                continue;
            }
            rows++;
            brute_force(&x.problem, b, h, want);
            for (int32_t i = 0; i < c->head_dim_v; i++) {
                const double value = c->kv_lens[b] == 0 ? 0.0 : want[i];
                cr_assert((double)got[i] == value, "%s b %d h %d i %d: %a, not %a", c->name, b, h, i, (double)got[i],
                          value);
            }
        }
    }
    fd_instance_free(&x);
    return rows;
}

Test(gen_families, exact_answers_are_the_sums)
{
    const struct {
        const char *family, *argument;
        int rows; /* of 12: 4 heads of lengths 37, 0 and 64 */
    } expected[] = {{"gaussian", "", 4},
                    {"flat-integer", "", 8},
                    {"flat-integer", "ones", 8},
                    {"selector", "", 12},
                    {"selector", "four", 8},
                    {"negative", "-120", 4},
                    {"negative", "-46000-flat", 8},
                    {"offset", "46000-flat", 8},
                    {"needle", "every-exact", 12},
                    {"magnitude", "2^-140-flat", 8}};
    for (size_t f = 0; f < sizeof expected / sizeof *expected; f++) {
        for (size_t d = 0; d < sizeof triples / sizeof *triples; d++) {
            const fd_case c = standard_case(expected[f].family, expected[f].argument, triples[d]);
            char refused[256];
            if (fd_gen_check(&c, refused, sizeof refused) != FD_OK) {
                continue;
            }
            const int rows = compare_exact(&c);
            cr_assert(rows == expected[f].rows, "%s: %d rows have an exact answer", c.name, rows);
        }
    }
}

Test(gen_families, selected_keys_are_at_the_edges)
{
    /* 7 KV heads in two rows: the cycle of places runs twice, with splits of 16. */
    fd_case c = {.name = "edges",
                 .family = "selector",
                 .batch = 2,
                 .heads_q = 7,
                 .heads_kv = 7,
                 .head_dim = 2,
                 .head_dim_v = 2,
                 .kv_lens = {50, 9},
                 .kv_len = 50,
                 .split_size = 16};
    const int64_t want[2][7] = {{0, 49, 1, 15, 16, 17, 25}, {0, 8, 1, 8, 8, 8, 4}};
    fd_instance x = create(&c);
    const fd_problem *p = &x.problem;
    for (int32_t b = 0; b < 2; b++) {
        for (int32_t h = 0; h < 7; h++) {
            for (int64_t j = 0; j < c.kv_lens[b]; j++) {
                const float k_0 = fd_load(&p->k, fd_kv_at(p, &p->k, b, j, h));
                cr_assert(k_0 == (j == want[b][h] ? 0.0f : -2048.0f), "b %d h %d j %d", b, h, (int)j);
            }
        }
    }
    fd_instance_free(&x);
}

Test(gen_families, a_mean_is_exact_only_if_its_splits_are)
{
    float o[8];
    const fd_case c = standard_case("flat-integer", "", "fff"); /* row 2 has 64 keys */
    fd_instance x = create(&c);
    fd_problem *p = &x.problem;
    const int64_t split_size[] = {0, 1, 3, 16, 48, 64, 100}, num_splits[] = {1, 3, 4, 64};
    const bool size_exact[] = {false, true, false, true, false, true, true}, num_exact[] = {true, false, true, true};
    for (int s = 0; s < 7; s++) {
        p->split_size_request = split_size[s];
        cr_assert(fd_gen_exact(&c, p, 2, 0, 0, o) == size_exact[s], "split_size %d", (int)split_size[s]);
        cr_assert(!fd_gen_exact(&c, p, 0, 0, 0, o), "37 keys");
    }
    p->split_size_request = 0;
    for (int s = 0; s < 4; s++) {
        p->num_splits_request = (int32_t)num_splits[s];
        cr_assert(fd_gen_exact(&c, p, 2, 0, 0, o) == num_exact[s], "num_splits %d", (int)num_splits[s]);
    }
    fd_instance_free(&x);
}

/* ---- Families say what they promise ---- */

static double logit(const fd_problem *p, int32_t b, int32_t h, int64_t j)
{
    double s = 0.0;
    for (int64_t i = 0; i < p->head_dim; i++) {
        s += (double)fd_load(&p->q, fd_row_at(&p->q, b, 0, h) + i) *
             (double)fd_load(&p->k, fd_kv_at(p, &p->k, b, j, h / fd_group(p)) + i);
    }
    return s * (double)p->sm_scale;
}

Test(gen_families, logits_are_where_the_family_wants_them)
{
    const struct {
        const char *family, *argument, *dtypes;
        double low, high; /* of the logits of key 36, the last of row 0 */
    } expected[] = {{"negative", "-120", "bbb", -124.0, -116.0},
                    {"negative", "-46000", "bbb", -46084.0, -46076.0},
                    {"negative", "-46000-flat", "fff", -11585.25, -11585.23}, /* -4096 sqrt(8) */
                    {"ragged-spike", "", "bbb", 8.0, 16.0},
                    {"attained", "", "fff", -16.635533, -16.635532}};
    for (size_t f = 0; f < sizeof expected / sizeof *expected; f++) {
        const fd_case c = standard_case(expected[f].family, expected[f].argument, expected[f].dtypes);
        fd_instance x = create(&c);
        const double s = logit(&x.problem, 0, 0, 36);
        cr_assert(s >= expected[f].low && s <= expected[f].high, "%s: %g", c.name, s);
        fd_instance_free(&x);
    }
}

Test(gen_families, attained_weight_is_lost_beside_one_but_its_product_is_not)
{
    const fd_case c = standard_case("attained", "", "fff");
    fd_instance x = create(&c);
    const float v = fd_load(&x.problem.v, fd_kv_at(&x.problem, &x.problem.v, 0, 1, 0));
    const float weight = expf(fd_load(&x.problem.k, fd_kv_at(&x.problem, &x.problem.k, 0, 1, 0)));
    cr_assert(1.0f + weight == 1.0f && 1.0f + weight * v == 1.0f + 0x1p-23f,
              "this machine's expf gives %a, not the float below 2^-24", (double)weight);
    fd_instance_free(&x);
}

Test(gen_families, bad_cases_are_refused_by_name)
{
    char why[512];
    const struct {
        const char *family, *argument, *says;
    } bad[] = {{"gausian", "", "unknown family 'gausian'"},
               {"peaky", "9", "takes one of '8' '40'"},
               {"gaussian", "8", "no argument '8'"},
               {"attained", "", "head_dim 1"},
               {"real", "0", "12:12"}};
    for (size_t x = 0; x < sizeof bad / sizeof *bad; x++) {
        fd_case c = standard_case("gaussian", "", "fff");
        snprintf(c.family, sizeof c.family, "%s", bad[x].family);
        snprintf(c.argument, sizeof c.argument, "%s", bad[x].argument);
        cr_assert(fd_gen_check(&c, why, sizeof why) == FD_INVALID, "%s:%s", bad[x].family, bad[x].argument);
        cr_assert(strstr(why, bad[x].says) != NULL && strchr(why, '\n') == NULL, "%s", why);
    }
    cr_assert(setenv("FD_DATA", "/nowhere", 1) == 0);
    const fd_case c = standard_case("real", "0", "fff");
    fd_instance instance;
    cr_assert(fd_instance_create(&instance, &c, why, sizeof why) == FD_INVALID);
    cr_assert(strstr(why, "/nowhere/real/minilm-l6.safetensors") != NULL, "%s", why);
}
