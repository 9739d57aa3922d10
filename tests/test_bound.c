/* test_bound.c: the pass line of tier 2. The counts against a table made by reading the rungs, the formula against a
 * second evaluation in MPFR (bound_check.h), and inputs on which real rungs come within a percent of it. */
#include <criterion/criterion.h>
#include <math.h>

#include "bound_check.h"

static const fd_check_counts unchanged = {0, 0, 0};

static fd_check_case new_case(int64_t n, int32_t d, int32_t d_v)
{
    fd_check_case c;
    cr_assert_eq(fd_check_init(&c, n, d, d_v), FD_OK, "out of memory");
    return c;
}

static fd_check_case from_logits(int64_t n, const float *s, const float *v)
{
    fd_check_case c;
    cr_assert_eq(fd_check_from_logits(&c, n, s, v), FD_OK, "out of memory");
    return c;
}

static void bound_row(fd_check_case *c, const fd_arith *arith)
{
    cr_assert_eq(fd_check_judge(c, arith, &fd_check_fp32), FD_OK, "the oracle refuses");
}

/* The claims of a rung, which is run on the way. */
static fd_arith claims(fd_check_case *c, int32_t number, int64_t split_size)
{
    fd_arith arith;
    cr_assert_eq(fd_check_run(c, number, split_size, &arith), FD_OK, "rung %d does not run", number);
    return arith;
}

/* ---- Counts ------------------------------------------------------------------------------------ */

/* Read off the code, for the key with most roundings, n = kv_len, C = min(n, split_size), K = ceil(n / C):
 *
 * 01, 02  o[i] = 0 + s[0] v is exact after its product; then n - 1 additions meet key 0. N: 1 + (n - 1). l likewise,
 *         without the product. D: n - 1. One exp. Nothing is rescaled.
 * 03      the same, and each later key that raises the maximum multiplies o and l once: r more for N and for D, r more
 *         exp. At most n keys do (the first one multiplies zeros).
 * 05      a split is 02 over C keys: N: C, D: C - 1. Then o /= l, weight = exp * l, weight * o: 3 more for N; weight
 *         alone: 1 more for D; K - 1 additions each. N: C + K + 2. D: C + K - 1. Two exp. K weights.
 * 07      a split is 02 over C keys. Then at each of T = ceil(log2 K) merges o is a quotient, multiplied by a weight and
 *         added: N: C + 3 T; the weights are only added: D: C - 1 + T. 1 + T exp. */
static const struct counted {
    int32_t rung;
    int64_t n, split_size, raises;
    int64_t additions, rescales, h_n, h_d, normalised, parts, parts_norm;
} table[] = {
    {1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0},
    {2, 4096, 0, 0, 4095, 1, 4096, 4095, 0, 0, 0},
    {3, 9, 0, 0, 8, 1, 9, 8, 0, 9, 0},
    {3, 9, 0, 8, 8, 1, 17, 16, 0, 9, 0},
    {3, 1000, 0, 3, 999, 1, 1003, 1002, 0, 1000, 0},
    {5, 1, 1024, 0, 0, 2, 4, 1, 1, 1, 1},
    {5, 5, 1, 0, 4, 2, 8, 5, 1, 5, 5},
    {5, 1000, 333, 0, 335, 2, 339, 336, 1, 4, 4},
    {5, 1025, 1024, 0, 1024, 2, 1028, 1025, 1, 2, 2},
    {5, 4096, 512, 0, 518, 2, 522, 519, 1, 8, 8},
    {4, 1000, 0, 3, 999, 1, 1003, 1002, 0, 1000, 0},
    {6, 1000, 333, 0, 335, 2, 339, 336, 1, 4, 4},
    {7, 1, 1024, 0, 0, 1, 1, 0, 0, 0, 0},
    {7, 1000, 1024, 0, 999, 1, 1000, 999, 0, 0, 0},
    {7, 4096, 512, 0, 514, 4, 521, 514, 0, 24, 0},
    {7, 1025, 205, 0, 207, 4, 214, 207, 0, 15, 0},
};

