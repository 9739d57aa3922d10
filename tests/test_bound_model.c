/* test_bound_model.c: the theorem of proofs/README.md under attack, on small rows. The algorithms of rungs 02, 03
 * and 05 run in an arithmetic of their own: every rounding a free factor 1 + delta, all chosen against the bound, or
 * a true rounding to few bits. No answer may leave the bound; the free ones must come so close that a count less is
 * refuted. */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <math.h>

#include "bound_check.h"

enum { MAX_N = 6 };

/* ---- Judging an answer ------------------------------------------------------------------------- */

typedef struct target { /* one rung on cases of one shape, in one arithmetic */
    int32_t rung;
    int64_t split_size;
    fd_arith claims;
    fd_rounding rounding;
    fd_check_arithmetic m;
} target;

static target new_target(int32_t rung, int64_t split_size, int bits, double u, double exp_rel)
{
    target t = {.rung = rung, .split_size = split_size, .m = {.bits = bits, .u = u, .exp_rel = exp_rel}};
    t.rounding = (fd_rounding){
        .u = u, .largest = 1e300, .exp_rel = exp_rel, .exp_rel_positive = exp_rel, .log_rel = u, .log_rel_anywhere = u};
    return t;
}

/* For rungs, the claims are theirs on this shape; for trees (rung 0) the target has them. */
static fd_check_case new_case(target *t, int64_t n, int32_t d, int32_t d_v)
{
    fd_check_case c;
    fd_arith claims;
    cr_assert(n <= MAX_N && d_v <= 2 && fd_check_init(&c, n, d, d_v) == FD_OK, "out of memory");
    cr_assert_eq(fd_check_run(&c, t->rung > 0 ? t->rung : 2, t->split_size, &claims), FD_OK);
    t->claims = t->rung > 0 ? claims : t->claims;
    return c;
}

/* Error over bound: of the columns, and of lse; 2 where a number is not one. */
static void ratios(target *t, const fd_check_case *c, double of[2])
{
    const int32_t d_v = c->p.head_dim_v;
    double out[3];
    fd_check_model(&t->m, c, t->rung, t->split_size, &t->claims, out);
    of[0] = of[1] = 0.0;
    for (int32_t i = 0; i <= d_v; i++) {
        const double err = i < d_v ? fd_check_error(c, i, out[i]) : fd_check_lse_error(c, out[i]);
        const double bound = i < d_v ? c->bound.o[i] : c->bound.lse;
        of[i == d_v] = fmax(of[i == d_v], err == 0.0 ? 0.0 : isnan(err / bound) ? 2.0 : err / bound);
    }
}

/* ---- Free factors ------------------------------------------------------------------------------ */

/* The error of a row is extreme where every factor is: flips one at a time, until none helps. */
static double choose_factors(target *t, const fd_check_case *c, double *delta, bool lse)
{
    double now[2], best;
    t->m.delta = delta;
    ratios(t, c, now);
    best = now[lse];
    const int used = t->m.used < FD_CHECK_DELTAS ? t->m.used : FD_CHECK_DELTAS;
    for (bool better = true; better;) {
        better = false;
        for (int i = 0; i < used; i++) {
            delta[i] = -delta[i];
            ratios(t, c, now);
            if (now[lse] > best) {
                best = now[lse];
                better = true;
            } else {
                delta[i] = -delta[i];
            }
        }
    }
    return best;
}

/* Keys that decide the weights with v = 0, and light ones with v near 1, in rising order: their own errors add up, and
 * centring gains nothing. Now and then a row without structure. */
static void draw(fd_check_case *c, uint64_t *seed)
{
    const int64_t n = c->p.kv_capacity;
    const int32_t d = c->p.head_dim, d_v = c->p.head_dim_v, light = 1 + fd_check_below(seed, (int32_t)n);
    const bool plain = fd_check_below(seed, 4) == 0;
    for (int32_t i = 0; i < d; i++) {
        c->q[i] = i == 0 ? 1.0f : (float)fd_check_uniform(seed);
    }
    for (int64_t j = 0; j < n; j++) {
        const double gap = j < light - (n > 1) ? 3.0 + 3.0 * fabs(fd_check_uniform(seed)) : 0.0;
        for (int32_t i = 0; i < d; i++) {
            c->k[j * d + i] = plain ? (float)fd_check_uniform(seed) : i == 0 ? (float)-gap : 0.0f;
        }
        for (int32_t i = 0; i < d_v; i++) {
            c->v[j * d_v + i] = plain ? (float)fd_check_uniform(seed) : gap > 0.0 || n == 1 ? 1.0f : 0.0f;
        }
    }
}

