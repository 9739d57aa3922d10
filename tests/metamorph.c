/* metamorph.c: runs the two instances of each relation and compares them, a rung at a time. */
#include "metamorph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "execute.h"
#include "gpu_math.h"
#include "oracle_fast.h"

/* ---- The exact side of bounded relations, once per instance ---- */

typedef struct exact_rows {
    fd_oracle_row *row; /* [batch, q_len, heads_q] */
    int64_t count;
} exact_rows;

static void free_rows(exact_rows *rows)
{
    for (int64_t r = 0; r < rows->count && rows->row != NULL; r++) {
        fd_oracle_row_free(&rows->row[r]);
    }
    free(rows->row);
    *rows = (exact_rows){.row = NULL};
}

static fd_status solve(const fd_instance *x, exact_rows *rows, char *why, size_t n)
{
    const fd_problem *p = &x->problem;
    rows->count = fd_row_count(p);
    rows->row = calloc((size_t)rows->count, sizeof *rows->row);
    fd_status status = rows->row != NULL ? FD_OK : FD_NO_MEMORY;
    for (int64_t r = 0; r < rows->count && status == FD_OK; r++) {
        status = fd_oracle_row_init(&rows->row[r], p->kv_capacity, p->head_dim_v);
    }
    if (status != FD_OK) {
        snprintf(why, n, "%s: no memory for oracle rows", x->c.name);
        return status;
    }
#pragma omp parallel for schedule(dynamic, 1)
    for (int64_t r = 0; r < rows->count; r++) {
        char reason[160] = "";
        int32_t b, t, h;
        fd_row_of_index(p, r, &b, &t, &h);
        const fd_status mine = fd_oracle_fast(p, b, t, h, &rows->row[r], reason, sizeof reason);
#pragma omp critical
        if (mine != FD_OK && status == FD_OK) {
            status = mine;
            snprintf(why, n, "%s: %s", x->c.name, reason);
        }
    }
    return status;
}

/* ---- One rung, one instance ---- */

typedef struct answer {
    const fd_instance *x;
    float *o, *lse;
    fd_plan *plan;
} answer;

static void free_answer(answer *a)
{
    free(a->o);
    free(a->lse);
    free(a->plan);
    *a = (answer){.x = NULL};
}

/* For rungs that take OpenMP's number instead of the plan's. 0: what it was when the program began. */
static void with_threads(int32_t threads)
{
#ifdef _OPENMP
    static int before;
    before = before == 0 ? omp_get_max_threads() : before;
    omp_set_num_threads(threads > 0 ? threads : before);
#else
    (void)threads;
#endif
}

/* FD_OK, FD_NO_MEMORY, or FD_INVALID with what the rung did wrong. */
static fd_status run(const fd_rung *rung, int32_t threads, fd_instance *x, answer *a, char *why, size_t n)
{
    const fd_device *device = fd_device_for(rung, why, n);
    const fd_machine machine = device != NULL ? device->machine : fd_host_machine(threads);
    const size_t rows = (size_t)fd_row_count(&x->problem);
    *a = (answer){
        .x = x, .o = calloc(rows * (size_t)x->c.head_dim_v + 1, sizeof(float)), .lse = calloc(rows + 1, sizeof(float))};
    fd_status status = a->o != NULL && a->lse != NULL ? FD_OK : FD_NO_MEMORY;
    if (status == FD_OK) {
        status = fd_plan_on(&machine, rung, &x->problem, &a->plan, why, n);
    }
    if (status == FD_OK) {
        with_threads(threads);
        status = fd_execute(rung, a->plan, x, true, FD_POISON_NAN, a->o, a->lse, why, n);
        with_threads(0);
    }
    return status;
}

/* ---- Comparing ---- */

static bool same(float x, float y)
{
    return fd_bits_from_float(x) == fd_bits_from_float(y) || (isnan(x) && isnan(y));
}

static void fail(fd_relation_outcome *out, int32_t variant, const char *reason, fd_witness witness)
{
    if (out->verdict != FD_FAIL) {
        out->verdict = FD_FAIL;
        out->tier = FD_TIER_METAMORPHIC;
        out->variant = variant;
        out->worst = witness;
        snprintf(out->reason, sizeof out->reason, "%s", reason);
    }
}

/* Do both plans put the row's keys into the same splits? A merge with an empty partial changes no bit. */
static bool cut_alike(const fd_plan *x, const fd_plan *y, int64_t kv_len)
{
    if (x == NULL || y == NULL) {
        return x == y;
    }
    const int64_t size_x = x->split_size < kv_len ? x->split_size : kv_len;
    const int64_t size_y = y->split_size < kv_len ? y->split_size : kv_len;
    return size_x == size_y && x->tile == y->tile;
}

