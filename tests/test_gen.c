/* test_gen.c: the generator gives the same bits everywhere, whatever the strides. data/golden_hashes.csv holds what the
 * bits are. */
#define _POSIX_C_SOURCE 200809L /* setenv */

#include <criterion/criterion.h>
#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>

#include "test_gen.h"

/* ---- Golden hashes ---- */

static const char *data_path(const char *file)
{
    static char path[4096];
    const char *root = getenv("FD_DATA");
    snprintf(path, sizeof path, "%s/%s", root != NULL ? root : "data", file);
    return path;
}

static uint64_t hash_of(const fd_case *c)
{
    fd_instance x = create(c);
    const uint64_t hash = fd_gen_hash(&x.problem);
    fd_instance_free(&x);
    return hash;
}

static const char *const families[][2] = {{"gaussian", ""},
                                          {"peaky", "8"},
                                          {"peaky", "40"},
                                          {"flat-integer", ""},
                                          {"flat-integer", "ones"},
                                          {"selector", ""},
                                          {"selector", "four"},
                                          {"negative", "-120"},
                                          {"negative", "-46000"},
                                          {"negative", "-46000-flat"},
                                          {"ragged-spike", ""},
                                          {"attained", ""},
                                          {"whisper", ""},
                                          {"scale", "negative"},
                                          {"scale", "zero"},
                                          {"real", "0"},
                                          {"real", "2"},
                                          {"real", "5"},
                                          {"cancel", "pairs"},
                                          {"cancel", "near"},
                                          {"tied", ""},
                                          {"ramp", "ascending"},
                                          {"ramp", "descending"},
                                          {"offset", "3584"},
                                          {"offset", "46000-flat"},
                                          {"flat-positive", ""},
                                          {"adversarial", "v"},
                                          {"adversarial", "dot"},
                                          {"counterexample", "underflow"},
                                          {"counterexample", "alpha-l"},
                                          {"counterexample", "lse"},
                                          {"needle", "every"},
                                          {"needle", "every-exact"},
                                          {"sink", ""},
                                          {"outlier", "k"},
                                          {"outlier", "qk"},
                                          {"magnitude", "2^-126"},
                                          {"magnitude", "2^-140"},
                                          {"magnitude", "2^-140-flat"},
                                          {"magnitude", "huge"},
                                          {"magnitude", "mixed"}};

Test(gen, bits_are_those_of_golden_hashes_csv)
{
    const bool print = getenv("FD_PRINT_GOLDEN") != NULL;
    char line[256], version[64];
    FILE *file = fopen(data_path("golden_hashes.csv"), "r");
    cr_assert(file != NULL || print, "%s cannot be opened", data_path("golden_hashes.csv"));
    snprintf(version, sizeof version, "# fd-golden-hashes version %d\n", FD_CASE_TABLE_VERSION);
    cr_assert(print || (fgets(line, sizeof line, file) != NULL && strcmp(line, version) == 0),
              "golden_hashes.csv is not of version %d", FD_CASE_TABLE_VERSION);
    do { /* to the head */
        cr_assert(print || fgets(line, sizeof line, file) != NULL);
    } while (!print && line[0] == '#');

    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        for (size_t d = 0; d < sizeof triples / sizeof *triples; d++) {
            fd_case c = standard_case(families[f][0], families[f][1], triples[d]);
            char refused[256];
            if (fd_gen_check(&c, refused, sizeof refused) != FD_OK) { /* a family for some dtypes only */
                cr_assert(strcmp(triples[d], "fff") != 0, "%s", refused);
                continue;
            }
            char want[256];
            snprintf(want, sizeof want, "%s,%s,%s,%016llx\n", families[f][0], families[f][1], triples[d],
                     (unsigned long long)hash_of(&c));
            if (print) {
                fputs(want, stdout);
                continue;
            }
            cr_assert(fgets(line, sizeof line, file) != NULL, "golden_hashes.csv ends before %s", c.name);
            cr_assert_str_eq(line, want, "the bits of %s changed: raise FD_CASE_TABLE_VERSION", c.name);
        }
    }
    cr_assert(print || fgets(line, sizeof line, file) == NULL, "golden_hashes.csv has a line too many: %s", line);
    if (file != NULL) {
        fclose(file);
    }
    fflush(stdout);
}