static void nudge(fd_check_case *c, uint64_t *seed)
{
    const int64_t keys = c->p.kv_capacity * c->p.head_dim, values = c->p.kv_capacity * c->p.head_dim_v;
    const int32_t at = fd_check_below(seed, (int32_t)(keys + values));
    float *x = at < keys ? c->k + at : c->v + (at - keys);
    *x += (float)(fd_check_uniform(seed) * (fd_check_below(seed, 2) ? 1.0 : 0.1));
}

typedef struct refuted { /* did the search leave the bound with one count less? */
    double o, lse;       /* closest approach */
    bool h_n, h_d, rescales;
} refuted;

static void ask_for_less(target *t, const fd_check_case *c, double *delta, refuted *r)
{
    static const fd_check_counts changes[] = {{0, 0, 0}, {-1, 0, 0}, {0, -1, 0}, {0, 0, -1}};
    bool *const seen[] = {NULL, &r->h_n, &r->h_d, &r->rescales};
    double out[3], o[2], lse;
    const double room = t->claims.accumulator == FD_ACC_TENSOR_CORE ? 4e-5 : 4e-6; /* 16 additions at once: z to 2 */
    t->m.delta = delta;
    fd_check_model(&t->m, c, t->rung, t->split_size, &t->claims, out);
    for (size_t x = 0; x < sizeof changes / sizeof *changes; x++) {
        cr_assert_eq(fd_check_bound(c, &t->claims, &t->rounding, changes[x], o, &lse), FD_OK, "out of memory");
        if (x == 0) { /* the copy says what bound.c says; where z is large, inflation by 2^-20 grows with e^2z */
            cr_assert(fabs(c->bound.o[0] / o[0] - 1.0) < room && fabs(c->bound.lse / lse - 1.0) < room,
                      "rung %d: o %g against %g, lse %g against %g", t->rung, c->bound.o[0], o[0], c->bound.lse, lse);
        } else if (c->p.kv_capacity > 1 && fd_check_error(c, 0, out[0]) > o[0]) {
            *seen[x] = true;
        }
    }
}

static void attack(target *t, int64_t n, int32_t d, int32_t d_v, bool lse, uint64_t *seed, refuted *r)
{
    enum { STEPS = 60 };
    fd_check_case c = new_case(t, n, d, d_v), trial = new_case(t, n, d, d_v);
    const size_t bytes = (size_t)(n * (d + d_v) + d) * sizeof(float);
    double delta[FD_CHECK_DELTAS], chosen[FD_CHECK_DELTAS];
    for (int i = 0; i < FD_CHECK_DELTAS; i++) {
        delta[i] = fd_check_below(seed, 2) ? 1.0 : -1.0;
    }
    draw(&c, seed);
    cr_assert_eq(fd_check_judge(&c, &t->claims, &t->rounding), FD_OK);
    double best = choose_factors(t, &c, delta, lse);
    for (int step = 0; step < STEPS; step++) {
        memcpy(trial.q, c.q, bytes);
        memcpy(chosen, delta, sizeof delta);
        nudge(&trial, seed);
        cr_assert_eq(fd_check_judge(&trial, &t->claims, &t->rounding), FD_OK);
        const double now = choose_factors(t, &trial, chosen, lse);
        if (now > best) {
            best = now;
            memcpy(c.q, trial.q, bytes);
            memcpy(delta, chosen, sizeof delta);
        }
    }
    cr_expect(!(best > 1.0), "rung %d, n %lld, split %lld: %s at %.9g of its bound", t->rung, (long long)n,
              (long long)t->split_size, lse ? "lse" : "o", best);
    *(lse ? &r->lse : &r->o) = fmax(lse ? r->lse : r->o, best);
    cr_assert_eq(fd_check_judge(&c, &t->claims, &t->rounding), FD_OK);
    if (!lse && d_v == 1) {
        ask_for_less(t, &c, delta, r);
    }
    fd_check_free(&c);
    fd_check_free(&trial);
}

/* 2^-6 is where second orders show: a count right to first order only fails here. At 2^-9 the bound is nearly
 * reached. */