/* Multiplied by a power of two, a value keeps its bits unless it comes near the end of a range. */
static bool scales(float o, float scale, int32_t dtype_o)
{
    return scale == 1.0f || (isfinite(o) && fabsf(o) >= (dtype_o == FD_F16 ? 0x1p-8f : 0x1p-60f));
}

static void compare_bits(const answer *x, const answer *y, int32_t b, int32_t t, int32_t h, const fd_image *image,
                         int32_t variant, fd_relation_outcome *out)
{
    const fd_problem *p = &x->x->problem;
    const int64_t from = fd_row_index(p, b, t, h), to = fd_row_index(p, image->b, image->t, image->h);
    for (int32_t i = 0; i < p->head_dim_v; i++) {
        const float before = x->o[from * p->head_dim_v + i], got = y->o[to * p->head_dim_v + i];
        if (scales(before, image->o_scale, p->o.dtype)) {
            const float want = before * image->o_scale;
            out->same_bits++;
            if (!same(want, got)) {
                fail(out, variant, "o has other bits",
                     (fd_witness){image->b, image->t, image->h, i, got, (double)want, 0.0});
            }
        }
    }
    out->same_bits++;
    if (!same(x->lse[from], y->lse[to])) {
        fail(out, variant, "lse has other bits",
             (fd_witness){image->b, image->t, image->h, -1, y->lse[to], (double)x->lse[from], 0.0});
    }
}

/* The pass line of one row of one answer; false if the rung declares to fail on it. */
static bool line_of(const fd_rung *rung, const answer *a, const fd_rounding *rounding, const fd_oracle_row *row,
                    int32_t b, int32_t h, fd_bound *bound)
{
    fd_arith claims;
    fd_claims_here(rung, &a->x->problem, a->plan, row->kv_len, &claims);
    fd_bound_row(&claims, rounding, &a->x->problem, b, h, row, bound);
    return !(claims.shift == FD_SHIFT_NONE &&
             (row->lse > (double)claims.fails_above || row->s_max < (double)claims.fails_below));
}

static void decide(fd_relation_outcome *out, int32_t variant, const char *reason, fd_witness w, bool says)
{
    const double apart = fabs((double)w.got - w.want);
    if (!says) {
        out->vacuous++;
        return;
    }
    out->bounded++;
    if (!(apart <= w.bound)) {
        fail(out, variant, reason, w);
    }
    out->ratio = fmax(out->ratio, apart == 0.0 ? 0.0 : apart / w.bound);
}

static void compare_bounded(const fd_rung *rung, const answer *x, const answer *y, const fd_rounding *rounding,
                            const fd_oracle_row *row_x, const fd_oracle_row *row_y, int32_t b, int32_t t, int32_t h,
                            const fd_image *image, int32_t variant, fd_bound bounds[2], fd_relation_outcome *out)
{
    const fd_problem *p = &x->x->problem;
    const int64_t from = fd_row_index(p, b, t, h), to = fd_row_index(p, image->b, image->t, image->h);
    const bool right_x = line_of(rung, x, rounding, row_x, b, h, &bounds[0]);
    const bool right_y = line_of(rung, y, rounding, row_y, image->b, image->h, &bounds[1]);
    if (!right_x || !right_y) {
        out->declared += p->head_dim_v + 1;
        return;
    }
    const bool admissible = bounds[0].admissible && bounds[1].admissible;
    for (int32_t i = 0; i < p->head_dim_v; i++) {
        const double gauge = row_x->gauge[i];
        const double line = gauge == 0.0 ? 0.0
                                         : fd_bound_stored(bounds[0].o[i], row_x->o[i], p->o.dtype) +
                                               fd_bound_stored(bounds[1].o[i], row_y->o[i], p->o.dtype);
        decide(out, variant, "o is further away than both bounds together",
               (fd_witness){image->b, image->t, image->h, i, y->o[to * p->head_dim_v + i],
                            (double)x->o[from * p->head_dim_v + i], line},
               admissible && line <= FD_VACUOUS * gauge);
    }
    if (!fd_gives_lse(rung)) {
        return;
    }
    const double shift = image->lse_shift, line = bounds[0].lse + bounds[1].lse + 0x1p-50 * fabs(shift);
    decide(out, variant, "lse is further away than both bounds together",
           (fd_witness){image->b, image->t, image->h, -1, y->lse[to], (double)x->lse[from] + shift, line},
           admissible && line <= FD_VACUOUS);
}

