/* bound_check_model.c: the algorithms of rungs 02, 03 and 05, and any declared merge tree, in an arithmetic of their
 * own: every rounding a free factor 1 + delta, or a true rounding to few bits. */
#include <math.h>

#include "bound_check.h"

/* ---- The rungs --------------------------------------------------------------------------------- */

typedef struct state {
    double m, l, o[2];
} state;

static double logit(fd_check_arithmetic *m, const fd_check_case *c, int64_t j)
{
    double sum = 0.0, term[FD_CHECK_KEYS];
    int32_t terms = 0;
    for (int32_t i = 0; i < c->p.head_dim; i++) {
        const double product = (double)c->q[i] * (double)c->k[j * c->p.head_dim + i];
        if (m->extra.mma_keys == 0) {
            sum = fd_check_add(m, sum, fd_check_rounded(m, product));
            continue;
        }
        term[terms++] = product;
        if (terms == m->extra.mma_keys || i + 1 == c->p.head_dim) {
            sum = fd_check_mma(m, sum, term, terms);
            terms = 0;
        }
    }
    return fd_check_rounded(m, (double)c->p.sm_scale * sum);
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
        s[j] = fd_check_exp(m, fd_check_rounded(m, s[j] - x.m));
        x.l = fd_check_add(m, x.l, s[j]);
    }
    for (int64_t j = begin; j < end; j++) {
        for (int32_t i = 0; i < c->p.head_dim_v; i++) {
            x.o[i] = fd_check_add(m, x.o[i], fd_check_rounded(m, s[j] * value(c, j, i)));
        }
    }
    return x;
}

/* l and o times exp(x.m - to). */
static void rescale(fd_check_arithmetic *m, state *x, double to)
{
    const double alpha = fd_check_exp(m, fd_check_rounded(m, x->m - to));
    x->l = fd_check_rounded(m, x->l * alpha);
    for (int i = 0; i < 2; i++) {
        x->o[i] = x->o[i] == 0.0 ? 0.0 : fd_check_rounded(m, x->o[i] * alpha);
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
        const double weight = fd_check_exp(m, fd_check_rounded(m, s - x.m));
        x.l = fd_check_add(m, x.l, weight);
        for (int32_t i = 0; i < c->p.head_dim_v; i++) {
            x.o[i] = fd_check_add(m, x.o[i], fd_check_rounded(m, weight * value(c, j, i)));
        }
    }
    return x;
}

/* x += part / part.l, weighed by part.l and exp(part.m - x.m). */
static void add_normalised(fd_check_arithmetic *m, state *x, const state *part)
{
    const double weight = fd_check_rounded(m, fd_check_exp(m, fd_check_rounded(m, part->m - x->m)) * part->l);
    x->l = fd_check_add(m, x->l, weight);
    for (int i = 0; i < 2; i++) {
        if (part->o[i] != 0.0) {
            const double partial = fd_check_stored(m, fd_check_rounded(m, part->o[i] / part->l));
            x->o[i] = fd_check_add(m, x->o[i], fd_check_rounded(m, weight * partial));
        }
    }
}

/* (m, l, o) becomes (lse, 1, o / l): what two results of calls have in common with two keys. */
static void fold(fd_check_arithmetic *m, state *x)
{
    for (int i = 0; i < 2; i++) {
        x->o[i] = x->o[i] == 0.0 ? 0.0 : fd_check_stored(m, fd_check_rounded(m, x->o[i] / x->l));
    }
    x->m = fd_check_add(m, x->m, fd_check_log(m, x->l));
    x->l = 1.0;
}

