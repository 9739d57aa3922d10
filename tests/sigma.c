/* sigma.c: the sigma model of proofs/README.md. The keys pass once, in order, through the declared levels; every rounding
 * that occurs on the way adds its variance, in units of u^2/3, taken at the actual partial sum. */
#include "sigma.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "row.h"

/* ---- Room -------------------------------------------------------------------------------------- */

fd_status fd_sigma_init(fd_sigma *sigma, int64_t kv_capacity, int32_t head_dim_v)
{
    memset(sigma, 0, sizeof *sigma);
    sigma->o = calloc((size_t)head_dim_v + 1, sizeof(double));
    sigma->var = calloc((size_t)head_dim_v + 1, sizeof(double));
    sigma->logit = calloc((size_t)kv_capacity + 1, sizeof(double));
    sigma->sums = calloc((size_t)head_dim_v + 1, FD_SIGMA_MAX_NODES * sizeof(double));
    if (sigma->o == NULL || sigma->var == NULL || sigma->logit == NULL || sigma->sums == NULL) {
        fd_sigma_free(sigma);
        return FD_NO_MEMORY;
    }
    for (int x = 0; x < FD_SIGMA_MAX_NODES; x++) {
        sigma->node[x].q = sigma->sums + (size_t)x * (size_t)head_dim_v;
    }
    return FD_OK;
}

void fd_sigma_free(fd_sigma *sigma)
{
    free(sigma->o);
    free(sigma->var);
    free(sigma->logit);
    free(sigma->sums);
    memset(sigma, 0, sizeof *sigma);
}

/* ---- Logits ------------------------------------------------------------------------------------ */

#define LANES 4 /* keys whose dot products advance together: the sums of one key depend on each other */

/* Sums of (q_i k_i)^2, and of the squares of all prefix sums but the first, of LANES keys. */
static void dot_squares(const double *q, const float *const k[LANES], int32_t n, double products[LANES],
                        double prefixes[LANES])
{
    double sum[LANES] = {0.0};
    for (int x = 0; x < LANES; x++) {
        sum[x] = q[0] * (double)k[x][0];
        products[x] = sum[x] * sum[x];
        prefixes[x] = 0.0;
    }
    for (int32_t i = 1; i < n; i++) {
        for (int x = 0; x < LANES; x++) {
            const double product = q[i] * (double)k[x][i];
            sum[x] += product;
            products[x] += product * product;
            prefixes[x] += sum[x] * sum[x];
        }
    }
}

static int significand_bits(int32_t dtype)
{
    return dtype == FD_F16 ? 11 : dtype == FD_BF16 ? 8 : 24;
}

void fd_sigma_logits(const fd_problem *p, int32_t b, int32_t t, int32_t h, const fd_oracle_row *row, fd_sigma *sigma)
{
    const int32_t h_kv = h / fd_group(p);
    const double scale = (double)p->sm_scale;
    const bool products_exact = significand_bits(p->q.dtype) + significand_bits(p->k.dtype) <= 24;
    int exponent;
    const bool scale_exact = fabs(frexp(scale, &exponent)) == 0.5 || scale == 0.0;
    float row_q[FD_HEAD_DIM_MAX], rows[LANES][FD_HEAD_DIM_MAX];
    double q[FD_HEAD_DIM_MAX];

    fd_load_q(p, b, t, h, row_q);
    for (int32_t i = 0; i < p->head_dim; i++) {
        q[i] = (double)row_q[i];
    }
    for (int64_t j = 0; j < row->kv_len; j += LANES) {
        const int64_t keys = row->kv_len - j < LANES ? row->kv_len - j : LANES;
        const float *k[LANES];
        double products[LANES], prefixes[LANES];
        for (int x = 0; x < LANES; x++) {
            k[x] = rows[x < keys ? x : 0];
            if (x < keys) {
                fd_load_k(p, b, j + x, h_kv, rows[x]);
            }
        }
        dot_squares(q, k, p->head_dim, products, prefixes);
        for (int64_t x = 0; x < keys; x++) {
            const double s = row->s_max - row->gap[j + x];
            sigma->logit[j + x] =
                scale * scale * ((products_exact ? 0.0 : products[x]) + prefixes[x]) + (scale_exact ? 0.0 : s * s);
        }
    }
}

