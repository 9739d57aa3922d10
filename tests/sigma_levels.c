/* sigma_levels.c: sums of the sigma model as they are rescaled, stored, divided and merged, each with the errors of
 * it. */
#include <math.h>
#include <string.h>

#include "sigma_parts.h"

/* Errs a part: by `shared` in the weight of all its keys, by `num` and `den` in the sums o and l. */
static void err_part(fd_sigma_model *x, const fd_sigma_node *part, double shared, double num, double den)
{
    const double *q = part->q, *o = x->row->o, p = part->p;
    double *var = x->out->var;
    for (int32_t i = 0; i < x->dims; i++) {
        const double off = q[i] - o[i] * p;
        var[i] += shared * (off * off) + num * (q[i] * q[i]);
    }
    x->sum_w += shared * (p * p);
    x->sum_d += den * (p * p);
}

/* Stores partial_o: the average over the part if its o was divided by its l, else the sum itself, whose l began at
 * m. */
static void store(fd_sigma_model *x, const fd_sigma_node *part)
{
    const double unit = x->divided ? part->p : exp(part->m - x->c_lse), *q = part->q;
    double *var = x->out->var;
    for (int32_t i = 0; i < x->dims && x->u_partial > 0.0; i++) {
        const double half = fmax(x->u_partial * fabs(q[i]), x->eta_partial * unit);
        var[i] += half * half;
    }
}

/* Is what this level joins stored first? */
static bool stores(const fd_sigma_model *x, const fd_sigma_level *l)
{
    const bool divides = l->merge == FD_MERGE_NORMALISED || l->merge == FD_MERGE_LSE;
    return x->u_partial > 0.0 && (x->divided ? divides : l == &x->level[x->num_levels - 1] && x->num_levels > 1);
}

void fd_sigma_rescale(fd_sigma_model *x, const fd_sigma_node *part, double shift)
{
    const double gap = shift - part->m;
    if (gap > 0.0) {
        err_part(x, part, gap * gap + x->eps2, 1.0, 1.0);
    }
}

/* o is divided by its own l, and weighed by w = fl(exp(m - shift) l): a quotient, a product, and w's own errors. */
static void normalise(fd_sigma_model *x, const fd_sigma_node *part, double shift)
{
    const double gap = shift - part->m;
    err_part(x, part, gap > 0.0 ? gap * gap + x->eps2 + 1.0 : 0.0, 2.0, 0.0);
}

/* lse of a part, less the row's largest logit. */
static double part_lse(const fd_sigma_model *x, double p)
{
    return log(p) + x->c_lse;
}

/* o is divided by its own l; m and ln l become one number, which is rounded and then weighs the whole part. */
static void fold(fd_sigma_model *x, const fd_sigma_node *part, double shift)
{
    if (!(part->p > 0.0)) {
        return;
    }
    const double lse = part_lse(x, part->p), gap = shift - lse, log_l = lse - part->m, size = x->row->s_max + lse;
    err_part(x, part, size * size + x->log2 * log_l * log_l + (gap > 0.0 ? gap * gap + x->eps2 : 0.0),
             gap > 0.0 ? 2.0 : 1.0, 0.0);
}

static void add_part(fd_sigma_model *x, fd_sigma_node *to, const fd_sigma_node *part)
{
    double *q = to->q, *var = x->out->var;
    for (int32_t i = 0; i < x->dims; i++) {
        q[i] += part->q[i];
        var[i] += q[i] * q[i];
    }
    to->p += part->p;
    to->m = fmax(to->m, part->m);
    to->size += part->size;
    x->sum_d += to->p * to->p;
}

static void copy_part(fd_sigma_model *x, fd_sigma_node *to, const fd_sigma_node *part)
{
    memcpy(to->q, part->q, (size_t)x->dims * sizeof *to->q);
    to->p = part->p;
    to->m = part->m;
    to->first = part->first;
    to->size = 1;
}