Test(bound, counts_are_those_of_the_code)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const struct counted *w = &table[i];
        fd_check_case c = new_case(w->n, 1, 1);
        const fd_arith arith = claims(&c, w->rung, w->split_size);
        const fd_counts t = fd_bound_counts(&arith, w->n);
        const int64_t r = t.rescales + w->raises;
        cr_expect(t.known && t.additions == w->additions && t.rescales == w->rescales, "row %zu: A, R", i);
        cr_expect(fd_bound_h_n(&t, r) == w->h_n, "row %zu: h_N is %lld", i, (long long)fd_bound_h_n(&t, r));
        cr_expect(fd_bound_h_d(&t, r) == w->h_d, "row %zu: h_D is %lld", i, (long long)fd_bound_h_d(&t, r));
        cr_expect(t.normalised == w->normalised && t.parts == w->parts && t.parts_norm == w->parts_norm,
                  "row %zu: parts %lld, %lld", i, (long long)t.parts, (long long)t.parts_norm);
        cr_expect_eq(t.running_part > 0, w->rung == 3 || w->rung == 4, "row %zu: running level", i);
        fd_check_free(&c);
    }
}

/* Rung 03 multiplies what it has once for each later key whose logit is above all before it. */
Test(bound, raises_of_a_running_maximum)
{
    enum { N = 6 };
    const struct {
        const char *what;
        float s[N];
        int64_t most; /* R of the key that meets most, its own exp included */
    } t[] = {{"ascending", {1, 2, 3, 4, 5, 6}, 6},
             {"descending", {6, 5, 4, 3, 2, 1}, 1},
             {"largest last", {6, 5, 4, 3, 2, 7}, 2},
             {"two records", {3, 1, 4, 1, 5, 2}, 3},
             {"equal, and a dot product may err", {1, 1, 1, 1, 1, 1}, 6},
             {"descending, within two errors, 2 * 2u", {1.0f, 1.0f - 0x1p-23f, 0.5f, 0.5f, 0.25f, 0.25f}, 2},
             {"descending, beyond them", {1.0f, 1.0f - 0x1p-21f, 0.5f, 0.25f, 0.125f, 0.0f}, 1}};
    const float v[N] = {1, 1, 1, 1, 1, 1};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        fd_check_case c = from_logits(N, t[i].s, v);
        fd_arith arith = claims(&c, 3, 0);
        bound_row(&c, &arith);
        cr_expect_eq(c.bound.rescales, t[i].most, "%s: R %lld", t[i].what, (long long)c.bound.rescales);
        cr_expect_eq(c.bound.h_n, t[i].most + N - 1, "%s: h_N", t[i].what);
        cr_expect_eq(c.bound.h_d, t[i].most + N - 2, "%s: h_D", t[i].what);
        arith.level[0].in_order = 0; /* any key may come last */
        bound_row(&c, &arith);
        cr_expect_eq(c.bound.rescales, N, "%s, in any order: R %lld", t[i].what, (long long)c.bound.rescales);
        fd_check_free(&c);
    }
}

static void expect_counts(const char *what, fd_arith arith, int64_t n, bool known, int64_t h_n, int64_t h_d)
{
    arith.size = sizeof arith;
    const fd_counts t = fd_bound_counts(&arith, n);
    cr_expect_eq(t.known, known, "%s: known", what);
    cr_expect(!known || (fd_bound_h_n(&t, t.rescales) == h_n && fd_bound_h_d(&t, t.rescales) == h_d),
              "%s: h_N %lld, h_D %lld", what, (long long)fd_bound_h_n(&t, t.rescales),
              (long long)fd_bound_h_d(&t, t.rescales));
}

#define LEVEL(ways, merge, order) ((fd_level){ways, FD_MERGE_##merge, FD_##order, .in_order = 1})

