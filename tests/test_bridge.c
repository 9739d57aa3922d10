/* test_bridge.c: tests/bound.c against numbers that Coq computed. proofs/bridge.csv holds points (a row of keys, an
 * arithmetic, a tree) with enclosures of the theorem's bound as README.md states it and of the same with the judge's
 * inflations; proofs/counts.csv holds the roundings counted on the trees of Coq's theorems. `make proofs` computes both
 * files again. Whoever changes a formula or a constant on either side sees it here or there. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bound.h"

/* Doubles evaluate tests/bound.c; where neither sums nor exponents are large they err by less than this. */
#define AGREE 0x1p-40

enum { MOST_KEYS = 16, MOST_LINE = 4096 };

static FILE *open_table(const char *path)
{
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file, "%s is missing", path);
    char header[MOST_LINE];
    cr_assert_not_null(fgets(header, sizeof header, file), "%s is empty", path);
    return file;
}

/* The number at *text, which ends at `end`: an integer, or mpe for m 2^e. Moves *text behind `end`. */
static double number(char **text, char end)
{
    char *at = *text;
    const int64_t m = strtoll(at, &at, 10);
    const int64_t e = *at == 'p' ? strtoll(at + 1, &at, 10) : 0;
    cr_assert(*at == end || *at == '\0' || *at == '\n', "not a number: %s", *text);
    *text = *at == '\0' || *at == '\n' ? at : at + 1;
    return ldexp((double)m, (int)e);
}

static fd_level level(double ways, double merge, double order)
{
    return (fd_level){(int64_t)ways, (int32_t)merge, (int32_t)order, .in_order = 1};
}

/* Bridge.v's tree kinds. */
static fd_arith claims(int tree, int64_t n, int64_t split_size)
{
    const double k = ceil((double)n / (double)split_size);
    fd_arith arith = {.size = sizeof arith, .num_levels = tree <= 3 ? 1 : 2};
    arith.level[0] =
        tree <= 3 ? level((double)n, tree == 3 ? FD_MERGE_RUNNING : FD_MERGE_ADD, tree == 2 ? FD_TREE : FD_SEQUENTIAL)
                  : level((double)split_size, FD_MERGE_ADD, FD_SEQUENTIAL);
    arith.level[1] = level(k, tree == 4 ? FD_MERGE_NORMALISED : FD_MERGE_RESCALE, FD_SEQUENTIAL);
    return arith;
}

/* Within both ends of Coq's enclosure, up to the rounding of doubles: `absolute` where a logarithm is taken near 1. NaN fails. */
static void expect_inside(int line, const char *what, double got, double low, double high, double absolute)
{
    cr_expect(got >= low * (1.0 - AGREE) - absolute && got <= high * (1.0 + AGREE) + absolute,
              "bridge.csv:%d: %s is %.17g, Coq has [%.17g, %.17g] (off by %.2g)", line, what, got, low, high,
              got / low - 1.0);
}