/* ---- The levels -------------------------------------------------------------------------------- */

typedef struct level_state {
    int64_t ways, part, keys; /* parts it joins; keys of one; keys of a whole group */
    int32_t merge;
    bool tree, rescales; /* rescales: its parts come with maxima of their own */
    double shift;        /* common maximum of the group at hand, where it is taken beforehand */
    int first, open;     /* its nodes: sums still open, from `first` on */
    int64_t parts;       /* of the group at hand, so far */
} level_state;

typedef struct model {
    const fd_oracle_row *row;
    fd_sigma *out;
    int32_t dims, num_levels;
    double eps2;                   /* variance of one exp, relative */
    double log2;                   /* the same of one ln, relative */
    double c_lse;                  /* the row's lse over its largest logit */
    double root;                   /* the last shift over the largest logit: the sum whose ln is taken began there */
    double u_p, eta_p;             /* of a rounded weight: relative error in units of u, and absolute */
    bool p_in_l;                   /* which l shares */
    double u_partial, eta_partial; /* of a stored partial_o, the same */
    bool divided;                  /* some level divides its parts by their l: the parts of such levels are stored */
    double sum_d, sum_w;           /* roundings of l; errors of whole weights, which only lse sees as sums of p */
    level_state level[FD_MAX_LEVELS + 1];
    fd_sigma_node *leaf;
} model;

/* Errs a part: by `shared` in the weight of all its keys, by `num` and `den` in the sums o and l. */
static void err_part(model *x, const fd_sigma_node *part, double shared, double num, double den)
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

/* Stores partial_o: the average over the part if its o was divided by its l, else the sum itself, whose l began at m. */
static void store(model *x, const fd_sigma_node *part)
{
    const double unit = x->divided ? part->p : exp(part->m - x->c_lse), *q = part->q;
    double *var = x->out->var;
    for (int32_t i = 0; i < x->dims && x->u_partial > 0.0; i++) {
        const double half = fmax(x->u_partial * fabs(q[i]), x->eta_partial * unit);
        var[i] += half * half;
    }
}

/* Is what this level joins stored first? */
static bool stores(const model *x, const level_state *l)
{
    const bool divides = l->merge == FD_MERGE_NORMALISED || l->merge == FD_MERGE_LSE;
    return x->u_partial > 0.0 && (x->divided ? divides : l == &x->level[x->num_levels - 1] && x->num_levels > 1);
}

/* Multiplies a part by exp(m - shift), which is exactly 1 if the part has the maximum. */
static void rescale(model *x, const fd_sigma_node *part, double shift)
{
    const double gap = shift - part->m;
    if (gap > 0.0) {
        err_part(x, part, gap * gap + x->eps2, 1.0, 1.0);
    }
}

/* o is divided by its own l, and weighed by w = fl(exp(m - shift) l): a quotient, a product, and w's own errors. */
static void normalise(model *x, const fd_sigma_node *part, double shift)
{
    const double gap = shift - part->m;
    err_part(x, part, gap > 0.0 ? gap * gap + x->eps2 + 1.0 : 0.0, 2.0, 0.0);
}

/* lse of a part, less the row's largest logit. */
static double part_lse(const model *x, double p)
{
    return log(p) + x->c_lse;
}

/* o is divided by its own l; m and ln l become one number, which is rounded and then weighs the whole part. */
static void fold(model *x, const fd_sigma_node *part, double shift)
{
    if (!(part->p > 0.0)) {
        return;
    }
    const double lse = part_lse(x, part->p), gap = shift - lse, log_l = lse - part->m, size = x->row->s_max + lse;
    err_part(x, part, size * size + x->log2 * log_l * log_l + (gap > 0.0 ? gap * gap + x->eps2 : 0.0),
             gap > 0.0 ? 2.0 : 1.0, 0.0);
}

static void add_part(model *x, fd_sigma_node *to, const fd_sigma_node *part)
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

static void copy_part(model *x, fd_sigma_node *to, const fd_sigma_node *part)
{
    memcpy(to->q, part->q, (size_t)x->dims * sizeof *to->q);
    to->p = part->p;
    to->m = part->m;
    to->first = part->first;
    to->size = 1;
}