Test(gen, real_file_holds_the_captured_statistics)
{
    /* data/real/README.md: layer 0 has a logit of 66.925, and no other above it. */
    const fd_case c = standard_case("real", "0", "fff");
    fd_instance x = create(&c);
    const fd_problem *p = &x.problem;
    double largest = -(double)INFINITY;
    for (int32_t b = 0; b < 4; b++) {
        for (int32_t h = 0; h < 12; h++) {
            for (int64_t j = 0; j < 347; j++) {
                double s = 0.0;
                for (int64_t i = 0; i < 32; i++) {
                    s += (double)fd_load(&p->q, fd_row_at(&p->q, b, 0, h) + i) *
                         (double)fd_load(&p->k, fd_kv_at(p, &p->k, b, j, h) + i);
                }
                largest = fmax(largest, s * (double)p->sm_scale);
            }
        }
    }
    cr_assert_float_eq(largest, 66.925, 5e-4);
    cr_assert(p->k.stride[0] == 0 && p->v.stride[0] == 0, "the batch shares k and v");
    fd_instance_free(&x);
}

/* ---- Random numbers ---- */

Test(gen, random_numbers_are_near_normal)
{
    enum { N = 1 << 20 };
    double sum = 0.0, squares = 0.0, fourths = 0.0, product = 0.0, before = 0.0, other = 0.0;
    float low = 0.0f, high = 0.0f;
    int inside = 0;
    for (uint64_t i = 0; i < N; i++) {
        const float x = fd_random_normal(1, 2, i);
        const double y = (double)x;
        cr_assert(fmod(fabs(y) * 0x1p20, 2.0) == 1.0, "%a is no odd multiple of 2^-20", y);
        sum += y;
        squares += y * y;
        fourths += y * y * y * y;
        product += y * before;
        other += y * (double)fd_random_normal(1, 3, i);
        before = y;
        low = fminf(low, x);
        high = fmaxf(high, x);
        inside += fabs(y) < 1.0;
    }
    /* Five standard deviations of each estimate. */
    cr_assert_float_eq(sum / N, 0.0, 5.0 / 1024.0);
    cr_assert_float_eq(squares / N, 1.0 + 1.0 / 192.0, 5.0 * sqrt(2.0) / 1024.0);
    cr_assert_float_eq(product / N, 0.0, 5.0 / 1024.0, "neighbours are correlated");
    cr_assert_float_eq(other / N, 0.0, 5.0 / 1024.0, "streams are correlated");
    cr_assert_float_eq(fourths / N, 3.0, 0.06); /* 3 - 2/64 from the popcount, + 1/32 from the fraction's variance */
    cr_assert_float_eq((double)inside / N, 0.6827, 0.006);
    cr_assert(low > -8.125f && high < 8.125f && low < -4.25f && high > 4.25f, "extremes %g %g", (double)low,
              (double)high);
}

Test(gen, random_bits_depend_on_seed_stream_and_index)
{
    const uint64_t x = fd_random_bits(1, 1, 1);
    cr_assert(x == fd_random_bits(1, 1, 1));
    cr_assert(x != fd_random_bits(2, 1, 1) && x != fd_random_bits(1, 2, 1) && x != fd_random_bits(1, 1, 2));
    for (int bit = 0; bit < 64; bit++) { /* each is 1 about half of the time: five standard deviations */
        int ones = 0;
        for (uint64_t i = 0; i < 4096; i++) {
            ones += (int)(fd_random_bits(0, 0, i) >> bit & 1u);
        }
        cr_assert(abs(ones - 2048) < 160, "bit %d: %d of 4096", bit, ones);
    }
}

Test(gen, sm_scale_is_rounded_once)
{
    mpfr_t x;
    mpfr_init2(x, 200);
    for (int32_t head_dim = 1; head_dim <= 1024; head_dim++) {
        const fd_case c = {.family = "gaussian", .head_dim = head_dim};
        mpfr_set_si(x, head_dim, MPFR_RNDN);
        mpfr_rec_sqrt(x, x, MPFR_RNDN);
        cr_assert(fd_gen_sm_scale(&c) == mpfr_get_flt(x, MPFR_RNDN), "head_dim %d", head_dim);
    }
    mpfr_clear(x);
}

/* ---- Independence of memory ---- */

