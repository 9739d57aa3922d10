/* sigma_walk.c: the keys of a row on their way into the first level, with the errors of their logits, weights and
 * products. */
#include <math.h>
#include <string.h>

#include "row.h"
#include "sigma_parts.h"

/* Of one key, all in units of the row's sum of weights. */
typedef struct key {
    double p, m;    /* weight; logit, less the row's largest */
    double var_p;   /* variance of the weight, as o and l share it */
    double product; /* of its product with v, relative: 1, and what rounds the weight for o alone */
    double logit;   /* error of the logit on tensor cores, at most */
    int64_t j;
} key;

/* fd_sigma_absorb() of one key where keys are summed in sequence, its own errors included: the loop that costs the
 * time. */
static void absorb_key(fd_sigma_model *x, const float *v, const key *k)
{
    const double p = k->p, var_p = k->var_p, product = k->product, m = k->m;
    const int64_t j = k->j;
    fd_sigma_level *l = &x->level[0];
    fd_sigma_node *sum = &x->out->node[l->first];
    const double *o = x->row->o;
    double *q = sum->q, *var = x->out->var;
    const bool first = l->open == 0;
    if (first) {
        memset(q, 0, (size_t)x->dims * sizeof *q);
        *sum = (fd_sigma_node){.q = q, .m = m, .first = j};
    } else if (l->merge == FD_MERGE_RUNNING && m > sum->m) {
        fd_sigma_rescale(x, sum, m);
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
    fd_sigma_pass_on(x, 0, false);
}

/* The same on a tensor core. What an instruction errs by is no rounding around 0: all of it counts as bias, and the
 * product is exact. */
static void absorb_key_by_mma(fd_sigma_model *x, const float *v, const key *k)
{
    fd_sigma_level *l = &x->level[0];
    fd_sigma_node *sum = &x->out->node[l->first];
    const double *o = x->row->o;
    double *q = sum->q, *var = x->out->var, *bias = x->out->bias;
    if (l->open == 0) {
        memset(q, 0, (size_t)x->dims * sizeof *q);
        *sum = (fd_sigma_node){.q = q, .m = k->m, .first = k->j};
    } else if (l->merge == FD_MERGE_RUNNING && k->m > sum->m) {
        fd_sigma_rescale(x, sum, k->m);
    }
    const double carried = l->parts % x->mma_keys == 0 ? 1.0 : 0.0; /* a new instruction adds to the sum so far */
    for (int32_t i = 0; i < x->dims; i++) {
        const double v_i = (double)v[i], off = v_i - o[i], term = k->p * v_i;
        bias[i] += x->mma * (carried * fabs(q[i]) + fabs(term)) + k->p * k->logit * fabs(off);
        q[i] += term;
        var[i] += k->var_p * (off * off) + (k->product - 1.0) * (term * term);
    }
    x->bias_l += x->mma_l * (carried * sum->p + k->p);
    x->bias_logit += k->p * k->logit;
    sum->p += k->p;
    sum->m = fmax(sum->m, k->m);
    sum->size++;
    x->sum_w += k->var_p;
    l->open = 1;
    l->parts++;
    fd_sigma_pass_on(x, 0, false);
}

static void make_leaf(fd_sigma_model *x, const float *v, const key *k)
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

bool fd_sigma_set_levels(fd_sigma_model *x, const fd_arith *arith)
{
    const int64_t n = x->row->kv_len;
    int64_t part = 1;
    int node = 0;
    bool merged = false;
    x->num_levels = arith->num_levels < FD_MAX_LEVELS ? arith->num_levels : FD_MAX_LEVELS;
    for (int32_t i = 0; i < x->num_levels; i++) {
        const fd_level *given = &arith->level[i];
        const int64_t parts = n / part + (n % part != 0);
        fd_sigma_level *l = &x->level[i];
        *l = (fd_sigma_level){.ways = given->ways < 1       ? 1
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

/* Of logit j on tensor cores: every instruction errs by a part of the sum it carries and of its products. The
 * product with sm_scale is rounded. */
static double logit_bias(const fd_sigma_model *x, const fd_problem *p, double u, int64_t j)
{
    const double a = x->row->a[j], s = fabs(x->row->s_max - x->row->gap[j]);
    const int32_t instructions = (p->head_dim + (int32_t)x->mma_keys - 1) / (int32_t)x->mma_keys;
    return u * s + x->mma * (x->mma_keys == FD_SIGMA_MMA_DIMS ? x->out->chain[j] + a : instructions * a);
}

void fd_sigma_walk(fd_sigma_model *x, const fd_arith *arith, const fd_problem *p, int32_t b, int32_t h, double u,
                   double absolute)
{
    const bool mma = x->mma_keys > 0;
    const fd_oracle_row *row = x->row;
    const int64_t n = row->kv_len;
    const int32_t h_kv = h / fd_group(p);
    int32_t base = 0; /* the first level with maxima; a leaf's exponent is taken to the shift of its part there */
    while (base < x->num_levels && x->level[base].merge == FD_MERGE_ADD) {
        base++;
    }
    const bool shifted = arith->shift == FD_SHIFT_MAX, own = base < x->num_levels;
    const fd_sigma_level *above = &x->level[own ? base : 0];
    const int64_t part = base == 0 ? 1 : x->level[base - 1].keys;
    const bool fast = !x->level[0].tree && (base > 0 || above->merge == FD_MERGE_RUNNING);
    double shift = 0.0;
    float v[FD_HEAD_DIM_MAX];
    for (int64_t j = 0; j < n; j++) {
        if (own && j % part == 0) {
            shift = fd_sigma_largest(row, j, j + part);
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
                       .var_p = row->p[j] * row->p[j] *
                                    ((mma ? 0.0 : x->out->logit[j]) + exp2 + (x->p_in_l ? half * half : 0.0)) +
                                absolute,
                       .product = 1.0 + (x->p_in_l ? 0.0 : half * half),
                       .logit = mma ? logit_bias(x, p, u, j) : 0.0,
                       .j = j};
        fd_load_v(p, b, j, h_kv, v);
        if (x->mma_keys > 0) {
            absorb_key_by_mma(x, v, &k);
        } else if (fast) {
            absorb_key(x, v, &k);
        } else {
            make_leaf(x, v, &k);
            fd_sigma_absorb(x, 0, x->leaf);
        }
    }
    for (int32_t i = 0; i < x->num_levels; i++) {
        fd_sigma_pass_on(x, i, true);
    }
}