/* Merges the two youngest sums of a tree. */
static void join(model *x, level_state *l)
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
        rescale(x, left, shift);
        rescale(x, right, shift);
    }
    add_part(x, left, right);
    left->m = is_lse ? shift : left->m;
    l->open--;
}

/* The largest logit of keys [first, last), less the row's. */
static double largest(const fd_oracle_row *row, int64_t first, int64_t last)
{
    double m = -HUGE_VAL;
    for (int64_t j = first; j < last && j < row->kv_len; j++) {
        m = fmax(m, -row->gap[j]);
    }
    return m;
}

/* The largest lse of the parts, of `keys` keys each, that keys [first, last) make, less the row's largest logit. */
static double largest_lse(const model *x, int64_t first, int64_t last, int64_t keys)
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
static void before_adding(model *x, level_state *l, const fd_sigma_node *part)
{
    const fd_sigma_node *sum = &x->out->node[l->first];
    if (stores(x, l)) {
        store(x, part);
    }
    switch (l->merge) {
    case FD_MERGE_RUNNING:
        if (l->open > 0 && part->m > sum->m) {
            rescale(x, sum, part->m);
        } else if (l->open > 0 && l->rescales) {
            rescale(x, part, sum->m);
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
            l->shift = largest(x->row, part->first, part->first + l->keys);
        }
        (l->merge == FD_MERGE_RESCALE ? rescale : normalise)(x, part, l->shift);
        return;
    default:
        return;
    }
}

static void absorb(model *x, int32_t at, const fd_sigma_node *part);

/* Passes the group at hand on to the next level, if it is complete or the keys have ended. */
static void pass_on(model *x, int32_t at, bool ended)
{
    level_state *l = &x->level[at];
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
        absorb(x, at + 1, &x->out->node[l->first]);
    }
}

static void absorb(model *x, int32_t at, const fd_sigma_node *part)
{
    level_state *l = &x->level[at];
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
    pass_on(x, at, false);
}

/* Of one key, all in units of the row's sum of weights. */
typedef struct key {
    double p, m;    /* weight; logit, less the row's largest */
    double var_p;   /* variance of the weight, as o and l share it */
    double product; /* of its product with v, relative: 1, and what rounds the weight for o alone */
    int64_t j;
} key;

/* absorb() of one key where keys are summed in sequence, its own errors included: the loop that costs the time. */
static void absorb_key(model *x, const float *v, const key *k)
{
    const double p = k->p, var_p = k->var_p, product = k->product, m = k->m;
    const int64_t j = k->j;
    level_state *l = &x->level[0];
    fd_sigma_node *sum = &x->out->node[l->first];
    const double *o = x->row->o;
    double *q = sum->q, *var = x->out->var;
    const bool first = l->open == 0;
    if (first) {
        memset(q, 0, (size_t)x->dims * sizeof *q);
        *sum = (fd_sigma_node){.q = q, .m = m, .first = j};
    } else if (l->merge == FD_MERGE_RUNNING && m > sum->m) {
        rescale(x, sum, m);
    }
    const double added = first ? 0.0 : 1.0;
    for (int32_t i = 0; i < x->dims; i++) {
        const double v_i = (double)v[i], off = v_i - o[i], term = p * v_i;
        q[i] += term;
        var[i] += var_p * (off * off) + product * (term * term) + added * (q[i] * q[i]);
    }
    sum->p += p;
    sum->m = fmax(sum->m, m);
    sum->size++;
    x->sum_w += var_p;
    x->sum_d += added * (sum->p * sum->p);
    l->open = 1;
    l->parts++;
    pass_on(x, 0, false);
}

static void make_leaf(model *x, const float *v, const key *k)
{
    fd_sigma_node *leaf = x->leaf;
    const double *o = x->row->o;
    for (int32_t i = 0; i < x->dims; i++) {
        const double off = (double)v[i] - o[i];
        leaf->q[i] = k->p * (double)v[i];
        x->out->var[i] += k->var_p * (off * off) + k->product * (leaf->q[i] * leaf->q[i]);
    }
    leaf->p = k->p;
    leaf->m = k->m;
    leaf->first = k->j;
    leaf->size = 1;
    x->sum_w += k->var_p;
}