/* Does the rung claim, of both runs, that its bits do not depend on what the relation changes? */
static bool claims(const fd_rung *rung, const answer *x, const answer *y, int64_t keys, uint32_t invariance)
{
    fd_arith first, second;
    fd_claims_here(rung, &x->x->problem, x->plan, keys, &first);
    fd_claims_here(rung, &y->x->problem, y->plan, keys, &second);
    return (first.invariances & second.invariances & invariance) != 0;
}

static void compare(const fd_relation *relation, const fd_rung *rung, const answer *x, const answer *y,
                    const fd_rounding *rounding, const exact_rows *rows_x, const exact_rows *rows_y, int32_t variant,
                    fd_bound bounds[2], fd_relation_outcome *out)
{
    const fd_problem *p = &x->x->problem;
    for (int64_t r = 0; r < fd_row_count(p); r++) {
        fd_image image = {.o_scale = 1.0f};
        fd_row_of_index(p, r, &image.b, &image.t, &image.h);
        const int32_t b = image.b, t = image.t, h = image.h;
        if (relation->image != NULL && !relation->image(x->x, variant, b, t, h, &image)) {
            continue;
        }
        const int64_t to = fd_row_index(p, image.b, image.t, image.h), keys = fd_visible_end(p, b, t);
        if (keys == 0 || relation->kind == FD_SAME_BITS || claims(rung, x, y, keys, relation->claim) ||
            (relation->kind == FD_SAME_BITS_IF_CUT_ALIKE && cut_alike(x->plan, y->plan, keys))) {
            compare_bits(x, y, b, t, h, &image, variant, out);
        } else {
            compare_bounded(rung, x, y, rounding, &rows_x->row[r],
                            relation->same_numbers ? &rows_x->row[r] : &rows_y->row[to], b, t, h, &image, variant,
                            bounds, out);
        }
    }
}

/* ---- A case ---- */

typedef struct session {
    const fd_rung *const *rungs;
    int count;
    const fd_rounding *rounding;
    fd_instance x;
    answer *first; /* [count] */
    exact_rows rows;
    fd_bound bounds[2];
    fd_relation_outcome *outcomes;
} session;

/* Why a variant was not compared: kept for a skip, unless one that was has failed. */
static void refuse(fd_relation_outcome *out, const char *reason)
{
    if (out->verdict != FD_FAIL) {
        snprintf(out->reason, sizeof out->reason, "%s", reason);
    }
}

static fd_status compare_variant(session *s, int relation_at, int32_t variant, char *why, size_t n)
{
    const fd_relation *relation = &fd_relations[relation_at];
    fd_instance y = {.problem = {.size = 0}};
    exact_rows rows = {.row = NULL};
    answer second = {.x = NULL};
    char reason[240] = "";
    fd_status status = relation->build(&s->x, variant, &y, reason, sizeof reason);
    if (status == FD_UNSUPPORTED) {
        for (int k = 0; k < s->count; k++) {
            refuse(&s->outcomes[k * fd_relation_count + relation_at], reason);
        }
        return FD_OK;
    }
    if (status == FD_OK && relation->kind == FD_WITHIN_BOUNDS && !relation->same_numbers) {
        status = solve(&y, &rows, reason, sizeof reason);
    }
    for (int k = 0; k < s->count && status == FD_OK; k++) {
        fd_relation_outcome *out = &s->outcomes[k * fd_relation_count + relation_at];
        if (s->first[k].x == NULL) {
            continue;
        }
        if (fd_supports_here(s->rungs[k], &y.problem, reason, sizeof reason) == FD_UNSUPPORTED) {
            refuse(out, reason);
            continue;
        }
        const int32_t threads = relation->threads != NULL ? relation->threads(variant) : FD_HOST_THREADS;
        status = run(s->rungs[k], threads, &y, &second, reason, sizeof reason);
        if (status == FD_OK) {
            compare(relation, s->rungs[k], &s->first[k], &second, s->rounding, &s->rows, &rows, variant, s->bounds,
                    out);
        } else if (status != FD_NO_MEMORY) {
            fail(out, variant, reason, (fd_witness){.i = -1});
            status = FD_OK;
        }
        free_answer(&second);
    }
    if (status != FD_OK) {
        snprintf(why, n, "%s, relation %s: %.100s", s->x.c.name, relation->name, reason);
    }
    free_rows(&rows);
    fd_instance_free(&y);
    return status;
}