static void attack_rung(int32_t rung)
{
    refuted r = {0.0, 0.0, false, false, false};
    uint64_t seed = 100u + (uint64_t)rung;
    for (int run = 0; run < 120; run++) {
        const int64_t n = 1 + fd_check_below(&seed, MAX_N), most = n < 3 ? n : 3;
        const int64_t splits = 1 + fd_check_below(&seed, (int32_t)most);
        const double u = run % 3 == 0 ? 0x1p-6 : 0x1p-9;
        target t = new_target(rung, (n + splits - 1) / splits, 0, u, run % 4 == 1 ? 2.0 * u : u);
        attack(&t, n, 1 + run % 2, run % 5 == 4 ? 2 : 1, run % 4 == 3, &seed, &r);
    }
    cr_log_info("rung %d, free factors: o at %.4f of its bound, lse at %.4f", rung, r.o, r.lse);
    cr_expect(r.o > 0.97, "rung %d: no nearer than %g: is the bound too large?", rung, r.o);
    cr_expect(r.lse > 0.97, "rung %d: lse no nearer than %g", rung, r.lse);
    cr_expect(r.h_n && r.h_d && r.rescales, "rung %d: one count less goes unnoticed (%d, %d, %d)", rung, r.h_n, r.h_d,
              r.rescales);
}

Test(bound_model, free_factors)
{
    for (int x = 0; x < 3; x++) {
        attack_rung((const int32_t[]){2, 3, 5}[x]);
    }
}

Test(bound_model, free_factors_in_any_tree)
{
    refuted r = {0.0, 0.0, false, false, false};
    uint64_t seed = 99;
    for (int run = 0; run < 400; run++) {
        const int64_t n = 1 + fd_check_below(&seed, MAX_N);
        const double u = run % 3 == 0 ? 0x1p-6 : 0x1p-9;
        target t = new_target(0, n, 0, u, u);
        t.claims = fd_check_random_tree(n, &seed);
        attack(&t, n, 1, 1, run % 4 == 3, &seed, &r);
    }
    cr_log_info("any tree, free factors: o at %.4f of its bound, lse at %.4f", r.o, r.lse);
    cr_expect(r.o > 0.97 && r.lse > 0.97, "no nearer than %g, %g", r.o, r.lse);
}

/* Two to six parts of one or two keys, merged as (o, lse). The logits are far from 0, so that lse itself is rounded. */
Test(bound_model, free_factors_in_merges_of_lse)
{
    for (int32_t order = FD_SEQUENTIAL; order <= FD_TREE; order++) {
        refuted r = {0.0, 0.0, false, false, false};
        uint64_t seed = 300u + (uint64_t)order;
        for (int run = 0; run < 120; run++) {
            const int64_t n = 2 + fd_check_below(&seed, MAX_N - 1), part = 1 + fd_check_below(&seed, 2);
            const double u = run % 3 == 0 ? 0x1p-6 : 0x1p-9;
            target t = new_target(0, n, 0, u, u);
            t.claims = (fd_arith){.size = sizeof t.claims, .num_levels = 2};
            t.claims.level[0] = (fd_level){part, FD_MERGE_ADD, FD_SEQUENTIAL, .in_order = 1};
            t.claims.level[1] = (fd_level){(n + part - 1) / part, FD_MERGE_LSE, order, .in_order = 1};
            attack(&t, n, 1, 1, run % 4 == 3, &seed, &r);
        }
        cr_log_info("merges of lse, order %d: o at %.4f of its bound, lse at %.4f", order, r.o, r.lse);
        cr_expect(r.o > 0.97 && r.lse > 0.97, "order %d: no nearer than %g, %g", order, r.o, r.lse);
        cr_expect(r.h_n && r.h_d && r.rescales, "order %d: one count less goes unnoticed (%d, %d, %d)", order, r.h_n,
                  r.h_d, r.rescales);
    }
}

/* The same with 16-bit weights and partials, and on tensor cores. The classes are attacked one by one: each comes
 * near. With a key at a time an instruction less would be noticed. */
