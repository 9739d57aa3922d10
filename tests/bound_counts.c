/* bound_counts.c: what the claims mean: the roundings that a key meets on its way to the root, and how large each
 * is. */
#include <math.h>

#include "bound.h"

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static int64_t ceil_log2(int64_t n)
{
    int64_t log = 0;
    while (log < 62 && (int64_t)1 << log < n) {
        log++;
    }
    return log;
}

/* ---- Counts ------------------------------------------------------------------------------------ */

static int32_t parts_of_p(const fd_arith *arith)
{
    return arith->p_parts < 1 ? 1 : arith->p_parts;
}

static int64_t keys_of_mma(const fd_arith *arith)
{
    return arith->accumulator != FD_ACC_TENSOR_CORE ? 0 : arith->mma_keys < 1 ? 16 : arith->mma_keys;
}

/* Additions where the keys themselves meet. With tensor cores a key of a sequence meets every instruction of it, one
 * alone its own; in a tree its own, and then sums of two. A weight in several parts enters o as often, l once. */
static void count_keys(fd_counts *c, const fd_arith *arith, const fd_level *level)
{
    const int64_t mma = keys_of_mma(arith), ways = level->ways, more = parts_of_p(arith) - 1;
    const bool tree = level->order == FD_TREE;
    if (mma > 0 && (level->merge == FD_MERGE_ADD || level->merge == FD_MERGE_RUNNING)) {
        const int64_t sums = ceil_div(ways, mma);
        c->mmas_d = tree ? 1 : sums;
        c->mmas_n = (more + 1) * c->mmas_d;
        c->additions += tree ? ceil_log2(sums) : 0;
    } else {
        c->additions += tree ? ceil_log2(ways) : ways - 1;
        c->extra += tree ? more : more * ways;
    }
}

/* partial_o is what the levels join whose parts were divided by their own l; without such a level, what the last level
 * joins, undivided, if it is not the only one. In a tree the result of each step is stored again. */
static void count_stores(fd_counts *c, const fd_level *level, bool first, int64_t steps, int64_t parts)
{
    if (level->merge == FD_MERGE_NORMALISED || level->merge == FD_MERGE_LSE) {
        c->stores = c->stores_plain > 0 ? steps : c->stores + steps;
        c->stores_plain = 0;
        c->divided = true;
    } else if (!first && !c->divided) {
        c->stores = steps;
        c->stores_plain = parts * steps;
    }
}

/* One level of the tree joins `parts` parts of `part` keys, `ways` at a time. */
static void count_level(fd_counts *c, const fd_arith *arith, const fd_level *level, bool first, int64_t part,
                        int64_t parts)
{
    const int64_t ways = level->ways;
    const int64_t chain = level->order == FD_TREE ? ceil_log2(ways) : ways - 1;
    c->known = c->known && (level->order == FD_TREE || level->order == FD_SEQUENTIAL);
    if (part == 1) {
        count_keys(c, arith, level);
    } else {
        c->additions += chain;
    }
    count_stores(c, level, first, level->order == FD_TREE ? chain : 1, parts);
    switch (level->merge) {
    case FD_MERGE_ADD:
        return;
    case FD_MERGE_RUNNING:
        c->parts += parts * (1 + c->merged);
        c->rescales += c->merged; /* parts with a maximum of their own are rescaled on their way in, too */
        if (c->running_part == 0 && level->order == FD_SEQUENTIAL) {
            c->running_part = part;
            c->running_group = part * ways;
            c->running_most = ways - 1;
            c->running_in_order = level->in_order != 0;
        } else {
            c->rescales += chain;
        }
        return;
    case FD_MERGE_RESCALE:
    case FD_MERGE_NORMALISED: {
        /* Sequential: each part is rescaled once, to a maximum taken beforehand. A tree rescales at every step. */
        const int64_t steps = level->order == FD_TREE ? chain : 1;
        c->rescales += steps;
        c->parts += parts * steps;
        if (level->merge == FD_MERGE_NORMALISED) {
            c->normalised += steps;
            c->parts_norm += parts * steps;
        }
        return;
    }
    case FD_MERGE_LSE: {
        const int64_t steps = level->order == FD_TREE ? chain : 1;
        c->rescales += steps;
        c->parts += parts * steps;
        c->lse_merges += steps;
        c->log_parts += steps > 0 ? log((double)part) + (double)(steps - 1) * log(2.0) : 0.0;
        return;
    }
    default:
        c->known = false; /* no theorem here covers merges without a division */
    }
}

