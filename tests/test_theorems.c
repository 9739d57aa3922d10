/* test_theorems.c: the statements of proofs/Algebra.v and proofs/Relations.v on random states, in double: what a wrong
 * statement would fail before anybody tried to prove it. The theorems about rounding are attacked in test_bound_model.c. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>

#include "bound_check.h"

enum { KEYS = 12, RUNS = 2000 };

/* A partial state: l = sum exp(s_j - m), o = sum exp(s_j - m) v_j. No key is a state of its own kind. */
typedef struct state {
    bool some;
    double m, l, o;
} state;

static state leaf(double s, double v)
{
    return (state){true, s, 1.0, v};
}

static state merge_at(double m, state x, state y)
{
    if (!x.some || !y.some) {
        return x.some ? x : y;
    }
    const double a = exp(x.m - m), b = exp(y.m - m);
    return (state){true, m, a * x.l + b * y.l, a * x.o + b * y.o};
}

static state merge(state x, state y)
{
    return merge_at(x.some && y.some ? fmax(x.m, y.m) : 0.0, x, y);
}

/* Equal up to the shift, as attention and lse see it. */
static void expect_same(const char *what, int run, state x, state y)
{
    cr_assert_eq(x.some, y.some, "%s, run %d: one is empty", what, run);
    if (x.some) {
        cr_assert(fabs(x.o / x.l - y.o / y.l) <= 1e-12, "%s, run %d: %g, %g", what, run, x.o / x.l, y.o / y.l);
        cr_assert(fabs(x.m + log(x.l) - y.m - log(y.l)) <= 1e-12, "%s, run %d: lse", what, run);
    }
}

typedef struct keys {
    int n;
    double s[KEYS], v[KEYS];
} keys;

static keys random_keys(uint64_t *seed, int least)
{
    keys k = {.n = least + fd_check_below(seed, KEYS + 1 - least)};
    for (int j = 0; j < k.n; j++) {
        k.s[j] = 20.0 * fd_check_uniform(seed);
        k.v[j] = fd_check_uniform(seed);
    }
    return k;
}

/* Keys [begin, end): cut and merged at random, every merge at a shift of its own if `free`. */
static state any_tree(uint64_t *seed, const keys *k, int begin, int end, bool free)
{
    if (end - begin <= 1) {
        return end > begin ? leaf(k->s[begin], k->v[begin]) : (state){0};
    }
    const int cut = begin + fd_check_below(seed, end - begin + 1);
    if (cut == begin || cut == end) { /* an empty part, then the rest, cut in the middle */
        const int middle = (begin + end) / 2;
        return merge((state){0}, merge(any_tree(seed, k, begin, middle, free), any_tree(seed, k, middle, end, free)));
    }
    const state x = any_tree(seed, k, begin, cut, free), y = any_tree(seed, k, cut, end, free);
    return free ? merge_at(30.0 * fd_check_uniform(seed), x, y) : merge(x, y);
}

static state exact(const keys *k)
{
    state t = {.some = k->n > 0};
    for (int j = 0; j < k->n; j++) {
        t.l += exp(k->s[j]);
        t.o += exp(k->s[j]) * k->v[j];
    }
    return t;
}

Test(theorems, merge_is_a_commutative_monoid)
{
    uint64_t seed = 1;
    for (int run = 0; run < RUNS; run++) {
        const keys a = random_keys(&seed, 0), b = random_keys(&seed, 0), c = random_keys(&seed, 0);
        const state x = any_tree(&seed, &a, 0, a.n, false), y = any_tree(&seed, &b, 0, b.n, false),
                    z = any_tree(&seed, &c, 0, c.n, false);
        expect_same("commutative", run, merge(x, y), merge(y, x));
        expect_same("associative", run, merge(merge(x, y), z), merge(x, merge(y, z)));
        expect_same("identity", run, merge((state){0}, x), x);
    }
}

Test(theorems, any_tree_and_any_shifts)
{
    uint64_t seed = 2;
    for (int run = 0; run < RUNS; run++) {
        const keys k = random_keys(&seed, 1);
        expect_same("a tree", run, any_tree(&seed, &k, 0, k.n, run % 2 != 0), exact(&k));
    }
}

/* maximum_as_shift, convex_hull, shifted_keys, duplicated, affine_values. */
Test(theorems, what_the_result_must_satisfy)
{
    uint64_t seed = 3;
    for (int run = 0; run < RUNS; run++) {
        const keys k = random_keys(&seed, 1);
        const state x = any_tree(&seed, &k, 0, k.n, false);
        cr_assert(x.l >= 1.0 - 1e-12 && x.l <= k.n + 1e-12, "run %d: l %g of %d keys", run, x.l, k.n);
        double least = k.v[0], most = k.v[0];
        const double c = 10.0 * fd_check_uniform(&seed), scale = fd_check_uniform(&seed);
        keys shifted = k, affine = k;
        state doubled = x;
        for (int j = 0; j < k.n; j++) {
            least = fmin(least, k.v[j]);
            most = fmax(most, k.v[j]);
            shifted.s[j] += c;
            affine.v[j] = scale * k.v[j] + c;
            doubled = merge(doubled, leaf(k.s[j], k.v[j]));
        }
        const double o = x.o / x.l, lse = x.m + log(x.l);
        cr_assert(o >= least - 1e-12 && o <= most + 1e-12, "run %d: %g outside [%g, %g]", run, o, least, most);
        expect_same("shifted", run, exact(&shifted), (state){true, x.m + c, x.l, x.o});
        expect_same("duplicated", run, doubled, (state){true, lse + log(2.0), 1.0, o});
        expect_same("affine", run, exact(&affine), (state){true, lse, 1.0, scale * o + c});
    }
}

/* merge_normal_is_merge, division_free: (lse, 1, o / l) is the state in other clothes. */
Test(theorems, normalised_pairs_merge_like_states)
{
    uint64_t seed = 4;
    for (int run = 0; run < RUNS; run++) {
        const keys a = random_keys(&seed, 1), b = random_keys(&seed, 1);
        const state x = any_tree(&seed, &a, 0, a.n, false), y = any_tree(&seed, &b, 0, b.n, false);
        const double lx = x.m + log(x.l), ly = y.m + log(y.l), top = fmax(lx, ly);
        const double wx = exp(lx - top), wy = exp(ly - top), lse = top + log(wx + wy);
        const state both = merge(x, y);
        const state pair = {true, lse, 1.0, (wx * x.o / x.l + wy * y.o / y.l) / (wx + wy)};
        expect_same("with a division", run, pair, both);
        const double free = exp(lx - lse) * x.o / x.l + exp(ly - lse) * y.o / y.l;
        expect_same("without", run, (state){true, lse, 1.0, free}, both);
    }
}
