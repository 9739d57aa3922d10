/* splits.c: see splits.h. */
#include "splits.h"
#include "oracle_fast.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "execute.h"
#include "gpu_math.h"
#include "mirror.h"

#define U32 0x1p-24 /* the unit of scaled errors */

/* One instance: its exact answer and room for a rung's. */
typedef struct scene {
    fd_instance instance;
    fd_oracle_row row;
    fd_bound bound;
    float *o; /* [head_dim_v] */
} scene;

bool fd_splits_on_request(const fd_rung *rung, const fd_problem *problem)
{
    fd_problem p = *problem;
    fd_plan *plan;
    char why[256];
    p.split_size_request = 0;
    p.num_splits_request = 2;
    if (fd_supports_here(rung, &p, why, sizeof why) != FD_OK ||
        fd_plan_for(rung, &p, &plan, why, sizeof why) != FD_OK || plan == NULL) {
        return false;
    }
    const bool cut = plan->num_splits == 2;
    free(plan);
    return cut;
}

/* The judge fences every run and sums up the cache before and after it. Here a rung is run a hundred times on one cache:
 * on the host, without all that. */
static fd_status run(const fd_rung *rung, const fd_plan *plan, scene *x, char *why, size_t n)
{
    fd_problem *p = &x->instance.problem;
    float lse;
    if (!fd_runs_on_host(rung)) {
        return fd_execute(rung, plan, &x->instance, true, FD_POISON_NAN, x->o, &lse, why, n);
    }
    void *workspace = fd_bench_allocate(fd_workspace_bytes(rung, p, plan));
    const fd_context context = {.size = sizeof context, .plan = plan, .plan_device = plan, .workspace = workspace};
    const fd_status status = workspace != NULL ? rung->run(p, &context) : FD_NO_MEMORY;
    snprintf(why, n, "run: %s", fd_status_name(status));
    for (int32_t i = 0; i < p->head_dim_v && status == FD_OK; i++) {
        x->o[i] = fd_load(&p->o, i * p->o.stride[3]);
    }
    free(workspace);
    return status;
}

/* Adds one instance to a point: its scaled errors go to `scaled`. */
static fd_status measure(scene *x, const fd_rounding *rounding, fd_split_point *point, double *scaled, char *why,
                         size_t n)
{
    fd_problem *p = &x->instance.problem;
    fd_plan *plan;
    fd_arith claims;
    p->num_splits_request = point->num_splits_request;
    fd_status status = fd_supports_here(point->rung, p, why, n);
    if (status == FD_OK) {
        status = fd_plan_for(point->rung, p, &plan, why, n);
    }
    if (status != FD_OK) {
        return status;
    }
    const fd_problem there = fd_runs_on_host(point->rung) ? *p : fd_problem_on_device(p);
    fd_claims_here(point->rung, &there, plan, x->row.kv_len, &claims);
    fd_bound_row(&claims, rounding, p, 0, 0, &x->row, &x->bound);
    point->num_splits = plan != NULL ? plan->num_splits : 1;
    point->split_size = plan != NULL ? plan->split_size : x->row.kv_len;
    point->roundings = x->bound.h_n + x->bound.h_d + 1;
    status = run(point->rung, plan, x, why, n);
    for (int32_t i = 0; i < p->head_dim_v && status == FD_OK; i++) {
        const double error = fabs(((double)x->o[i] - x->row.o[i]) - x->row.o_lo[i]), unit = U32 * x->row.gauge[i];
        scaled[i] = isnan(error) ? HUGE_VAL : error / unit;
        point->bound = fmin(point->bound, x->bound.o[i] / unit);
        point->ratio = fmax(point->ratio, scaled[i] * unit / x->bound.o[i]);
    }
    free(plan);
    return status;
}

static fd_status open_scene(scene *x, const fd_case *c, char *why, size_t n)
{
    fd_status status = fd_instance_create(&x->instance, c, why, n);
    if (status != FD_OK) {
        return status;
    }
    x->o = malloc((size_t)c->head_dim_v * sizeof *x->o);
    const bool room = x->o != NULL && fd_oracle_row_init(&x->row, c->kv_len, c->head_dim_v) == FD_OK &&
                      fd_bound_init(&x->bound, c->kv_len, c->head_dim_v) == FD_OK;
    if (!room) {
        snprintf(why, n, "no memory for the oracle");
        return FD_NO_MEMORY;
    }
    return fd_oracle_fast(&x->instance.problem, 0, 0, 0, &x->row, why, n);
}

static void close_scene(scene *x)
{
    fd_bound_free(&x->bound);
    fd_oracle_row_free(&x->row);
    fd_instance_free(&x->instance);
    free(x->o);
}

static void summarise(fd_split_point *x, double *scaled, int32_t elements)
{
    fd_sort(scaled, elements);
    x->elements = elements;
    x->err_p50 = fd_quantile(scaled, elements, 0.5);
    x->err_p90 = fd_quantile(scaled, elements, 0.9);
    x->err_max = scaled[elements - 1];
}

fd_status fd_splits_measure(const fd_case *c, int32_t seeds, const fd_rounding *rounding, fd_split_point *points,
                            int count, char *why, size_t n)
{
    const size_t elements = (size_t)seeds * (size_t)c->head_dim_v;
    double *scaled = calloc(elements * (size_t)count, sizeof *scaled);
    fd_status status = scaled != NULL ? FD_OK : FD_NO_MEMORY;
    snprintf(why, n, "no memory for %zu errors", elements * (size_t)count);
    for (int i = 0; i < count; i++) {
        points[i].status = FD_OK;
        points[i].bound = HUGE_VAL;
        points[i].ratio = 0.0;
    }
    for (int32_t seed = 0; seed < seeds && status == FD_OK; seed++) {
        scene x = {.o = NULL};
        fd_case here = *c;
        here.seed = c->seed + (uint64_t)seed;
        status = open_scene(&x, &here, why, n);
        for (int i = 0; i < count && status == FD_OK; i++) {
            double *errors = scaled + (size_t)i * elements + (size_t)seed * (size_t)c->head_dim_v;
            if (points[i].status == FD_OK) {
                points[i].status = measure(&x, rounding, &points[i], errors, points[i].why, sizeof points[i].why);
            }
        }
        close_scene(&x);
    }
    for (int i = 0; i < count && status == FD_OK; i++) {
        if (points[i].status == FD_OK) {
            summarise(&points[i], scaled + (size_t)i * elements, (int32_t)elements);
        }
    }
    free(scaled);
    return status;
}