/* Any binary tree over kv_len leaves, each merge a rescale and an addition. With tensor cores the leaves are
 * instructions, full ones, or of a key each if there are few. */
static void count_any_tree(fd_counts *c, const fd_arith *arith, int64_t kv_len)
{
    const int64_t mma = keys_of_mma(arith), more = parts_of_p(arith) - 1;
    int64_t leaves = kv_len;
    if (mma > 0) {
        const int64_t full = ceil_div(kv_len, mma), few = kv_len < mma ? kv_len : mma;
        leaves = full > few ? full : few;
        c->mmas_d = leaves;
        c->mmas_n = (more + 1) * leaves;
    } else {
        c->additions = kv_len - 1;
        c->extra = more * kv_len;
    }
    c->rescales = leaves;
    c->normalised = 1;
    c->parts = 2 * kv_len;
    c->parts_norm = kv_len;
    c->stores = 1;
}

static bool rounds_to(int32_t dtype)
{
    return dtype == FD_F32 || dtype == FD_F16 || dtype == FD_BF16;
}

fd_counts fd_bound_counts(const fd_arith *arith, int64_t kv_len)
{
    const bool one_part = parts_of_p(arith) == 1;
    fd_counts c = {.known = rounds_to(arith->dtype_p) && rounds_to(arith->dtype_partial) &&
                            (one_part || (arith->dtype_p != FD_F32 && arith->p_in_l == 0)),
                   .rescales = 1};
    if (arith->num_levels == 0) {
        count_any_tree(&c, arith, kv_len);
        return c;
    }
    int64_t part = 1;
    for (int32_t i = 0; i < arith->num_levels && i < FD_MAX_LEVELS; i++) {
        fd_level level = arith->level[i];
        const int64_t parts = ceil_div(kv_len, part); /* full parts, at least; INT64_MAX ways: as many as there are */
        const int64_t most = level.ways == INT64_MAX ? parts : kv_len;
        level.ways = level.ways < 1 ? 1 : level.ways > most ? most : level.ways;
        count_level(&c, arith, &level, i == 0, part, parts);
        c.merged = c.merged || level.merge != FD_MERGE_ADD;
        part = part > kv_len / level.ways ? kv_len : part * level.ways;
    }
    /* The levels must join all keys, or they describe another computation; and a rung without a shift has nothing to
     * rescale to. */
    c.known =
        c.known && part >= kv_len && arith->num_levels <= FD_MAX_LEVELS && (arith->shift == FD_SHIFT_MAX || !c.merged);
    return c;
}

bool fd_claims_make_sense(const fd_arith *arith)
{
    const float errors[] = {arith->exp_rel, arith->exp_abs, arith->log_rel};
    bool good = arith->num_levels >= 0 && arith->num_levels <= FD_MAX_LEVELS && !isnan(arith->fails_above) &&
                !isnan(arith->fails_below) && arith->accumulator >= FD_ACC_F32 &&
                arith->accumulator <= FD_ACC_TENSOR_CORE && arith->p_parts >= 0 && arith->p_parts <= 3 &&
                (uint32_t)arith->p_in_l <= 1 && arith->mma_keys >= 0 && arith->mma_rel >= 0.0f &&
                arith->mma_rel < 1.0f && (uint32_t)arith->shift <= FD_SHIFT_NONE &&
                (uint32_t)arith->math <= FD_MATH_CLAIMED;
    for (int i = 0; i < 3; i++) {
        good = good && (arith->math == FD_MATH_LIBM || (errors[i] >= 0.0f && errors[i] < 1.0f));
    }
    for (int32_t i = 0; good && i < arith->num_levels; i++) {
        const fd_level *level = &arith->level[i];
        good = level->ways >= 0 && level->merge >= FD_MERGE_ADD && level->merge <= FD_MERGE_LSE_NO_DIV &&
               (level->order == FD_SEQUENTIAL || level->order == FD_TREE);
    }
    return good;
}