/* Merges the two youngest sums of a tree. */
static void join(fd_sigma_model *x, fd_sigma_level *l)
{
    fd_sigma_node *left = &x->out->node[l->first + l->open - 2], *right = left + 1;
    const bool is_lse = l->merge == FD_MERGE_LSE;
    const double shift = is_lse ? fmax(part_lse(x, left->p), part_lse(x, right->p)) : fmax(left->m, right->m);
    if (stores(x, l)) {
        store(x, left);
        store(x, right);
    }
    if (is_lse) {
        fold(x, left, shift);
        fold(x, right, shift);
    } else if (l->merge == FD_MERGE_NORMALISED) {
        normalise(x, left, shift);
        normalise(x, right, shift);
    } else if (l->merge != FD_MERGE_ADD && l->rescales) {
        fd_sigma_rescale(x, left, shift);
        fd_sigma_rescale(x, right, shift);
    }
    add_part(x, left, right);
    left->m = is_lse ? shift : left->m;
    l->open--;
}

double fd_sigma_largest(const fd_oracle_row *row, int64_t first, int64_t last)
{
    double m = -HUGE_VAL;
    for (int64_t j = first; j < last && j < row->kv_len; j++) {
        m = fmax(m, -row->gap[j]);
    }
    return m;
}

/* The largest lse of the parts, of `keys` keys each, that keys [first, last) make, less the row's largest logit. */
static double largest_lse(const fd_sigma_model *x, int64_t first, int64_t last, int64_t keys)
{
    double shift = -HUGE_VAL;
    for (int64_t part = first; part < last && part < x->row->kv_len; part += keys) {
        double p = 0.0;
        for (int64_t j = part; j < part + keys && j < x->row->kv_len; j++) {
            p += x->row->p[j];
        }
        shift = fmax(shift, part_lse(x, p));
    }
    return shift;
}

/* What happens to a sum so far and to a part before they are added in sequence. */
static void before_adding(fd_sigma_model *x, fd_sigma_level *l, const fd_sigma_node *part)
{
    const fd_sigma_node *sum = &x->out->node[l->first];
    if (stores(x, l)) {
        store(x, part);
    }
    switch (l->merge) {
    case FD_MERGE_RUNNING:
        if (l->open > 0 && part->m > sum->m) {
            fd_sigma_rescale(x, sum, part->m);
        } else if (l->open > 0 && l->rescales) {
            fd_sigma_rescale(x, part, sum->m);
        }
        return;
    case FD_MERGE_LSE:
        if (l->open == 0) {
            l->shift = largest_lse(x, part->first, part->first + l->keys, l->part);
        }
        fold(x, part, l->shift);
        return;
    case FD_MERGE_RESCALE:
    case FD_MERGE_NORMALISED:
        if (l->open == 0) {
            l->shift = fd_sigma_largest(x->row, part->first, part->first + l->keys);
        }
        (l->merge == FD_MERGE_RESCALE ? fd_sigma_rescale : normalise)(x, part, l->shift);
        return;
    default:
        return;
    }
}

void fd_sigma_pass_on(fd_sigma_model *x, int32_t at, bool ended)
{
    fd_sigma_level *l = &x->level[at];
    if (l->open == 0 || (!ended && l->parts < l->ways)) {
        return;
    }
    while (l->open > 1) {
        join(x, l);
    }
    if (l->merge == FD_MERGE_LSE && !l->tree) {
        x->out->node[l->first].m = l->shift;
    }
    x->root = x->out->node[l->first].m;
    l->open = 0;
    l->parts = 0;
    if (at + 1 < x->num_levels) {
        fd_sigma_absorb(x, at + 1, &x->out->node[l->first]);
    }
}

void fd_sigma_absorb(fd_sigma_model *x, int32_t at, const fd_sigma_node *part)
{
    fd_sigma_level *l = &x->level[at];
    fd_sigma_node *node = &x->out->node[l->first];
    l->parts++;
    if (l->tree) {
        copy_part(x, node + l->open++, part);
        while (l->open > 1 && node[l->open - 1].size == node[l->open - 2].size) {
            join(x, l);
        }
    } else {
        before_adding(x, l, part);
        if (l->open == 0) { /* the first addition, to 0, is exact */
            copy_part(x, node, part);
            l->open = 1;
        } else {
            add_part(x, node, part);
        }
    }
    fd_sigma_pass_on(x, at, false);
}