/* Room for a constant added to k and a power of two on v, without rounding. */
static void coarsen(const fd_tensor *x, const fd_instance *instance, int32_t dim, float step)
{
    const fd_problem *p = &instance->problem;
    for (int32_t b = 0; b < p->batch; b++) {
        for (int64_t j = 0; j < fd_kv_len(p, b); j++) {
            for (int32_t h = 0; h < p->heads_kv; h++) {
                for (int32_t i = 0; i < dim; i++) {
                    const int64_t at = fd_kv_at(p, x, b, j, h) + i * x->stride[3];
                    fd_store(x, at, nearbyintf(fd_load(x, at) / step) * step);
                }
            }
        }
    }
}

static void conclude(fd_relation_outcome *out)
{
    if (out->verdict == FD_FAIL || out->same_bits + out->bounded > 0) {
        out->reason[out->verdict == FD_FAIL ? sizeof out->reason - 1 : 0] = '\0';
        return;
    }
    out->verdict = FD_SKIP;
    if (out->reason[0] == '\0') {
        snprintf(out->reason, sizeof out->reason, "%s",
                 out->vacuous > 0    ? "every bound is vacuous"
                 : out->declared > 0 ? "the rung declares to fail here"
                                     : "the case has no second instance");
    }
}

fd_status fd_metamorph(const fd_rung *const *rungs, int count, const fd_case *c, const fd_rounding *rounding,
                       fd_relation_outcome *outcomes, char *why, size_t n)
{
    session s = {.rungs = rungs, .count = count, .rounding = rounding, .outcomes = outcomes};
    memset(outcomes, 0, (size_t)(count * fd_relation_count) * sizeof *outcomes);
    fd_status status = fd_instance_create(&s.x, c, why, n);
    if (status != FD_OK) {
        return status;
    }
    if (c->dtype_kv != FD_F32) {
        coarsen(&s.x.problem.k, &s.x, c->head_dim, 0x1p-4f);
    }
    if (c->dtype_kv == FD_F16) {
        coarsen(&s.x.problem.v, &s.x, c->head_dim_v, 0x1p-8f);
    }
    const int64_t room = 2 * (int64_t)c->kv_len + 128; /* of the longest second instance */
    s.first = calloc((size_t)count + 1, sizeof *s.first);
    status = s.first == NULL ? FD_NO_MEMORY : fd_bound_init(&s.bounds[0], room, c->head_dim_v);
    status = status == FD_OK ? fd_bound_init(&s.bounds[1], room, c->head_dim_v) : status;
    if (status != FD_OK) {
        snprintf(why, n, "%s: no memory for %lld keys", c->name, (long long)room);
        goto done;
    }
    status = solve(&s.x, &s.rows, why, n);
    for (int k = 0; k < count && status == FD_OK; k++) {
        fd_relation_outcome *out = &outcomes[k * fd_relation_count];
        char reason[sizeof out->reason] = "";
        status = fd_supports_here(rungs[k], &s.x.problem, reason, sizeof reason);
        if (status == FD_OK) {
            status = run(rungs[k], FD_HOST_THREADS, &s.x, &s.first[k], reason, sizeof reason);
        }
        if (status == FD_NO_MEMORY) {
            snprintf(why, n, "%s: no memory to run %s", c->name, rungs[k]->name);
            break;
        }
        for (int r = 0; r < fd_relation_count && status != FD_OK; r++) {
            snprintf(out[r].reason, sizeof out[r].reason, "%s", reason);
            if (status == FD_INVALID || status == FD_DEVICE_ERROR) {
                fail(&out[r], 0, reason, (fd_witness){.i = -1});
            }
        }
        if (status != FD_OK) {
            free_answer(&s.first[k]);
        }
        status = FD_OK;
    }
    for (int r = 0; r < fd_relation_count && status == FD_OK; r++) {
        const int32_t variants = fd_relations[r].variants(&s.x);
        for (int k = 0; k < count; k++) {
            outcomes[k * fd_relation_count + r].applies = variants > 0;
        }
        for (int32_t variant = 0; variant < variants && status == FD_OK; variant++) {
            status = compare_variant(&s, r, variant, why, n);
        }
    }
    for (int k = 0; k < count * fd_relation_count && status == FD_OK; k++) {
        conclude(&outcomes[k]);
    }
done:
    for (int k = 0; k < count && s.first != NULL; k++) {
        free_answer(&s.first[k]);
    }
    free(s.first);
    free_rows(&s.rows);
    fd_bound_free(&s.bounds[0]);
    fd_bound_free(&s.bounds[1]);
    fd_instance_free(&s.x);
    return status;
}
