/* trial_merge.c: a plug-in's merge(), of results that rung 02 made of the parts of a cache: what must hold bit for
 * bit, and what within the bound of such a merge, whoever made the parts and in whatever order they come. */
#include "trial.h"

#ifdef __linux__
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "execute.h"
#include "ladder.h"
#include "oracle.h"
#include "text.h"
#include "worker.h"

#define PARTS FD_WORKER_PARTS
#define STEPS_WAYS 8 /* of the bound: four parts one after another are as deep as a tree of eight */

static const int64_t cuts[PARTS + 1] = {0, 100, 101, 101, 150}; /* unequal, and one part has no key at all */

typedef struct scene {
    fd_instance x;
    fd_plan *plan;
    fd_buffer workspace;
    fd_tensor o[PARTS + 1], lse[PARTS + 1]; /* of the parts; the last has no key in any row */
    fd_buffer o_buffer[PARTS + 1], lse_buffer[PARTS + 1];
} scene;

/* ---- Parts ------------------------------------------------------------------------------------- */

static void scene_free(scene *s)
{
    for (int part = 0; part <= PARTS; part++) {
        fd_buffer_free(&s->o_buffer[part]);
        fd_buffer_free(&s->lse_buffer[part]);
    }
    fd_buffer_free(&s->workspace);
    free(s->plan);
    fd_instance_free(&s->x);
}

static fd_status make_part(scene *s, int part, char *why, size_t n)
{
    const fd_rung *rung = fd_ladder_find(2);
    const int64_t begin = part < PARTS ? cuts[part] : 0, end = part < PARTS ? cuts[part + 1] : 0;
    int32_t lens[FD_CASE_BATCH_MAX];
    fd_problem p = s->x.problem;
    fd_buffer scratch = {.base = NULL};
    for (int32_t b = 0; b < p.batch; b++) {
        const int64_t last = s->x.lens[b] < end ? s->x.lens[b] : end;
        lens[b] = (int32_t)(last > begin ? last - begin : 0);
    }
    p.k.data = (unsigned char *)p.k.data + (size_t)(begin * p.k.stride[1]) * fd_dtype_bytes(p.k.dtype);
    p.v.data = (unsigned char *)p.v.data + (size_t)(begin * p.v.stride[1]) * fd_dtype_bytes(p.v.dtype);
    p.kv_lens = (fd_tensor){.data = lens, .stride = {1}, .dtype = FD_I32};
    p.kv_lens_host = lens;
    p.kv_capacity -= begin;
    s->o[part] = p.o;
    s->lse[part] = p.lse;
    fd_status status = fd_buffer_alloc(&s->o_buffer[part], s->x.o.bytes);
    status = status == FD_OK ? fd_buffer_alloc(&s->lse_buffer[part], s->x.lse.bytes) : status;
    status = status == FD_OK ? fd_buffer_alloc(&scratch, fd_workspace_bytes(rung, &p, NULL)) : status;
    if (status != FD_OK) {
        snprintf(why, n, "no memory for the parts that merge() is given");
        return status;
    }
    fd_poison_fill(s->o_buffer[part].data, s->x.o.bytes, FD_POISON_NAN);
    fd_poison_fill(s->lse_buffer[part].data, s->x.lse.bytes, FD_POISON_NAN);
    p.o.data = s->o[part].data = s->o_buffer[part].data;
    p.lse.data = s->lse[part].data = s->lse_buffer[part].data;
    const fd_context context = {.size = sizeof context, .workspace = scratch.data};
    status = rung->run(&p, &context);
    fd_buffer_free(&scratch);
    return status;
}

