/* bound_check_model.c: the algorithms of rungs 02, 03 and 05, and any declared merge tree, in an arithmetic of their own:
 * every rounding a free factor 1 + delta, or a true rounding to few bits. */
#include <math.h>

#include "bound_check.h"

/* The double x is exact, or its error is too small to move a tie (2 bits + 2 <= 53). */
double fd_check_nearest(int bits, int least, double x)
{
    if (x == 0.0 || !isfinite(x)) {
        return x;
    }
    const int shift = bits - 1 - ilogb(x), kept = least < 0 && shift > -least ? -least : shift;
    return ldexp(nearbyint(ldexp(x, kept)), -kept);
}

static double factor(fd_check_arithmetic *m, double size)
{
    return 1.0 + size * m->delta[m->used++ % FD_CHECK_DELTAS];
}

static double rounded(fd_check_arithmetic *m, double x)
{
    return m->bits > 0 ? fd_check_nearest(m->bits, m->least, x) : x * factor(m, m->u);
}

static double add(fd_check_arithmetic *m, double x, double y) /* a sum with 0 is exact */
{
    return x == 0.0 ? y : y == 0.0 ? x : rounded(m, x + y);
}

static double exponential(fd_check_arithmetic *m, double x)
{
    return m->bits > 0 ? fd_check_nearest(m->bits, m->least, exp(x)) : exp(x) * factor(m, m->exp_rel);
}

static double logarithm(fd_check_arithmetic *m, double x)
{
    return m->bits > 0 ? fd_check_nearest(m->bits, m->least, log(x)) : log(x) * factor(m, m->u);
}

/* ---- The rungs --------------------------------------------------------------------------------- */

typedef struct state {
    double m, l, o[2];
} state;

static double logit(fd_check_arithmetic *m, const fd_check_case *c, int64_t j)
{
    double sum = 0.0;
    for (int32_t i = 0; i < c->p.head_dim; i++) {
        sum = add(m, sum, rounded(m, (double)c->q[i] * (double)c->k[j * c->p.head_dim + i]));
    }
    return rounded(m, (double)c->p.sm_scale * sum);
}

static double value(const fd_check_case *c, int64_t j, int32_t i)
{
    return (double)c->v[j * c->p.head_dim_v + i];
}

/* Rung 02 over some keys, before its division. */
static state attend(fd_check_arithmetic *m, const fd_check_case *c, int64_t begin, int64_t end)
{
    state x = {.m = -HUGE_VAL};
    double s[FD_CHECK_KEYS];
    for (int64_t j = begin; j < end; j++) {
        s[j] = logit(m, c, j);
        x.m = fmax(x.m, s[j]);
    }
    for (int64_t j = begin; j < end; j++) {
        s[j] = exponential(m, rounded(m, s[j] - x.m));
        x.l = add(m, x.l, s[j]);
    }
    for (int64_t j = begin; j < end; j++) {
        for (int32_t i = 0; i < c->p.head_dim_v; i++) {
            x.o[i] = add(m, x.o[i], rounded(m, s[j] * value(c, j, i)));
        }
    }
    return x;
}

/* l and o times exp(x.m - to). */
static void rescale(fd_check_arithmetic *m, state *x, double to)
{
    const double alpha = exponential(m, rounded(m, x->m - to));
    x->l = rounded(m, x->l * alpha);
    for (int i = 0; i < 2; i++) {
        x->o[i] = x->o[i] == 0.0 ? 0.0 : rounded(m, x->o[i] * alpha);
    }
    x->m = to;
}

static state attend_online(fd_check_arithmetic *m, const fd_check_case *c)
{
    state x = {.m = -HUGE_VAL};
    for (int64_t j = 0; j < c->p.kv_capacity; j++) {
        const double s = logit(m, c, j);
        if (j == 0) {
            x.m = s;
        } else if (s > x.m) {
            rescale(m, &x, s);
        }
        const double weight = exponential(m, rounded(m, s - x.m));
        x.l = add(m, x.l, weight);
        for (int32_t i = 0; i < c->p.head_dim_v; i++) {
            x.o[i] = add(m, x.o[i], rounded(m, weight * value(c, j, i)));
        }
    }
    return x;
}

/* x += part / part.l, weighed by part.l and exp(part.m - x.m). */
static void add_normalised(fd_check_arithmetic *m, state *x, const state *part)
{
    const double weight = rounded(m, exponential(m, rounded(m, part->m - x->m)) * part->l);
    x->l = add(m, x->l, weight);
    for (int i = 0; i < 2; i++) {
        if (part->o[i] != 0.0) {
            x->o[i] = add(m, x->o[i], rounded(m, weight * rounded(m, part->o[i] / part->l)));
        }
    }
}