Test(bound, counts_of_other_trees)
{
    const fd_arith two = {.num_levels = 2, .level = {LEVEL(100, ADD, SEQUENTIAL), LEVEL(10, RESCALE, SEQUENTIAL)}};
    fd_check_case c = from_logits(3, (const float[]){1, 2, 3}, (const float[]){1, 2, 3});
    fd_arith a;
    /* product, 7 = ceil log2 additions */
    expect_counts("tree 65", (fd_arith){.num_levels = 1, .level = {LEVEL(65, ADD, TREE)}}, 65, true, 8, 7);
    /* product, 99, rescale, 9; normalised: division and w o more */
    expect_counts("rescale", two, 1000, true, 110, 109);
    a = two;
    a.level[1].merge = FD_MERGE_NORMALISED;
    expect_counts("normalised", a, 1000, true, 112, 109);
    /* product, 99, and at each of 4 steps a rescale and an addition; normalised: 2 more each */
    a.level[1].order = FD_TREE;
    expect_counts("normalised tree", a, 1000, true, 1 + 99 + 4 * 4, 99 + 4 * 2);
    a.level[1].merge = FD_MERGE_RESCALE;
    expect_counts("rescale tree", a, 1000, true, 1 + 99 + 4 * 2, 99 + 4 * 2);
    /* product, 99; quotient, product and 9 additions, in l the additions only; in a tree 4 times quotient, product,
     * addition */
    a.level[1] = LEVEL(10, LSE, SEQUENTIAL);
    expect_counts("(o, lse)", a, 1000, true, 1 + 99 + 2 + 9, 99 + 9);
    a.level[1].order = FD_TREE;
    expect_counts("(o, lse) tree", a, 1000, true, 1 + 99 + 4 * 3, 99 + 4);
    expect_counts("one part: nothing to merge", a, 100, true, 1 + 99 + 4 * 3, 99 + 4);
    a.level[1].ways = 1;
    expect_counts("one part, and said so", a, 100, true, 1 + 99, 99);
    /* unknown order: the longest of any binary tree has n - 1 merges; product, n - 1 each; divided once */
    expect_counts("unknown order", (fd_arith){.num_levels = 0}, 50, true, 50 + 49 + 2, 49 + 49);
    expect_counts("100 * 9 parts of 1000 keys", two, 901, true, 110, 109);
    expect_counts("a key too many", two, 1001, false, 0, 0);
    const fd_arith outside[] = {
        {.dtype_p = FD_F8E4M3}, {.level[0].merge = FD_MERGE_LSE_NO_DIV}, {.level[0].merge = 99}};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        a = outside[i];
        a.num_levels = 1;
        a.level[0] = LEVEL(1000, ADD, SEQUENTIAL);
        a.level[0].merge = outside[i].level[0].merge > 0 ? outside[i].level[0].merge : FD_MERGE_ADD;
        expect_counts("outside the theorem", a, 1000, false, 0, 0);
        bound_row(&c, &a);
        cr_expect(!c.bound.known && isinf(c.bound.o[0]) && isinf(c.bound.lse), "a number without a theorem");
    }
    fd_check_free(&c);
}

/* ---- The formula ------------------------------------------------------------------------------- */

/* double >= MPFR, and not by more than 2^-18: three factors 1 + 2^-20, of slack, z and the whole. The tolerance grows
 * where z itself is large, as e^2z magnifies its relative inflation; `room` says how much. */
static void expect_agreement(const char *what, fd_check_case *c, const fd_arith *arith, const fd_rounding *r,
                             double room)
{
    double o[8], lse;
    cr_assert_eq(fd_check_judge(c, arith, r), FD_OK, "the oracle refuses");
    cr_assert_eq(fd_check_bound(c, arith, r, unchanged, o, &lse), FD_OK, "out of memory");
    for (int32_t i = 0; i <= c->p.head_dim_v; i++) {
        const bool is_lse = i == c->p.head_dim_v;
        const double got = is_lse ? c->bound.lse : c->bound.o[i], want = is_lse ? lse : o[i];
        cr_expect(got >= want, "%s: %s bound %.17g is below %.17g", what, is_lse ? "lse" : "o", got, want);
        cr_expect(isinf(want) || got <= want * (1.0 + 0x1p-18 * room), "%s: %s bound %.17g is above %.17g by %.2g",
                  what, is_lse ? "lse" : "o", got, want, got / want - 1.0);
    }
}

static void randomise(fd_check_case *c, uint64_t *seed, double spread)
{
    const int64_t n = c->p.kv_capacity;
    for (int32_t i = 0; i < c->p.head_dim; i++) {
        c->q[i] = (float)(spread * fd_check_uniform(seed));
    }
    for (int64_t j = 0; j < n * c->p.head_dim; j++) { /* some keys tie, or nearly */
        c->k[j] = fd_check_below(seed, 3) == 0 && j >= c->p.head_dim
                      ? nextafterf(c->k[j - c->p.head_dim], (float)fd_check_uniform(seed))
                      : (float)fd_check_uniform(seed);
    }
    for (int64_t j = 0; j < n * c->p.head_dim_v; j++) {
        c->v[j] = (float)fd_check_uniform(seed);
    }
}

Test(bound, formula_against_mpfr)
{
    uint64_t seed = 11;
    for (int run = 0; run < 600; run++) {
        const int32_t rung = (const int32_t[]){1, 2, 3, 5, 7}[run % 5];
        fd_check_case c = new_case(1 + fd_check_below(&seed, 12), 1 + fd_check_below(&seed, 4), 2);
        randomise(&c, &seed, (const double[]){0.0, 1.0, 8.0, 60.0}[fd_check_below(&seed, 4)]);
        c.p.sm_scale = run % 8 < 4 ? 1.0f : 0.3f;
        fd_arith arith = claims(&c, rung, 1 + fd_check_below(&seed, (int32_t)c.p.kv_capacity));
        expect_agreement("as claimed", &c, &arith, &fd_check_fp32, 1.0);
        arith.level[0].order = FD_TREE;
        expect_agreement("a tree", &c, &arith, &fd_check_fp32, 1.0);
        arith = (fd_arith){.size = sizeof arith, .num_levels = 2};
        arith.level[0] = LEVEL(2, ADD, SEQUENTIAL); /* tiles of 2 keys, a running maximum over tiles */
        arith.level[1] = LEVEL(6, RUNNING, SEQUENTIAL);
        expect_agreement("tiles", &c, &arith, &fd_check_fp32, 1.0);
        arith.num_levels = 0;
        expect_agreement("unknown order", &c, &arith, &fd_check_fp32, 1.0);
        fd_check_free(&c);
    }
}