/* Of shapes like these, the first that the plug-in takes; `reason`: why it takes none. */
static fd_status scene_create(scene *s, const char *family, const char *argument, char *reason, char *why, size_t n)
{
    static const int32_t dtypes[] = {FD_F32, FD_BF16, FD_F16}, dims[] = {64, 128, 32, 256};
    fd_case c = {.name = "merge", .batch = 2, .heads_q = 4, .kv_lens = {150, 0}, .kv_len = 150, .seed = 3};
    fd_status status = FD_UNSUPPORTED;
    memset(s, 0, sizeof *s);
    snprintf(c.family, sizeof c.family, "%s", family);
    snprintf(c.argument, sizeof c.argument, "%s", argument);
    for (size_t d = 0; d < 3 * 4 * 2 && status == FD_UNSUPPORTED; d++) {
        c.dtype_q = c.dtype_kv = c.dtype_o = dtypes[d / 8];
        c.head_dim = c.head_dim_v = dims[d % 4];
        c.heads_kv = d / 4 % 2 == 0 ? 2 : 4;
        fd_instance outline;
        status = fd_instance_outline(&outline, &c, why, n);
        if (status == FD_OK) {
            status = fd_supports_here(fd_worker_rung(), &outline.problem, reason, 200);
            fd_instance_free(&outline);
        }
    }
    if (status != FD_OK) {
        return status;
    }
    status = fd_instance_create(&s->x, &c, why, n);
    status = status == FD_OK ? fd_plan_for(fd_worker_rung(), &s->x.problem, &s->plan, why, n) : status;
    if (status == FD_OK) {
        status = fd_buffer_alloc(&s->workspace, fd_workspace_bytes(fd_worker_rung(), &s->x.problem, s->plan));
    }
    for (int part = 0; part <= PARTS && status == FD_OK; part++) {
        status = make_part(s, part, why, n);
    }
    if (status != FD_OK) {
        scene_free(s);
    }
    return status;
}

/* ---- Merging ----------------------------------------------------------------------------------- */

/* The parts named by order[count]. */
static fd_status merge(scene *s, const int *order, int32_t count, char *why, size_t n)
{
    fd_tensor o[PARTS], lse[PARTS];
    for (int32_t part = 0; part < count; part++) {
        o[part] = s->o[order[part]];
        lse[part] = s->lse[order[part]];
    }
    fd_poison_fill(s->workspace.data, s->workspace.bytes, FD_POISON_NAN);
    fd_instance_poison(&s->x, FD_POISON_NAN);
    fd_status status = fd_worker_merge(&s->x.problem, s->plan, &s->workspace, count, o, lse, why, n);
    if (status == FD_OK && !fd_instance_outputs_intact(&s->x, FD_POISON_NAN)) {
        snprintf(why, n, "merge() wrote outside the rows of o and lse");
        status = FD_INVALID;
    }
    return status;
}

/* Are all rows of the instance but `except` (-1: none) bit for bit those of the part? */
static bool same_rows(const scene *s, int part, int64_t except)
{
    const fd_problem *p = &s->x.problem;
    bool same = true;
    for (int64_t row = 0; row < fd_row_count(p); row++) {
        int32_t b, t, h;
        fd_row_of_index(p, row, &b, &t, &h);
        const int64_t o = fd_row_at(&p->o, b, t, h), lse = fd_row_at(&p->lse, b, t, h);
        const size_t bytes = fd_dtype_bytes(p->o.dtype);
        same = same &&
               (row == except ||
                (memcmp((unsigned char *)p->o.data + (size_t)o * bytes,
                        (unsigned char *)s->o[part].data + (size_t)o * bytes, (size_t)p->head_dim_v * bytes) == 0 &&
                 fd_bits_from_float(fd_load(&p->lse, lse)) == fd_bits_from_float(fd_load(&s->lse[part], lse))));
    }
    return same;
}