/* (m, l, o) becomes (lse, 1, o / l): what two results of calls have in common with two keys. */
static void fold(fd_check_arithmetic *m, state *x)
{
    for (int i = 0; i < 2; i++) {
        x->o[i] = x->o[i] == 0.0 ? 0.0 : rounded(m, x->o[i] / x->l);
    }
    x->m = add(m, x->m, logarithm(m, x->l));
    x->l = 1.0;
}

/* x += part, a folded one. */
static void add_folded(fd_check_arithmetic *m, state *x, const state *part)
{
    const double weight = exponential(m, rounded(m, part->m - x->m));
    x->l = add(m, x->l, weight);
    for (int i = 0; i < 2; i++) {
        if (part->o[i] != 0.0) {
            x->o[i] = add(m, x->o[i], rounded(m, weight * part->o[i]));
        }
    }
}

static state attend_split(fd_check_arithmetic *m, const fd_check_case *c, int64_t split_size)
{
    const int64_t n = c->p.kv_capacity;
    state parts[FD_CHECK_KEYS], x = {.m = -HUGE_VAL};
    int64_t splits = 0;
    for (int64_t begin = 0; begin < n; begin += split_size, splits++) {
        parts[splits] = attend(m, c, begin, begin + split_size < n ? begin + split_size : n);
        x.m = fmax(x.m, parts[splits].m);
    }
    for (int64_t split = 0; split < splits; split++) {
        add_normalised(m, &x, &parts[split]);
    }
    return x;
}

/* ---- Any tree ---------------------------------------------------------------------------------- */

typedef struct tree {
    fd_check_arithmetic *m;
    const fd_check_case *c;
    const fd_arith *claims;
    double s[FD_CHECK_KEYS];
    bool merged[FD_MAX_LEVELS + 1]; /* parts of level i have maxima of their own */
} tree;

static double largest(const tree *t, int64_t begin, int64_t end)
{
    double m = -HUGE_VAL;
    for (int64_t j = begin; j < end; j++) {
        m = fmax(m, t->s[j]);
    }
    return m;
}

static void add_state(tree *t, state *x, const state *y)
{
    x->l = add(t->m, x->l, y->l);
    for (int i = 0; i < 2; i++) {
        x->o[i] = add(t->m, x->o[i], y->o[i]);
    }
}

/* Neighbours first, then neighbours of these: ceil(log2 n) steps. */
static state merge_in_a_tree(tree *t, int32_t merge, state *part, int64_t n)
{
    for (int64_t step = 1; step < n; step *= 2) {
        for (int64_t at = 0; at + step < n; at += 2 * step) {
            state *x = &part[at], *y = &part[at + step];
            if (merge == FD_MERGE_LSE) {
                fold(t->m, x);
                fold(t->m, y);
            }
            const double m = fmax(x->m, y->m);
            if (merge == FD_MERGE_ADD) {
                add_state(t, x, y);
            } else if (merge == FD_MERGE_NORMALISED || merge == FD_MERGE_LSE) {
                void (*const add_one)(fd_check_arithmetic *, state *, const state *) =
                    merge == FD_MERGE_LSE ? add_folded : add_normalised;
                state sum = {.m = m};
                add_one(t->m, &sum, x);
                add_one(t->m, &sum, y);
                *x = sum;
            } else {
                rescale(t->m, x, m);
                rescale(t->m, y, m);
                add_state(t, x, y);
            }
        }
    }
    return part[0];
}