Test(gen, bits_do_not_depend_on_the_layout)
{
    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        fd_case c = standard_case(families[f][0], families[f][1], "fff");
        const uint64_t hash = hash_of(&c);
        c.layout = FD_LAYOUT_BHSD;
        cr_assert(hash_of(&c) == hash, "%s", c.name);
    }
}

/* Every stride different from any that an instance has: elements 3 apart, heads outermost. */
static void check_strided(const char *dtypes)
{
    enum { STEP = 3, ROW = STEP * 8 };
    const fd_case c = standard_case("gaussian", "", dtypes);
    fd_instance x = create(&c);
    fd_problem p = x.problem;
    fd_tensor *const tensors[] = {&p.k, &p.v};
    char why[256] = "";
    p.kv_capacity += 11;
    const int64_t elements = 2 * 3 * p.kv_capacity * ROW;
    for (int t = 0; t < 2; t++) {
        const int64_t stride[4] = {p.kv_capacity * ROW, ROW, 3 * p.kv_capacity * ROW, STEP};
        memcpy(tensors[t]->stride, stride, sizeof stride);
        tensors[t]->data = calloc((size_t)elements, sizeof(float));
        cr_assert_not_null(tensors[t]->data);
    }
    cr_assert(fd_gen_fill(&c, &p, why, sizeof why) == FD_OK, "%s", why);
    cr_assert(fd_gen_hash(&p) == fd_gen_hash(&x.problem), "%s", c.name);
    for (int t = 0; t < 2; t++) { /* a normal number is never 0: only visible elements were written */
        int64_t written = 0;
        for (int64_t e = 0; e < elements; e++) {
            written += fd_load(tensors[t], e) != 0.0f;
        }
        cr_assert(written == (37 + 64) * 2 * (t == 0 ? 8 : 6), "%s: %lld elements", c.name, (long long)written);
        free(tensors[t]->data);
    }
    fd_instance_free(&x);
}

Test(gen, bits_do_not_depend_on_strides)
{
    check_strided("fff");
    check_strided("hhh");
    check_strided("bbb");
}

Test(gen, a_problem_of_another_shape_is_refused)
{
    const fd_case c = standard_case("gaussian", "", "fff");
    fd_instance x = create(&c);
    char why[256] = "";
    fd_problem p = x.problem;
    p.kv_capacity = c.kv_len - 1;
    cr_assert(fd_gen_fill(&c, &p, why, sizeof why) == FD_INVALID && strlen(why) > 0);
    p = x.problem;
    p.heads_kv = 1;
    cr_assert(fd_gen_fill(&c, &p, why, sizeof why) == FD_INVALID);
    p = x.problem;
    p.v.dtype = FD_F16;
    cr_assert(fd_gen_fill(&c, &p, why, sizeof why) == FD_INVALID);
    p = x.problem;
    p.k.space = FD_DEVICE;
    cr_assert(fd_gen_fill(&c, &p, why, sizeof why) == FD_INVALID);
    fd_instance_free(&x);
}

/* Above 4096 tokens several threads fill; element by element it must be what one counter gives. */
Test(gen, an_element_is_a_function_of_its_index)
{
    fd_case c = {.name = "index",
                 .family = "gaussian",
                 .batch = 2,
                 .heads_q = 2,
                 .heads_kv = 2,
                 .head_dim = 3,
                 .head_dim_v = 2,
                 .kv_lens = {5000, 4999},
                 .kv_len = 5000,
                 .seed = 7};
    fd_instance x = create(&c);
    const fd_problem *p = &x.problem;
    for (int32_t b = 0; b < 2; b++) {
        for (int64_t j = 0; j < c.kv_lens[b]; j += 7) {
            for (int32_t h = 0; h < 2; h++) {
                const uint64_t row = (uint64_t)((b * 5000 + j) * 2 + h);
                cr_assert(fd_load(&p->k, fd_kv_at(p, &p->k, b, j, h) + 2) == fd_random_normal(7, 2, row * 3 + 2));
                cr_assert(fd_load(&p->v, fd_kv_at(p, &p->v, b, j, h) + 1) == fd_random_normal(7, 3, row * 2 + 1));
            }
        }
    }
    cr_assert(fd_load(&p->q, fd_row_at(&p->q, 1, 0, 1)) == fd_random_normal(7, 1, 9));
    fd_instance_free(&x);
}