/* Coarse roundings, as in test_bound_model.c, where every second order shows; z is up to 2. Then with absolute errors,
 * which the sums of the denominator magnify like everything else that enters them. */
static void coarse(const fd_rounding *r)
{
    uint64_t seed = 12;
    for (int run = 0; run < 300; run++) {
        fd_check_case c = new_case(1 + fd_check_below(&seed, 6), 1 + fd_check_below(&seed, 2), 2);
        randomise(&c, &seed, 2.0);
        const fd_arith arith = claims(&c, (const int32_t[]){2, 3, 5, 7}[run % 4], 2);
        expect_agreement("coarse", &c, &arith, r, 4.0);
        fd_check_free(&c);
    }
}

Test(bound, formula_with_coarse_roundings)
{
    coarse(&(const fd_rounding){.u = 0x1p-6,
                                .largest = 1e300,
                                .exp_rel = 0x1p-6,
                                .exp_rel_positive = 0x1p-6,
                                .log_rel = 0x1p-6,
                                .log_rel_anywhere = 0x1p-6});
}

Test(bound, formula_with_coarse_underflow)
{
    coarse(&(const fd_rounding){.u = 0x1p-6,
                                .eta = 0x1p-20,
                                .largest = 1e300,
                                .exp_rel = 0x1p-6,
                                .exp_abs = 0x1p-18,
                                .exp_rel_positive = 0x1p-6,
                                .log_rel = 0x1p-6,
                                .log_rel_anywhere = 0x1p-6});
}

/* A key whose products cancel has z = 7.7, but with its weight of e^-50 it must not matter. */
Test(bound, a_negligible_key_does_not_inflate)
{
    enum { D = 128, N = 4 };
    fd_check_case c = new_case(N, D, 1);
    for (int32_t i = 0; i < D; i++) {
        c.q[i] = 1.0f;
    }
    for (int64_t j = 0; j < N; j++) {
        c.k[j * D] = j == 2 ? -50.0f : 0.25f * (float)j;
        c.v[j] = 1.0f + (float)j;
    }
    const fd_arith arith = claims(&c, 2, 0);
    bound_row(&c, &arith);
    const double plain = c.bound.o[0], plain_lse = c.bound.lse;
    for (int32_t i = 2; i < D; i += 2) { /* a = 1e6 */
        c.k[2 * D + i] = 1e6f / (D - 2);
        c.k[2 * D + i + 1] = -1e6f / (D - 2);
    }
    bound_row(&c, &arith);
    cr_expect(c.row.a_max > 0.99e6 && c.bound.o[0] <= plain * (1.0 + 1e-6) && c.bound.lse <= plain_lse * (1.0 + 1e-6),
              "bounds grow from %g, %g to %g, %g", plain, plain_lse, c.bound.o[0], c.bound.lse);
    expect_agreement("negligible", &c, &arith, &fd_check_fp32, 1.0);
    fd_check_free(&c);
}

Test(bound, formula_where_numbers_underflow)
{
    const struct {
        const char *what;
        int32_t rung;
        float s[6], v[6];
    } t[] = {
        {"gap 104", 2, {0.0f, -104.0f, -50.0f, -90.0f, -200.0f, -1e30f}, {0, 1, 1, 1, 1, 1}},
        {"products lost in parts",
         5,
         {0, -300, -103.97138f, -104.66453f, -103.97138f, -104.66453f},
         {0, 0, 1e30f, 1e30f, 1e30f, 1e30f}},
        {"subnormal v", 2, {0, 1, 2, 1, 0, -5}, {0x1p-149f, 0x1p-140f, -0x1p-149f, 0x1p-133f, 0, 0x1p-149f}},
        {"subnormal v, online", 3, {0, 1, 2, 1, 3, -5}, {0x1p-149f, 0x1p-140f, -0x1p-149f, 0x1p-133f, 0, 0x1p-149f}},
        {"raw weights", 1, {-5, 80, 3, 79, 80, -80}, {1, 2, -1, -2, 1, 2}},
        {"raw weights, subnormal", 1, {-95, -98, -102, -96, -101, -97}, {1, 2, -1, -2, 1, 2}},
        {"raw weights, the last bits", 1, {-101, -102, -103, -102, -101, -103}, {1, 2, -1, -2, 1, 2}},
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        fd_check_case c = from_logits(6, t[i].s, t[i].v);
        const fd_arith arith = claims(&c, t[i].rung, 2);
        expect_agreement(t[i].what, &c, &arith, &fd_check_fp32, 1.0);
        cr_expect(fd_check_error(&c, 0, (double)c.o[0]) <= c.bound.o[0], "%s: o", t[i].what);
        cr_expect(fd_check_lse_error(&c, (double)c.lse[0]) <= c.bound.lse, "%s: lse", t[i].what);
        fd_check_free(&c);
    }
}