Test(bound_model, free_factors_of_16_bit_types_and_tensor_cores)
{
    static const struct {
        const char *what;
        fd_arith claims;
    } classes[] = {
        {"weights in bf16", {.dtype_p = FD_BF16}},
        {"weights in bf16, in l", {.dtype_p = FD_BF16, .p_in_l = 1}},
        {"weights in 2 x bf16", {.dtype_p = FD_BF16, .p_parts = 2}},
        {"partials in bf16", {.dtype_partial = FD_BF16}},
        {"tensor cores", {.accumulator = FD_ACC_TENSOR_CORE, .mma_keys = 4}},
        {"tensor cores, a key at a time, l too", {.accumulator = FD_ACC_TENSOR_CORE, .mma_keys = 1, .p_in_l = 1}},
        {"tensor cores, weights in bf16", {.dtype_p = FD_BF16, .accumulator = FD_ACC_TENSOR_CORE}},
        {"anything", {.size = 0}}};
    for (size_t k = 0; k < sizeof classes / sizeof *classes; k++) {
        refuted r = {0.0, 0.0, false, false, false};
        uint64_t seed = 400u + k;
        for (int run = 0; run < 60; run++) {
            const int64_t n = 1 + fd_check_below(&seed, MAX_N);
            const double u = run % 3 == 0 ? 0x1p-6 : 0x1p-9;
            target t = new_target(0, n, 0, u, u);
            t.claims = fd_check_random_tree(n, &seed);
            const fd_arith tree = t.claims;
            t.claims = classes[k].claims;
            t.claims.num_levels = tree.num_levels;
            memcpy(t.claims.level, tree.level, sizeof tree.level);
            if (k + 1 == sizeof classes / sizeof *classes) {
                fd_check_random_types(&t.claims, &seed);
            }
            attack(&t, n, 1 + run % 2, 1, run % 4 == 3, &seed, &r);
        }
        cr_log_info("%s: o at %.4f of its bound, lse at %.4f", classes[k].what, r.o, r.lse);
        cr_expect(r.o > 0.9 && r.lse > 0.9, "%s: no nearer than %g, %g", classes[k].what, r.o, r.lse);
    }
}

/* ---- True roundings to few bits ---------------------------------------------------------------- */

static float short_float(int bits, uint64_t *seed)
{
    const int32_t fraction = (1 << (bits - 1)) + fd_check_below(seed, 1 << (bits - 1));
    const double x = ldexp((double)fraction, fd_check_below(seed, 6) - 3 - bits);
    return (float)(fd_check_below(seed, 4) == 0 ? 0.0 : fd_check_below(seed, 2) ? x : -x);
}

static void change_one(fd_check_case *c, int bits, int least, uint64_t *seed)
{
    const int64_t numbers = c->p.head_dim + c->p.kv_capacity * (c->p.head_dim + c->p.head_dim_v);
    float *x = c->q + fd_check_below(seed, (int32_t)numbers); /* q, k and v lie one behind another */
    if (fd_check_below(seed, 2) == 0 || *x == 0.0f) {
        *x = short_float(bits, seed);
    } else { /* to a neighbour */
        const double step = ldexp(fd_check_below(seed, 2) ? 1.0 : -1.0, ilogb((double)*x) - bits + 1);
        *x = (float)fd_check_nearest(bits, least, (double)*x + step);
    }
}

/* typed: with claims of 16-bit types and tensor cores. */
static void attack_rounded(int32_t rung, bool typed)
{
    enum { STARTS = 30, STEPS = 120 };
    uint64_t seed = 200u + (uint64_t)rung + (typed ? 50u : 0u);
    double worst[2] = {0.0, 0.0}, now[2];
    for (int start = 0; start < 9 * STARTS; start++) {
        const int bits = 4 + start % 9;
        const int64_t n = 1 + fd_check_below(&seed, MAX_N);
        const double u = ldexp(1.0, -bits);
        const bool lse = start / 9 % 3 == 2;
        target t = new_target(rung, 1 + fd_check_below(&seed, (int32_t)n), bits, u, u);
        t.claims = fd_check_random_tree(n, &seed);
        if (typed) {
            fd_check_random_types(&t.claims, &seed);
            t.m.mma_model = start % 3;
        }
        if (start % 2 == 1) { /* with underflow, but not of logarithms */
            t.m.least = -2 * bits - fd_check_below(&seed, 4);
            t.rounding.eta = t.rounding.exp_abs = ldexp(0.5, t.m.least);
        }
        const int32_t d = 1 + fd_check_below(&seed, 2);
        fd_check_case c = new_case(&t, n, d, 1), trial = new_case(&t, n, d, 1);
        const size_t numbers = (size_t)(n * (d + 1) + d);
        double best = 0.0;
        for (int step = 0; step < STEPS; step++) { /* random, then uphill */
            memcpy(trial.q, c.q, numbers * sizeof(float));
            for (size_t x = 0; x < (step < STEPS / 4 ? numbers : 1); x++) {
                change_one(&trial, bits, t.m.least, &seed);
            }
            cr_assert_eq(fd_check_judge(&trial, &t.claims, &t.rounding), FD_OK);
            ratios(&t, &trial, now);
            cr_assert(!(now[0] > 1.0) && !(now[1] > 1.0),
                      "rung %d, %d bits, n %lld: o at %g, lse at %g of their bounds", rung, bits, (long long)n, now[0],
                      now[1]);
            if (now[lse] >= best) {
                best = now[lse];
                memcpy(c.q, trial.q, numbers * sizeof(float));
            }
            worst[0] = fmax(worst[0], now[0]);
            worst[1] = fmax(worst[1], now[1]);
        }
        fd_check_free(&c);
        fd_check_free(&trial);
    }
    cr_log_info("rung %d%s, rounded to 4..12 bits: o at %.3f of its bound, lse at %.3f", rung, typed ? ", typed" : "",
                worst[0], worst[1]);
    cr_expect(worst[0] > 0.35 && worst[1] > 0.35, "rung %d: the search has become weak", rung);
}