/* The levels as the model walks them; false: more nodes than there can be. */
static bool set_levels(model *x, const fd_arith *arith)
{
    const int64_t n = x->row->kv_len;
    int64_t part = 1;
    int node = 0;
    bool merged = false;
    x->num_levels = arith->num_levels < FD_MAX_LEVELS ? arith->num_levels : FD_MAX_LEVELS;
    for (int32_t i = 0; i < x->num_levels; i++) {
        const fd_level *given = &arith->level[i];
        const int64_t parts = n / part + (n % part != 0);
        level_state *l = &x->level[i];
        *l = (level_state){.ways = given->ways < 1       ? 1
                                   : given->ways > parts ? parts
                                                         : given->ways,
                           .part = part,
                           .merge = given->merge,
                           .tree = given->order == FD_TREE,
                           .rescales = merged || given->merge == FD_MERGE_RESCALE || given->order == FD_TREE,
                           .first = node};
        part = part > n / l->ways ? n : part * l->ways;
        l->keys = part;
        node += 2;
        for (int64_t size = 1; l->tree && size < l->ways; size *= 2) {
            node++;
        }
        merged = merged || l->merge != FD_MERGE_ADD;
    }
    x->leaf = &x->out->node[FD_SIGMA_MAX_NODES - 1];
    return node < FD_SIGMA_MAX_NODES;
}

/* Runs all keys through the levels. absolute: variance of what underflow does to one weight. */
static void walk(model *x, const fd_arith *arith, const fd_problem *p, int32_t b, int32_t h, double absolute)
{
    const fd_oracle_row *row = x->row;
    const int64_t n = row->kv_len;
    const int32_t h_kv = h / fd_group(p);
    int32_t base = 0; /* the first level with maxima; a leaf's exponent is taken to the shift of its part there */
    while (base < x->num_levels && x->level[base].merge == FD_MERGE_ADD) {
        base++;
    }
    const bool shifted = arith->shift == FD_SHIFT_MAX, own = base < x->num_levels;
    const level_state *above = &x->level[own ? base : 0];
    const int64_t part = base == 0 ? 1 : x->level[base - 1].keys;
    const bool fast = !x->level[0].tree && (base > 0 || above->merge == FD_MERGE_RUNNING);
    double shift = 0.0;
    float v[FD_HEAD_DIM_MAX];
    for (int64_t j = 0; j < n; j++) {
        if (own && j % part == 0) {
            shift = largest(row, j, j + part);
            if (above->merge == FD_MERGE_RUNNING && !above->tree && above->open > 0) {
                shift = fmax(shift, x->out->node[above->first].m);
            }
        }
        const double gap = shifted ? shift + row->gap[j] : 0.0;
        const double exp2 = gap > 0.0 || !shifted ? gap * gap + x->eps2 : 0.0;
        double half = 0.0; /* what rounding it errs by, over its size; 1 is in every type */
        if (x->u_p > 0.0 && (gap > 0.0 || !shifted)) {
            half = fmax(x->u_p, x->eta_p / exp(shifted ? -gap : row->s_max - row->gap[j]));
        }
        const key k = {.p = row->p[j],
                       .m = -row->gap[j],
                       .var_p = row->p[j] * row->p[j] * (x->out->logit[j] + exp2 + (x->p_in_l ? half * half : 0.0)) +
                                absolute,
                       .product = 1.0 + (x->p_in_l ? 0.0 : half * half),
                       .j = j};
        fd_load_v(p, b, j, h_kv, v);
        if (fast) {
            absorb_key(x, v, &k);
        } else {
            make_leaf(x, v, &k);
            absorb(x, 0, x->leaf);
        }
    }
    for (int32_t i = 0; i < x->num_levels; i++) {
        pass_on(x, i, true);
    }
}

/* ---- A row ------------------------------------------------------------------------------------- */

/* Weights that are rounded to few bits err alike where they are alike: their errors are independent only if the logits differ
 * by more than the spacing of the type, which is 2 u_p at most. A dominating key has a weight of 1 and no error. */
