/* trial_merge.c: a plug-in's merge(), of results that rung 02 made of the parts of a cache: what must hold bit for
 * bit, and what within the bound of such a merge, whoever made the parts and in whatever order they come. */
#include "trial.h"

#ifdef __linux__
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "merge_scene.h"
#include "oracle.h"

#define FEW 4 /* parts that are merged in every order */

static const fd_merge_cuts few = {FEW, {0, 100, 101, 101, 150}}; /* unequal, and one part has no key at all */
static const fd_merge_cuts many = {12, {0, 5, 5, 40, 41, 64, 80, 97, 110, 111, 130, 149, 150}};

typedef fd_status check(fd_merge_scene *s, const fd_rounding *rounding, fd_trial_line *line, char *why, size_t n);

/* ---- Bit for bit ------------------------------------------------------------------------------- */

/* One part with keys among ones without, at every place: that part's bits; none with keys: o = 0, lse = -infinity. */
static fd_status empty_ones(fd_merge_scene *s, const fd_rounding *rounding, fd_trial_line *line, char *why, size_t n)
{
    fd_status status = FD_OK;
    (void)rounding;
    for (int32_t count = 1; count <= FEW && status == FD_OK; count++) {
        for (int32_t at = -1; at < count && status == FD_OK && line->verdict == FD_PASS; at++) {
            const int with_keys = at >= 0 ? 0 : FEW;
            int order[FEW] = {FEW, FEW, FEW, FEW};
            if (at >= 0) {
                order[at] = 0;
            }
            status = fd_merge_parts(s, order, count, true, why, n);
            if (status == FD_OK && !fd_merge_same_rows(s, &s->o[with_keys], &s->lse[with_keys], -1)) {
                line->verdict = FD_FAIL;
                snprintf(line->reason, sizeof line->reason,
                         at >= 0
                             ? "merge() of %d parts, of which only number %d has keys, has other bits than that part"
                             : "merge() of %d parts without keys is not o = 0 and lse = -infinity",
                         (int)count, (int)at);
            }
        }
    }
    return status;
}