/* x += part, a folded one. */
static void add_folded(fd_check_arithmetic *m, state *x, const state *part)
{
    const double weight = fd_check_exp(m, fd_check_rounded(m, part->m - x->m));
    x->l = fd_check_add(m, x->l, weight);
    for (int i = 0; i < 2; i++) {
        if (part->o[i] != 0.0) {
            x->o[i] = fd_check_add(m, x->o[i], fd_check_rounded(m, weight * part->o[i]));
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
    x->l = fd_check_add(t->m, x->l, y->l);
    for (int i = 0; i < 2; i++) {
        x->o[i] = fd_check_add(t->m, x->o[i], y->o[i]);
    }
}

/* Where no level divides its parts by their l, the last one, if it is not the only one, joins them as they were
 * stored. */
static bool stores_plain(const tree *t, int32_t level)
{
    bool divided = false;
    for (int32_t i = 0; i < t->claims->num_levels; i++) {
        divided =
            divided || t->claims->level[i].merge == FD_MERGE_NORMALISED || t->claims->level[i].merge == FD_MERGE_LSE;
    }
    return !divided && level > 0 && level + 1 == t->claims->num_levels;
}

static void store_plain(tree *t, int32_t level, state *x)
{
    for (int i = 0; i < 2 && stores_plain(t, level); i++) {
        x->o[i] = x->o[i] == 0.0 ? 0.0 : fd_check_stored(t->m, x->o[i]);
    }
}

/* Neighbours first, then neighbours of these: ceil(log2 n) steps. */
static state merge_in_a_tree(tree *t, int32_t level, int32_t merge, state *part, int64_t n)
{
    for (int64_t step = 1; step < n; step *= 2) {
        for (int64_t at = 0; at + step < n; at += 2 * step) {
            state *x = &part[at], *y = &part[at + step];
            if (merge == FD_MERGE_LSE) {
                fold(t->m, x);
                fold(t->m, y);
            }
            store_plain(t, level, x);
            store_plain(t, level, y);
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

/* One key: o gets a product for each part of its weight. */
static state leaf_of(tree *t, int64_t j, double shift)
{
    double part[FD_CHECK_PARTS];
    state leaf = {.m = shift, .l = fd_check_exp(t->m, fd_check_rounded(t->m, t->s[j] - shift))};
    const int parts = fd_check_weight(t->m, leaf.l, part);
    leaf.l = t->claims->p_in_l ? part[0] : leaf.l;
    for (int32_t i = 0; i < t->c->p.head_dim_v; i++) {
        for (int x = 0; x < parts; x++) {
            leaf.o[i] = fd_check_add(t->m, leaf.o[i], fd_check_rounded(t->m, part[x] * value(t->c, j, i)));
        }
    }
    return leaf;
}

/* Adds the keys [begin, end), of one instruction, to a sum whose shift they have. */
static void add_by_mma(tree *t, state *sum, int64_t begin, int64_t end)
{
    double part[FD_CHECK_KEYS][FD_CHECK_PARTS], term[FD_CHECK_KEYS];
    int parts = 0;
    for (int64_t j = begin; j < end; j++) {
        const double weight = fd_check_exp(t->m, fd_check_rounded(t->m, t->s[j] - sum->m));
        parts = fd_check_weight(t->m, weight, part[j - begin]);
        term[j - begin] = part[j - begin][0];
        sum->l = t->claims->p_in_l ? sum->l : fd_check_add(t->m, sum->l, weight);
    }
    if (t->claims->p_in_l) { /* a column of ones beside v */
        sum->l = fd_check_mma(t->m, sum->l, term, (int)(end - begin));
    }
    for (int32_t i = 0; i < t->c->p.head_dim_v; i++) {
        for (int x = 0; x < parts; x++) {
            for (int64_t j = begin; j < end; j++) {
                term[j - begin] = part[j - begin][x] * value(t->c, j, i);
            }
            sum->o[i] = fd_check_mma(t->m, sum->o[i], term, (int)(end - begin));
        }
    }
}

/* A level where the keys themselves meet, on a tensor core. */
static state keys_by_mma(tree *t, int32_t level, int64_t begin, int64_t end, double shift)
{
    const fd_level *x = &t->claims->level[level];
    const bool running = x->merge == FD_MERGE_RUNNING, tree_order = x->order == FD_TREE;
    const int64_t step = t->m->extra.mma_keys, count = (end - begin + step - 1) / step;
    state sum = {.m = -HUGE_VAL}, parts[FD_CHECK_KEYS];
    for (int64_t turn = 0; turn < count; turn++) {
        const int64_t at = begin + (running && x->in_order == 0 ? count - 1 - turn : turn) * step;
        const int64_t to = at + step < end ? at + step : end;
        const double own = largest(t, running ? at : begin, running ? to : end);
        const double m = isnan(shift) ? own : shift;
        state *const s = tree_order ? &parts[turn] : &sum;
        if (tree_order || turn == 0) {
            *s = (state){.m = m};
        } else if (running && m > sum.m) {
            rescale(t->m, &sum, m);
        }
        add_by_mma(t, s, at, to);
    }
    return tree_order ? merge_in_a_tree(t, level, x->merge, parts, count) : sum;
}

/* The keys [begin, end) on levels 0 .. level, with a common shift, or (NAN) one of their own. */
static state eval_tree(tree *t, int32_t level, int64_t begin, int64_t end, double shift)
{
    const bool own = isnan(shift);
    if (level < 0) {
        return leaf_of(t, begin, own ? t->s[begin] : shift);
    }
    const fd_level *x = &t->claims->level[level];
    int64_t part = 1, n = 0;
    for (int32_t i = 0; i < level; i++) {
        part *= t->claims->level[i].ways;
    }
    if (t->m->extra.mma_keys > 0 && part == 1 && (x->merge == FD_MERGE_ADD || x->merge == FD_MERGE_RUNNING)) {
        return keys_by_mma(t, level, begin, end, shift);
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
        store_plain(t, level, &y);
        add_state(t, &sum, &y);
    }
    if (running) {
        return sum;
    }
    if (x->order == FD_TREE) {
        return merge_in_a_tree(t, level, x->merge, parts, n);
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
            store_plain(t, level, &parts[i]);
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

void fd_check_random_types(fd_arith *a, uint64_t *seed)
{
    static const int32_t types[] = {FD_F32, FD_F16, FD_BF16};
    a->dtype_p = types[fd_check_below(seed, 3)];
    a->p_parts = a->dtype_p == FD_F32 ? 0 : fd_check_below(seed, 3);
    a->p_in_l = a->p_parts > 1 ? 0 : fd_check_below(seed, 2);
    a->dtype_partial = types[fd_check_below(seed, 3)];
    a->accumulator = fd_check_below(seed, 2) ? FD_ACC_TENSOR_CORE : FD_ACC_F32;
    a->mma_keys = (const int32_t[]){0, 4, 4, 2}[fd_check_below(seed, 4)];
}

void fd_check_model(fd_check_arithmetic *m, const fd_check_case *c, int32_t rung, int64_t split_size,
                    const fd_arith *claims, double *out)
{
    m->used = 0;
    m->claims = claims;
    m->extra = fd_bound_rounding(claims, &(fd_rounding){.u = m->u});
    const int64_t n = c->p.kv_capacity;
    const state x = rung == 2   ? attend(m, c, 0, n)
                    : rung == 3 ? attend_online(m, c)
                    : rung == 5 ? attend_split(m, c, split_size)
                                : attend_tree(m, c, claims);
    for (int32_t i = 0; i < c->p.head_dim_v; i++) {
        out[i] = fd_check_rounded(m, x.o[i] / x.l);
    }
    out[c->p.head_dim_v] = fd_check_add(m, x.m, fd_check_log(m, x.l));
}