/* The keys [begin, end) on levels 0 .. level, with a common shift, or (NAN) one of their own. */
static state eval_tree(tree *t, int32_t level, int64_t begin, int64_t end, double shift)
{
    const bool own = isnan(shift);
    if (level < 0) {
        state leaf = {.m = own ? t->s[begin] : shift};
        leaf.l = exponential(t->m, rounded(t->m, t->s[begin] - leaf.m));
        for (int32_t i = 0; i < t->c->p.head_dim_v; i++) {
            leaf.o[i] = rounded(t->m, leaf.l * value(t->c, begin, i));
        }
        return leaf;
    }
    const fd_level *x = &t->claims->level[level];
    int64_t part = 1, n = 0;
    for (int32_t i = 0; i < level; i++) {
        part *= t->claims->level[i].ways;
    }
    state sum = {.m = -HUGE_VAL}, parts[FD_CHECK_KEYS];
    const bool running = x->merge == FD_MERGE_RUNNING && x->order == FD_SEQUENTIAL;
    if (x->merge == FD_MERGE_ADD) {
        sum.m = shift = own ? largest(t, begin, end) : shift;
    }
    /* A running level that declares no order gets its parts from the last to the first. */
    const bool backward = running && x->in_order == 0;
    const int64_t count = (end - begin + part - 1) / part;
    for (int64_t turn = 0; turn < count; turn++) {
        const int64_t at = begin + (backward ? count - 1 - turn : turn) * part, to = at + part < end ? at + part : end;
        if (!running) {
            parts[n++] = eval_tree(t, level - 1, at, to, x->merge == FD_MERGE_ADD ? shift : (double)NAN);
            continue;
        }
        state y;
        double m = fmax(sum.m, largest(t, at, to));
        if (t->merged[level]) {
            y = eval_tree(t, level - 1, at, to, (double)NAN);
            rescale(t->m, &y, m);
        } else {
            y = eval_tree(t, level - 1, at, to, m);
        }
        if (turn > 0 && m > sum.m) {
            rescale(t->m, &sum, m);
        }
        sum.m = m;
        add_state(t, &sum, &y);
    }
    if (running) {
        return sum;
    }
    if (x->order == FD_TREE) {
        return merge_in_a_tree(t, x->merge, parts, n);
    }
    for (int64_t i = 0; i < n; i++) {
        if (x->merge == FD_MERGE_LSE) {
            fold(t->m, &parts[i]);
        }
        sum.m = fmax(sum.m, parts[i].m);
    }
    for (int64_t i = 0; i < n; i++) {
        if (x->merge == FD_MERGE_NORMALISED) {
            add_normalised(t->m, &sum, &parts[i]);
        } else if (x->merge == FD_MERGE_LSE) {
            add_folded(t->m, &sum, &parts[i]);
        } else {
            if (x->merge == FD_MERGE_RESCALE) {
                rescale(t->m, &parts[i], sum.m);
            }
            add_state(t, &sum, &parts[i]);
        }
    }
    return sum;
}

static state attend_tree(fd_check_arithmetic *m, const fd_check_case *c, const fd_arith *claims)
{
    tree t = {.m = m, .c = c, .claims = claims};
    for (int64_t j = 0; j < c->p.kv_capacity; j++) {
        t.s[j] = logit(m, c, j);
    }
    for (int32_t i = 0; i < claims->num_levels; i++) {
        t.merged[i + 1] = t.merged[i] || claims->level[i].merge != FD_MERGE_ADD;
    }
    return eval_tree(&t, claims->num_levels - 1, 0, c->p.kv_capacity, (double)NAN);
}

/* Up to three levels of any kind the theorem has, for n keys; additions without a rescale come first. */
fd_arith fd_check_random_tree(int64_t n, uint64_t *seed)
{
    fd_arith a = {.size = sizeof a, .num_levels = 1 + fd_check_below(seed, 3)};
    int64_t part = 1;
    int32_t least = FD_MERGE_ADD;
    for (int32_t i = 0; i < a.num_levels; i++) {
        fd_level *x = &a.level[i];
        x->ways = i + 1 < a.num_levels ? 1 + fd_check_below(seed, 3) : (n + part - 1) / part;
        part *= x->ways;
        x->merge = least + fd_check_below(seed, FD_MERGE_LSE + 1 - least);
        x->order = fd_check_below(seed, 2) ? FD_SEQUENTIAL : FD_TREE;
        x->in_order = fd_check_below(seed, 2);
        least = x->merge == FD_MERGE_ADD ? least : FD_MERGE_RUNNING;
    }
    return a;
}

void fd_check_model(fd_check_arithmetic *m, const fd_check_case *c, int32_t rung, int64_t split_size,
                    const fd_arith *claims, double *out)
{
    m->used = 0;
    const int64_t n = c->p.kv_capacity;
    const state x = rung == 2   ? attend(m, c, 0, n)
                    : rung == 3 ? attend_online(m, c)
                    : rung == 5 ? attend_split(m, c, split_size)
                                : attend_tree(m, c, claims);
    for (int32_t i = 0; i < c->p.head_dim_v; i++) {
        out[i] = rounded(m, x.o[i] / x.l);
    }
    out[c->p.head_dim_v] = add(m, x.m, logarithm(m, x.l));
}