Test(bound_model, rounded)
{
    for (int x = 0; x < 4; x++) {
        attack_rounded((const int32_t[]){2, 3, 5, 0}[x], false);
    }
    attack_rounded(0, true);
}

/* ---- Rows that were refuted -------------------------------------------------------------------- */

/* Real fp32: the case run by a rung, judged by the bound as it is and by one that knows no underflow. */
static void run_real(fd_check_case *c, int32_t rung, int64_t split_size, double *err, double *without)
{
    target t = {.rounding = fd_check_fp32};
    t.rounding.eta = t.rounding.exp_abs = 0.0;
    cr_assert_eq(fd_check_run(c, rung, split_size, &t.claims), FD_OK);
    cr_assert_eq(fd_check_judge(c, &t.claims, &t.rounding), FD_OK);
    *without = c->bound.o[0];
    t.rounding = fd_check_fp32;
    cr_assert_eq(fd_check_judge(c, &t.claims, &t.rounding), FD_OK);
    *err = fd_check_error(c, 0, (double)c->o[0]);
}

/* A bound without underflow: exp(-104) is 0, and with it the whole answer. */
Test(bound_model, a_weight_that_vanishes)
{
    fd_check_case c;
    double err, without;
    fd_check_from_logits(&c, 2, (const float[]){0.0f, -104.0f}, (const float[]){0.0f, 1.0f});
    run_real(&c, 2, 0, &err, &without);
    cr_expect(err > 1e4 * without, "err %g, bound without underflow %g", err, without);
    cr_expect(err <= c.bound.o[0], "err %g, bound %g", err, c.bound.o[0]);
    fd_check_free(&c);
}

/* An underflow term of eta (n (1 + max|v|) + 3 K) forgets fl(alpha l), which rounds 1.5 least subnormals to 2. */
Test(bound_model, a_part_whose_weight_is_subnormal)
{
    enum { N = 128 };
    float s[N], v[N];
    for (int j = 0; j < N; j++) {
        s[j] = j == 0 ? 0.0f : j == 1 ? -300.0f : j % 2 == 0 ? -103.97138f : -104.66453f;
        v[j] = j < 2 ? 0.0f : 1e30f;
    }
    fd_check_case c;
    double err, without;
    fd_check_from_logits(&c, N, s, v);
    run_real(&c, 5, 2, &err, &without);
    const double row = without + 0x1p-150 * (N * (1.0 + 1e30) + 3.0 * N / 2);
    cr_expect(err > 1.2 * row, "err %g, that row %g", err, row);
    cr_expect(err <= c.bound.o[0], "err %g, bound %g", err, c.bound.o[0]);
    fd_check_free(&c);
}

/* The mean of Z does not bound the error of lse: ln E e^Z >= E Z. A dot product that cancels makes Z large. */
Test(bound_model, lse_and_jensen)
{
    fd_check_case c;
    cr_assert_eq(fd_check_init(&c, 2, 2, 1), FD_OK);
    c.q[0] = 12888.609375f;
    c.q[1] = 1.0f;
    c.k[2] = 12572.1982421875f;
    c.k[3] = -162038160.0f;
    double err, without, row = 0.0;
    run_real(&c, 2, 0, &err, &without);
    err = fd_check_lse_error(&c, (double)c.lse[0]);
    const double u = 0x1p-24;
    for (int64_t j = 0; j < 2; j++) { /* sum p Z + ln 1/(1 - g(h_D)) + u ln l + u |lse|, h_D = 1 */
        const double slack = 3.0 * u * c.row.a[j];
        row += c.row.p[j] * (slack + u * (c.row.gap[j] + slack) + u);
    }
    row += u + u * (c.row.lse - c.row.s_max) + u * fabs(c.row.lse);
    cr_expect(err > 25.0 * row, "err %g, that row %g", err, row);
    cr_expect(err <= c.bound.lse, "err %g, bound %g", err, c.bound.lse);
    fd_check_free(&c);
}