/* One part with keys among ones without, at every place: that part's bits; none with keys: o = 0, lse = -infinity. */
static fd_status empty_ones(scene *s, const fd_rounding *rounding, fd_trial_line *line, char *why, size_t n)
{
    fd_status status = FD_OK;
    (void)rounding;
    for (int32_t count = 1; count <= PARTS && status == FD_OK; count++) {
        for (int32_t at = -1; at < count && status == FD_OK && line->verdict == FD_PASS; at++) {
            int order[PARTS] = {PARTS, PARTS, PARTS, PARTS};
            if (at >= 0) {
                order[at] = 0;
            }
            status = merge(s, order, count, why, n);
            if (status == FD_OK && !same_rows(s, at >= 0 ? 0 : PARTS, -1)) {
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

/* A NaN in one row of a part leaves the bits of every other row. */
static fd_status broken_row(scene *s, const fd_rounding *rounding, fd_trial_line *line, char *why, size_t n)
{
    const int order[PARTS] = {0, 1, 2, 3};
    const fd_problem *p = &s->x.problem;
    const fd_tensor lse = s->lse[1];
    (void)rounding;
    fd_status status = merge(s, order, PARTS, why, n);
    if (status != FD_OK) {
        return status;
    }
    memcpy(s->o[PARTS].data, p->o.data, s->x.o.bytes); /* what it is without the NaN */
    memcpy(s->lse[PARTS].data, p->lse.data, s->x.lse.bytes);
    fd_store(&lse, fd_row_at(&lse, 0, 0, 1), NAN);
    status = merge(s, order, PARTS, why, n);
    if (status == FD_OK && !same_rows(s, PARTS, 1)) {
        line->verdict = FD_FAIL;
        snprintf(line->reason, sizeof line->reason, "a NaN in the lse of one row of a part changes another row");
    }
    return status;
}

/* How a merge of parts that rung 02 made may round: exp and log as the plug-in's or the host's, whichever is worse. */
static fd_arith arith_of(const scene *s, const fd_rounding *host, int64_t keys)
{
    fd_arith own, a = {.size = sizeof a, .num_levels = 2, .dtype_partial = s->x.problem.o.dtype};
    fd_claims(fd_worker_rung(), &s->x.problem, s->plan, keys, &own);
    a.level[0] = (fd_level){cuts[1], FD_MERGE_ADD, FD_SEQUENTIAL, 1, 0};
    a.level[1] = (fd_level){STEPS_WAYS, FD_MERGE_LSE, FD_TREE, 0, 0};
    a.flushes = own.flushes;
    if (own.math == FD_MATH_CLAIMED) {
        a.math = FD_MATH_CLAIMED;
        a.exp_rel = fmaxf(own.exp_rel, nextafterf((float)host->exp_rel, 1.0f));
        a.exp_abs = fmaxf(own.exp_abs, nextafterf((float)host->exp_abs, 1.0f));
        a.log_rel = fmaxf(own.log_rel, nextafterf((float)fmax(host->log_rel, host->log_rel_anywhere), 1.0f));
    }
    return a;
}

/* The worst of row h of sequence 0 against its pass line. */
static void compare_row(const scene *s, const fd_oracle_row *row, const fd_bound *bound, int32_t h, fd_trial_line *line)
{
    const fd_problem *p = &s->x.problem;
    const int64_t at = fd_row_at(&p->o, 0, 0, h);
    double worst = 0.0;
    for (int32_t i = 0; i < p->head_dim_v; i++) {
        const double err = fabs(((double)fd_load(&p->o, at + i) - row->o[i]) - row->o_lo[i]);
        const double share = err / fd_bound_stored(bound->o[i], row->o[i], p->o.dtype);
        worst = !(share <= worst) ? share : worst;
    }
    const double got = (double)fd_load(&p->lse, fd_row_at(&p->lse, 0, 0, h));
    const double lse = fabs((got - row->lse) - row->lse_lo) / bound->lse;
    line->ratio = !(worst <= line->ratio) ? worst : line->ratio;
    line->lse_ratio = !(lse <= line->lse_ratio) ? lse : line->lse_ratio;
    if (line->verdict == FD_PASS && !(worst <= 1.0 && lse <= 1.0)) {
        line->verdict = FD_FAIL;
        line->tier = FD_TIER_PROVED;
        snprintf(line->reason, sizeof line->reason,
                 "merge() of four parts: %s of head %d is at %.4g of the proved bound around the answer over all keys",
                 worst <= 1.0 ? "lse" : "o", (int)h, worst <= 1.0 ? lse : worst);
    }
}

/* All 24 orders. */
static fd_status all_orders(scene *s, const fd_rounding *rounding, fd_trial_line *line, char *why, size_t n)
{
    const fd_problem *p = &s->x.problem;
    const fd_arith arith = arith_of(s, rounding, s->x.lens[0]);
    fd_oracle_row row = {.o = NULL};
    fd_bound bound = {.o = NULL};
    fd_status status = fd_oracle_row_init(&row, p->kv_capacity, p->head_dim_v);
    status = status == FD_OK ? fd_bound_init(&bound, p->kv_capacity, p->head_dim_v) : status;
    fd_claims_text(&arith, line->declared, sizeof line->declared);
    for (int code = 0; code < 256 && status == FD_OK && line->verdict == FD_PASS; code++) {
        const int order[PARTS] = {code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6 & 3};
        if ((1 << order[0] | 1 << order[1] | 1 << order[2] | 1 << order[3]) != 15) {
            continue;
        }
        status = merge(s, order, PARTS, why, n);
        for (int32_t h = 0; h < p->heads_q && status == FD_OK; h++) {
            status = fd_oracle(p, 0, 0, h, FD_ORACLE_BITS, &row, why, n);
            if (status == FD_OK) {
                fd_bound_row(&arith, rounding, p, 0, h, &row, &bound);
                compare_row(s, &row, &bound, h, line);
            }
        }
    }
    fd_bound_free(&bound);
    fd_oracle_row_free(&row);
    return status;
}

/* ---- All of it --------------------------------------------------------------------------------- */

fd_status fd_trial_merge(fd_trial *trial, const fd_rounding *rounding, char *why, size_t n)
{
    const struct {
        const char *name, *family, *argument;
        fd_status (*check)(scene *s, const fd_rounding *rounding, fd_trial_line *line, char *why, size_t n);
    } checks[] = {{"merge: parts without keys", "gaussian", "", empty_ones},
                  {"merge: a NaN in one row", "gaussian", "", broken_row},
                  {"merge: four parts in every order, gaussian", "gaussian", "", all_orders},
                  {"merge: four parts in every order, peaky:40", "peaky", "40", all_orders},
                  {"merge: four parts in every order, negative:-120", "negative", "-120", all_orders}};
    fd_status status = FD_OK;
    for (size_t i = 0; i < sizeof checks / sizeof *checks && status == FD_OK; i++) {
        fd_trial_line line = {.verdict = FD_PASS, .tier = FD_TIER_EXACT, .seconds = -1.0};
        char reason[320] = "", word[FD_TEXT_WORD];
        scene s;
        snprintf(line.name, sizeof line.name, "%s", checks[i].name);
        snprintf(line.group, sizeof line.group, "merge");
        snprintf(line.replay, sizeof line.replay, "build/flashdecode check %s --level metamorphic",
                 fd_text_word(trial->options.target, word));
        if (!fd_worker_begin(reason, sizeof reason)) {
            snprintf(trial->not_run_why, sizeof trial->not_run_why, "started again, it does not load: %.120s", reason);
            trial->not_run += (int64_t)(sizeof checks / sizeof *checks - i);
            return FD_OK;
        }
        status = scene_create(&s, checks[i].family, checks[i].argument, reason, why, n);
        if (status == FD_UNSUPPORTED) {
            line.verdict = FD_SKIP;
            snprintf(line.reason, sizeof line.reason, "no shape of merge()'s tests is taken: %.200s", reason);
        } else if (status == FD_OK) {
            status = checks[i].check(&s, rounding, &line, reason, sizeof reason);
            scene_free(&s);
        }
        if (status == FD_NO_MEMORY) {
            snprintf(why, n, "no memory to judge merge()");
            return status;
        }
        if (fd_worker_incident()->happened || (status != FD_OK && status != FD_UNSUPPORTED)) {
            line.verdict = FD_FAIL;
            snprintf(line.reason, sizeof line.reason, "%s",
                     fd_worker_incident()->happened ? fd_worker_incident()->text : reason);
        }
        line.tier = line.verdict == FD_FAIL ? line.tier : FD_TIER_NONE;
        status = fd_trial_add(trial, &line, fd_worker_incident()->stderr_line);
    }
    return status;
}
#endif