Test(bound, stored_in_16_bits)
{
    for (int i = -160; i < 16; i++) {
        for (int part = 0; part < 256; part++) { /* the computed o is exact, or as far off as the bound allows */
            const float o = ldexpf(1.0f + (float)part / 256.0f + 0x1p-20f, i);
            const double bound = (double)o * 0x1p-12, high = (double)(float)((double)o + 0.99 * bound);
            const double f16 = fabs((double)fd_float_from_f16(fd_f16_from_float((float)high)) - (double)o);
            const double bf16 = fabs((double)fd_float_from_bf16(fd_bf16_from_float((float)high)) - (double)o);
            cr_assert(!(f16 > fd_bound_stored(bound, (double)o, FD_F16)), "fp16 %a", (double)o);
            cr_assert(!(bf16 > fd_bound_stored(bound, (double)o, FD_BF16)), "bf16 %a", (double)o);
        }
    }
    /* attained: halfway between two numbers, normal and subnormal */
    cr_expect(fd_bound_stored(0.0, 1.0 + 0x1p-11, FD_F16) < 0x1p-11 * 1.001);
    cr_expect(fd_bound_stored(0.0, 1.0 + 0x1p-8, FD_BF16) < 0x1p-8 * 1.005);
    cr_expect(fd_bound_stored(0.0, 0x1p-25, FD_F16) < 0x1p-25 * 1.001);
    cr_expect(fd_bound_stored(0.0, 0x1p-134, FD_BF16) < 0x1p-134 * 1.005);
}

/* ---- Inputs that reach it ---------------------------------------------------------------------- */

/* Each addition to o rounds up by nearly 2^-24, each to l down by as much: no smaller bound is true of these rungs. */
Test(bound, attained)
{
    for (int run = 0; run < 6; run++) {
        const int64_t n = run % 2 == 0 ? 1024 : 4096;
        fd_check_case c = new_case(n, 1, 1);
        c.q[0] = c.v[0] = 1.0f;
        for (int64_t j = 1; j < n; j++) {
            c.k[j] = -16.635532f;
            c.v[j] = 1.0f + 0x1p-22f;
        }
        fd_arith arith = claims(&c, (const int32_t[]){2, 5, 7}[run / 2], n);
        bound_row(&c, &arith);
        const double err = fd_check_error(&c, 0, (double)c.o[0]), lse = fd_check_lse_error(&c, (double)c.lse[0]);
        cr_expect(err <= c.bound.o[0] && err > 0.99 * c.bound.o[0], "n %lld: o at %g of its bound", (long long)n,
                  err / c.bound.o[0]);
        cr_expect(lse <= c.bound.lse && lse > 0.99 * c.bound.lse, "n %lld: lse at %g of its bound", (long long)n,
                  lse / c.bound.lse);

        double o_less, lse_less; /* with none of the roundings of the numerator, or of the denominator */
        fd_check_bound(&c, &arith, &fd_check_fp32, (fd_check_counts){-c.bound.h_n, 0, 0}, &o_less, &lse_less);
        cr_expect(err > o_less, "without h_N: %g", err / o_less);
        fd_check_bound(&c, &arith, &fd_check_fp32, (fd_check_counts){0, -c.bound.h_d, 0}, &o_less, &lse_less);
        cr_expect(err > o_less && lse > lse_less, "without h_D: %g, %g", err / o_less, lse / lse_less);

        arith.level[0].order = FD_TREE; /* a claim of log2 n additions is a wrong one */
        bound_row(&c, &arith);
        cr_expect(err > c.bound.o[0] && lse > c.bound.lse, "within the bound of a tree");
        fd_check_free(&c);
    }
}