bool fd_claims_join(const fd_arith *arith, int64_t kv_len)
{
    int64_t joined = arith->num_levels == 0 ? kv_len : 1;
    for (int32_t i = 0; i < arith->num_levels && i < FD_MAX_LEVELS && joined < kv_len; i++) {
        const int64_t ways = arith->level[i].ways < 1 ? 1 : arith->level[i].ways;
        joined = joined > kv_len / ways ? kv_len : joined * ways;
    }
    return joined >= kv_len;
}

/* ---- Sizes of roundings ------------------------------------------------------------------------ */

/* Unit roundoff, half the least subnormal and the largest number of a 16-bit type; 0 of the others. */
static double unit_of(int32_t dtype)
{
    return dtype == FD_F16 ? 0x1p-11 : dtype == FD_BF16 ? 0x1p-8 : 0.0;
}

static double half_least(int32_t dtype)
{
    return dtype == FD_F16 ? 0x1p-25 : dtype == FD_BF16 ? 0x1p-134 : 0.0;
}

static double largest_of(int32_t dtype)
{
    return dtype == FD_F16 ? 65504.0 : dtype == FD_BF16 ? 0x1.fep127 : HUGE_VAL;
}

/* Every result is rounded to fp16 besides: those of exp and log on top of their own errors. */
static void round_to_f16(fd_rounding *r)
{
    const double u = unit_of(FD_F16), least = half_least(FD_F16);
    r->u = fmax(r->u, u);
    r->eta = fmax(r->eta, least);
    r->largest = fmin(r->largest, largest_of(FD_F16));
    r->exp_abs = r->exp_abs * (1.0 + u) + least;
    double *const functions[] = {&r->exp_rel, &r->exp_rel_positive, &r->log_rel, &r->log_rel_anywhere};
    for (int i = 0; i < 4; i++) {
        *functions[i] += u * (1.0 + *functions[i]);
    }
}

fd_rounding fd_bound_rounding(const fd_arith *arith, const fd_rounding *host)
{
    fd_rounding r = *host;
    if (arith->math == FD_MATH_CLAIMED) {
        r.exp_rel = r.exp_rel_positive = (double)arith->exp_rel;
        r.exp_abs = (double)arith->exp_abs;
        r.log_rel = r.log_rel_anywhere = (double)arith->log_rel;
    }
    if (arith->flushes) {
        r.eta = fmax(r.eta, 0x1p-126);
        r.exp_abs = fmax(r.exp_abs, 0x1p-126);
    }
    if (arith->accumulator == FD_ACC_F16) {
        round_to_f16(&r);
    }
    const double u_p = unit_of(arith->dtype_p);
    r.u_p = pow(u_p, (double)parts_of_p(arith));
    r.grow_p = arith->p_in_l != 0 ? 0.0 : expm1((double)parts_of_p(arith) * log1p(u_p));
    r.eta_p = half_least(arith->dtype_p);
    r.small_p = u_p > 0.0 ? r.eta_p / r.u_p : 0.0;
    r.near_1 = 0.5 * u_p;
    r.largest_p = largest_of(arith->dtype_p);
    r.u_partial = unit_of(arith->dtype_partial);
    r.eta_partial = half_least(arith->dtype_partial);
    r.largest_partial = largest_of(arith->dtype_partial);
    r.mma_keys = keys_of_mma(arith);
    if (r.mma_keys > 0) {
        /* An instruction that cuts its addends needs 4 of them to be no worse than 4 additions in sequence. It may lose
         * each subnormal among them, and a subnormal result. */
        const double sequence = fd_bound_g(r.u, r.mma_keys < 4 ? 4 : r.mma_keys);
        r.mma = arith->mma_rel > 0.0f ? (double)arith->mma_rel : sequence;
        r.mma_l = fmax(r.mma, sequence);
        r.eta = fmax(r.eta, 0x1p-125);
    }
    return r;
}