static const int in_order[FD_WORKER_PARTS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

/* A NaN in one row of a part leaves the bits of every other row. */
static fd_status broken_row(fd_merge_scene *s, const fd_rounding *rounding, fd_trial_line *line, char *why, size_t n)
{
    const fd_tensor lse = s->lse[1];
    (void)rounding;
    fd_status status = fd_merge_parts(s, in_order, FEW, true, why, n);
    if (status != FD_OK) {
        return status;
    }
    fd_merge_keep(s);
    fd_store(&lse, fd_row_at(&lse, 0, 0, 1), NAN);
    status = fd_merge_parts(s, in_order, FEW, true, why, n);
    if (status == FD_OK && !fd_merge_same_rows(s, &s->kept_o, &s->kept_lse, fd_row_index(&s->x.problem, 0, 0, 1))) {
        line->verdict = FD_FAIL;
        snprintf(line->reason, sizeof line->reason, "a NaN in the lse of one row of a part changes another row");
    }
    return status;
}

/* lse need not be wanted, as in run(). */
static fd_status without_lse(fd_merge_scene *s, const fd_rounding *rounding, fd_trial_line *line, char *why, size_t n)
{
    (void)rounding;
    fd_status status = fd_merge_parts(s, in_order, FEW, true, why, n);
    if (status == FD_OK) {
        fd_merge_keep(s);
        status = fd_merge_parts(s, in_order, FEW, false, why, n);
    }
    if (status == FD_OK && !fd_merge_same_rows(s, &s->kept_o, NULL, -1)) {
        line->verdict = FD_FAIL;
        snprintf(line->reason, sizeof line->reason, "merge(): o has other bits when lse is not wanted");
    }
    return status;
}

/* ---- Within the bound -------------------------------------------------------------------------- */

/* How a merge of parts that rung 02 made may round: exp and log as the plug-in's or the host's, whichever is worse. Parts one
 * after another are as deep as a tree of 2^(parts - 1). */
static fd_arith arith_of(const fd_merge_scene *s, const fd_rounding *host, int64_t keys)
{
    fd_arith own, a = {.size = sizeof a, .num_levels = 2, .dtype_partial = s->x.problem.o.dtype};
    int64_t most = 0;
    for (int part = 0; part < s->cuts->parts; part++) {
        const int64_t here = s->cuts->at[part + 1] - s->cuts->at[part];
        most = here > most ? here : most;
    }
    fd_claims(fd_worker_rung(), &s->x.problem, s->plan, keys, &own);
    a.level[0] = (fd_level){most, FD_MERGE_ADD, FD_SEQUENTIAL, 1, 0};
    a.level[1] = (fd_level){(int64_t)1 << (s->cuts->parts - 1), FD_MERGE_LSE, FD_TREE, 0, 0};
    a.flushes = own.flushes;
    if (own.math == FD_MATH_CLAIMED) {
        a.math = FD_MATH_CLAIMED;
        a.exp_rel = fmaxf(own.exp_rel, nextafterf((float)host->exp_rel, 1.0f));
        a.exp_abs = fmaxf(own.exp_abs, nextafterf((float)host->exp_abs, 1.0f));
        a.log_rel = fmaxf(own.log_rel, nextafterf((float)fmax(host->log_rel, host->log_rel_anywhere), 1.0f));
    }
    return a;
}

typedef struct exact { /* of one row of sequence 0 */
    fd_oracle_row row;
    fd_bound bound;
} exact;

/* The worst of row [0, t, h] against its pass line. */
static void compare_row(const fd_merge_scene *s, const exact *x, int32_t t, int32_t h, fd_trial_line *line)
{
    const fd_problem *p = &s->x.problem;
    const int64_t at = fd_row_at(&p->o, 0, t, h);
    double worst = 0.0;
    for (int32_t i = 0; i < p->head_dim_v; i++) {
        const double err = fabs(((double)fd_load(&p->o, at + i) - x->row.o[i]) - x->row.o_lo[i]);
        const double share = err / fd_bound_stored(x->bound.o[i], x->row.o[i], p->o.dtype);
        worst = !(share <= worst) ? share : worst;
    }
    const double got = (double)fd_load(&p->lse, fd_row_at(&p->lse, 0, t, h));
    const double lse = fabs((got - x->row.lse) - x->row.lse_lo) / x->bound.lse;
    line->ratio = !(worst <= line->ratio) ? worst : line->ratio;
    line->lse_ratio = !(lse <= line->lse_ratio) ? lse : line->lse_ratio;
    if (line->verdict == FD_PASS && !(worst <= 1.0 && lse <= 1.0)) {
        line->verdict = FD_FAIL;
        line->tier = FD_TIER_PROVED;
        snprintf(line->reason, sizeof line->reason,
                 "merge() of %d parts: %s of head %d is at %.4g of the proved bound around the answer over all keys",
                 s->cuts->parts, worst <= 1.0 ? "lse" : "o", (int)h, worst <= 1.0 ? lse : worst);
    }
}

/* Exact rows of sequence 0, in the order of their index. */
static fd_status solve(const fd_merge_scene *s, const fd_arith *arith, const fd_rounding *rounding, exact *rows,
                       char *why, size_t n)
{
    const fd_problem *p = &s->x.problem;
    fd_status status = FD_OK;
    for (int32_t r = 0; r < p->q_len * p->heads_q && status == FD_OK; r++) {
        const int32_t t = r / p->heads_q, h = r % p->heads_q;
        status = fd_oracle_row_init(&rows[r].row, p->kv_capacity, p->head_dim_v);
        status = status == FD_OK ? fd_bound_init(&rows[r].bound, p->kv_capacity, p->head_dim_v) : status;
        status = status == FD_OK ? fd_oracle(p, 0, t, h, FD_ORACLE_BITS, &rows[r].row, why, n) : status;
        if (status == FD_OK) {
            fd_bound_row(arith, rounding, p, 0, h, &rows[r].row, &rows[r].bound);
        }
    }
    return status;
}

static void free_rows(exact *rows, int32_t count)
{
    for (int32_t r = 0; r < count && rows != NULL; r++) {
        fd_bound_free(&rows[r].bound);
        fd_oracle_row_free(&rows[r].row);
    }
    free(rows);
}

/* Merges in each of these orders, and compares every row. */
static fd_status merge_orders(fd_merge_scene *s, int (*orders)[FD_WORKER_PARTS], int32_t count,
                              const fd_rounding *rounding, fd_trial_line *line, char *why, size_t n)
{
    const fd_problem *p = &s->x.problem;
    const int32_t num_rows = p->q_len * p->heads_q;
    const fd_arith arith = arith_of(s, rounding, s->x.lens[0]);
    exact *rows = calloc((size_t)num_rows, sizeof *rows);
    fd_status status = rows != NULL ? solve(s, &arith, rounding, rows, why, n) : FD_NO_MEMORY;
    fd_claims_text(&arith, line->declared, sizeof line->declared);
    for (int32_t x = 0; x < count && status == FD_OK && line->verdict == FD_PASS; x++) {
        status = fd_merge_parts(s, orders[x], s->cuts->parts, true, why, n);
        for (int32_t r = 0; r < num_rows && status == FD_OK; r++) {
            compare_row(s, &rows[r], r / p->heads_q, r % p->heads_q, line);
        }
    }
    free_rows(rows, num_rows);
    return status;
}

/* All 24 orders of four. */
static fd_status all_orders(fd_merge_scene *s, const fd_rounding *rounding, fd_trial_line *line, char *why, size_t n)
{
    int orders[24][FD_WORKER_PARTS], count = 0;
    for (int code = 0; code < 256; code++) {
        const int order[FEW] = {code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6 & 3};
        if ((1 << order[0] | 1 << order[1] | 1 << order[2] | 1 << order[3]) == 15) {
            memcpy(orders[count++], order, sizeof order);
        }
    }
    return merge_orders(s, orders, count, rounding, line, why, n);
}

/* First to last, and last to first. */
static fd_status two_orders(fd_merge_scene *s, const fd_rounding *rounding, fd_trial_line *line, char *why, size_t n)
{
    int orders[2][FD_WORKER_PARTS];
    for (int part = 0; part < many.parts; part++) {
        orders[0][part] = part;
        orders[1][part] = many.parts - 1 - part;
    }
    return merge_orders(s, orders, 2, rounding, line, why, n);
}

/* ---- All of it --------------------------------------------------------------------------------- */

static const struct {
    const char *name, *family, *argument;
    const fd_merge_cuts *cuts;
    check *check;
} checks[] = {{"parts without keys", "gaussian", "", &few, empty_ones},
              {"a NaN in one row", "gaussian", "", &few, broken_row},
              {"lse is not wanted", "gaussian", "", &few, without_lse},
              {"four parts in every order, gaussian", "gaussian", "", &few, all_orders},
              {"four parts in every order, peaky:40", "peaky", "40", &few, all_orders},
              {"four parts in every order, negative:-120", "negative", "-120", &few, all_orders},
              {"twelve parts, gaussian", "gaussian", "", &many, two_orders}};

/* One check in one dtype. FD_UNSUPPORTED: the plug-in takes no shape of it; `reason` says why. */
static fd_status judge(fd_trial *trial, size_t i, int32_t dtype, const fd_rounding *rounding, char *reason, char *why,
                       size_t n)
{
    fd_trial_line line = {.verdict = FD_PASS, .tier = FD_TIER_EXACT, .seconds = -1.0};
    fd_merge_scene s;
    snprintf(line.name, sizeof line.name, "merge: %s, %s", checks[i].name, fd_dtype_name(dtype));
    snprintf(line.group, sizeof line.group, "merge");
    fd_trial_replay(line.replay, sizeof line.replay, trial->options.target, "--level metamorphic", NULL);
    fd_status status =
        fd_merge_scene_create(&s, checks[i].cuts, checks[i].family, checks[i].argument, dtype, reason, why, n);
    if (status == FD_UNSUPPORTED) {
        return status;
    }
    if (status == FD_OK) {
        status = checks[i].check(&s, rounding, &line, reason, 320);
        fd_merge_scene_free(&s);
    }
    if (status == FD_NO_MEMORY) {
        snprintf(why, n, "no memory to judge merge()");
        return status;
    }
    if (status == FD_UNSUPPORTED) {
        line.verdict = FD_SKIP;
        snprintf(line.reason, sizeof line.reason, "merge() refuses %d parts", checks[i].cuts->parts);
    } else if (fd_worker_incident()->happened || status != FD_OK) {
        line.verdict = FD_FAIL;
        snprintf(line.reason, sizeof line.reason, "%s",
                 fd_worker_incident()->happened ? fd_worker_incident()->text : reason);
    }
    line.tier = line.verdict == FD_FAIL ? line.tier : FD_TIER_NONE;
    return fd_trial_add(trial, &line, fd_worker_incident()->stderr_line);
}

fd_status fd_trial_merge(fd_trial *trial, const fd_rounding *rounding, char *why, size_t n)
{
    static const int32_t dtypes[] = {FD_F32, FD_BF16, FD_F16};
    const size_t count = sizeof checks / sizeof *checks, num_dtypes = sizeof dtypes / sizeof *dtypes;
    for (size_t i = 0; i < count; i++) {
        char reason[320] = "";
        bool taken = false;
        for (size_t d = 0; d < num_dtypes; d++) {
            if (!fd_worker_begin(reason, sizeof reason)) {
                snprintf(trial->not_run_why, sizeof trial->not_run_why, "started again, it does not load: %.120s",
                         reason);
                trial->not_run += (int64_t)(count - i);
                return FD_OK;
            }
            const fd_status status = judge(trial, i, dtypes[d], rounding, reason, why, n);
            if (status != FD_OK && status != FD_UNSUPPORTED) {
                return status;
            }
            taken = taken || status == FD_OK;
        }
        if (!taken) {
            fd_trial_line line = {.verdict = FD_SKIP, .seconds = -1.0};
            snprintf(line.name, sizeof line.name, "merge: %s", checks[i].name);
            snprintf(line.group, sizeof line.group, "merge");
            snprintf(line.reason, sizeof line.reason, "no shape of merge()'s tests is taken: %.200s", reason);
            const fd_status status = fd_trial_add(trial, &line, NULL);
            if (status != FD_OK) {
                return status;
            }
        }
    }
    return FD_OK;
}
#endif