Test(bridge, bound_is_what_coq_computes)
{
    FILE *file = open_table("proofs/bridge.csv");
    char text[MOST_LINE];
    int line = 1, points = 0, tight = 0;
    while (fgets(text, sizeof text, file) != NULL) {
        line++;
        char *at = text;
        const int tree = (int)number(&at, ',');
        const int64_t n = (int64_t)number(&at, ','), split_size = (int64_t)number(&at, ',');
        cr_assert(n >= 1 && n <= MOST_KEYS && split_size >= 1 && tree >= 1 && tree <= 5, "bridge.csv:%d", line);
        const int32_t head_dim = (int32_t)number(&at, ',');
        fd_rounding r = {.largest = 0x1p1000};
        r.u = number(&at, ',');
        r.eta = number(&at, ',');
        r.exp_rel = r.exp_rel_positive = number(&at, ',');
        r.exp_abs = number(&at, ',');
        r.log_rel = r.log_rel_anywhere = number(&at, ',');
        const double scale = number(&at, ','), s_max = number(&at, ',');
        double end[8]; /* the page's o and lse, the judge's o and lse; low, high */
        for (int i = 0; i < 8; i++) {
            end[i] = number(&at, ',');
        }
        double a[MOST_KEYS], gap[MOST_KEYS];
        float v[MOST_KEYS];
        for (int64_t j = 0; j < n; j++) {
            a[j] = number(&at, '/');
            gap[j] = number(&at, '/');
            v[j] = (float)number(&at, ' ');
        }
        cr_assert(*at == '\0' || *at == '\n', "bridge.csv:%d: more than %lld keys", line, (long long)n);

        long double mass = 0.0L, moment = 0.0L, size = 0.0L;
        for (int64_t j = 0; j < n; j++) {
            const long double p = expl(-(long double)gap[j]);
            mass += p;
            moment += p * (long double)v[j];
            size += p * (long double)fabsf(v[j]);
        }
        double o = (double)(moment / mass), gauge = (double)(size / mass);
        fd_oracle_row row = {
            .kv_len = n, .head_dim_v = 1, .s_max = s_max, .gap = gap, .a = a, .o = &o, .gauge = &gauge};
        const long double lse = (long double)s_max + logl(mass);
        row.lse = (double)lse;
        row.lse_lo = (double)(lse - (long double)row.lse);
        const fd_problem p = {.size = sizeof p,
                              .batch = 1,
                              .heads_q = 1,
                              .heads_kv = 1,
                              .q_len = 1,
                              .head_dim = head_dim,
                              .head_dim_v = 1,
                              .kv_capacity = n,
                              .sm_scale = (float)scale,
                              .v = {.data = v, .dtype = FD_F32, .stride = {n, 1, n, 1}}};
        const fd_arith arith = claims(tree, n, split_size);
        fd_bound bound;
        cr_assert_eq(fd_bound_init(&bound, n, 1), FD_OK, "out of memory");
        fd_bound_row(&arith, &r, &p, 0, 0, &row, &bound);
        cr_assert(bound.known, "bridge.csv:%d: no theorem", line);
        expect_inside(line, "o", bound.o[0], end[4], end[5], 0.0);
        expect_inside(line, "lse", bound.lse, end[6], end[7], (double)n * 0x1p-52);
        /* Never below the theorem; in fp32, where neither underflow nor e^Z magnifies them, three inflations above. */
        cr_expect(bound.o[0] >= end[1] && bound.lse >= end[3], "bridge.csv:%d: below the theorem", line);
        if (r.u == 0x1p-24) {
            tight++;
            cr_expect(bound.o[0] <= end[0] * (1.0 + 0x1p-18) && bound.lse <= end[2] * (1.0 + 0x1p-18),
                      "bridge.csv:%d: o %.17g, lse %.17g, the theorem %.17g, %.17g", line, bound.o[0], bound.lse,
                      end[0], end[2]);
        }
        points++;
        fd_bound_free(&bound);
    }
    fclose(file);
    cr_expect(points >= 70 && tight >= 20, "only %d points, %d in fp32", points, tight);
}

/* The judge never counts less than the tree has. Where the levels are full (as many parts as they say), no more: but for
 * X and P of a TREE, counted as if every part were rescaled at each of its steps. */
Test(bridge, counts_are_those_of_the_trees)
{
    FILE *file = open_table("proofs/counts.csv");
    char text[MOST_LINE];
    int line = 1, equal = 0;
    while (fgets(text, sizeof text, file) != NULL) {
        line++;
        char *at = text;
        const int64_t n = (int64_t)number(&at, ',');
        int64_t want[7]; /* A, R, normalised levels, hN, hD, X, P */
        for (int i = 0; i < 7; i++) {
            want[i] = (int64_t)number(&at, ',');
        }
        fd_arith arith = {.size = sizeof arith};
        int64_t keys = 1, last = 1;
        bool any_tree = false;
        while (*at != '\0' && *at != '\n') {
            cr_assert(arith.num_levels < FD_MAX_LEVELS, "counts.csv:%d: too many levels", line);
            const double ways = number(&at, '/'), merge = number(&at, '/'), order = number(&at, ' ');
            arith.level[arith.num_levels++] = level(ways, merge, order);
            last = keys;
            keys *= (int64_t)ways;
            any_tree = any_tree || (int32_t)order == FD_TREE;
        }
        const fd_counts c = fd_bound_counts(&arith, n);
        const int64_t most = c.rescales + c.running_most;
        const int64_t got[] = {c.additions, most,        c.normalised, fd_bound_h_n(&c, most), fd_bound_h_d(&c, most),
                               c.parts,     c.parts_norm};
        static const char *const names[] = {"A", "R", "normalised levels", "hN", "hD", "X", "P"};
        cr_expect(c.known, "counts.csv:%d: no theorem", line);
        for (int i = 0; i < 7; i++) {
            cr_expect(got[i] >= want[i], "counts.csv:%d: %s is %lld, Coq counts %lld", line, names[i],
                      (long long)got[i], (long long)want[i]);
            if (n > keys - last && (i < 5 || !any_tree) && !(i == 5 && c.running_part > 0)) {
                equal++;
                cr_expect_eq(got[i], want[i], "counts.csv:%d: %s is %lld, Coq counts %lld", line, names[i],
                             (long long)got[i], (long long)want[i]);
            }
        }
    }
    fclose(file);
    cr_expect(equal >= 300, "only %d equalities", equal);
}