static bool spread_out(const fd_oracle_row *row, double u_p)
{
    const double n = (double)row->kv_len;
    double sum = 0.0, squares = 0.0;
    for (int64_t j = 0; j < row->kv_len; j++) {
        sum += row->gap[j];
        squares += row->gap[j] * row->gap[j];
    }
    return row->kv_len == 1 || !(squares / n - sum / n * (sum / n) < 16.0 * u_p * u_p);
}

/* Is there a model for these claims on this row? Cut sums are no independent roundings around 0, and long sums in fp16 stand
 * still. */
static bool has_model(const fd_arith *arith, const fd_rounding *r, const fd_oracle_row *row)
{
    return arith->num_levels > 0 && arith->accumulator == FD_ACC_F32 && arith->p_parts <= 1 &&
           fd_bound_counts(arith, row->kv_len).known && (r->u_p == 0.0 || spread_out(row, r->u_p));
}

/* Variance of rounding o to dtype, absolute. */
static double stored_variance(double o, int32_t dtype)
{
    const double u_o = dtype == FD_F16 ? 0x1p-11 : 0x1p-8, least = dtype == FD_F16 ? 0x1p-25 : 0x1p-134;
    const double half = fmax(u_o * fabs(o), least);
    return dtype == FD_F16 || dtype == FD_BF16 ? half * half / 3.0 : 0.0;
}

void fd_sigma_row(const fd_arith *arith, const fd_rounding *host, const fd_problem *p, int32_t b, int32_t h,
                  const fd_oracle_row *row, fd_sigma *sigma)
{
    const fd_rounding r = fd_bound_rounding(arith, host);
    const int32_t dims = row->head_dim_v;
    const bool shifted = arith->shift == FD_SHIFT_MAX;
    const double unit = r.u * r.u / 3.0, eps = shifted ? r.exp_rel : fmax(r.exp_rel, r.exp_rel_positive);
    const double c_lse = (row->lse - row->s_max) + row->lse_lo;
    const double tiny = (r.exp_abs + 2.0 * r.eta) * exp(shifted ? -c_lse : -row->lse) / r.u;
    model x = {.row = row,
               .out = sigma,
               .dims = dims,
               .eps2 = eps * eps / (r.u * r.u),
               .log2 = r.log_rel * r.log_rel / (r.u * r.u),
               .c_lse = c_lse,
               .u_p = r.u_p / r.u,
               .eta_p = r.eta_p / r.u,
               .p_in_l = arith->p_in_l != 0,
               .u_partial = r.u_partial / r.u,
               .eta_partial = r.eta_partial / r.u};
    for (int32_t i = 0; i < arith->num_levels && i < FD_MAX_LEVELS; i++) {
        x.divided = x.divided || arith->level[i].merge == FD_MERGE_NORMALISED || arith->level[i].merge == FD_MERGE_LSE;
    }

    memset(sigma->var, 0, (size_t)dims * sizeof *sigma->var);
    memset(sigma->o, 0, (size_t)dims * sizeof *sigma->o);
    sigma->lse = 0.0;
    sigma->known = has_model(arith, &r, row) && set_levels(&x, arith);
    if (!sigma->known) {
        return;
    }
    walk(&x, arith, p, b, h, tiny * tiny);

    for (int32_t i = 0; i < dims; i++) {
        const double o = row->o[i], var = unit * (sigma->var[i] + o * o * (x.sum_d + 1.0));
        const double sd = sqrt(var + stored_variance(o, p->o.dtype));
        sigma->o[i] = sd <= FD_SIGMA_SMALL * row->gauge[i] ? sd : 0.0;
    }
    /* fl(m + fl(ln l)); without a shift there is no m to add. */
    const bool inside = shifted && row->kv_len <= 1 << 20;
    const double log_err = (inside ? r.log_rel : r.log_rel_anywhere) * (shifted ? c_lse - x.root : row->lse);
    const double sum_err = shifted ? r.u * row->lse : 0.0;
    const double lse = sqrt(unit * (x.sum_w + x.sum_d) + (log_err * log_err + sum_err * sum_err) / 3.0);
    sigma->lse = lse <= FD_SIGMA_SMALL ? lse : 0.0;
}
