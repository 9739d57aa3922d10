/* bound_check.c: small cases for the tests of bound.c: one query row, run by a rung, judged by the oracle. */
#include "bound_check.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "ladder.h"

const fd_rounding fd_check_fp32 = {.u = 0x1p-24,
                                   .eta = 0x1p-150,
                                   .largest = (double)FLT_MAX,
                                   .exp_rel = 0x1p-23,
                                   .exp_abs = 0x1p-149,
                                   .exp_rel_positive = 0x1p-23,
                                   .log_rel = 0x1p-22,
                                   .log_rel_anywhere = 0x1p-22};

/* ---- Cases ------------------------------------------------------------------------------------- */

static fd_tensor dense(float *data, int64_t rows, int64_t width)
{
    return (fd_tensor){.data = data, .stride = {rows * width, width, width, 1}, .dtype = FD_F32, .space = FD_HOST};
}

fd_status fd_check_init(fd_check_case *c, int64_t n, int32_t d, int32_t d_v)
{
    *c = (fd_check_case){.q = calloc((size_t)(n + 1) * (size_t)(d + d_v) + 1, sizeof(float))};
    if (c->q == NULL || fd_oracle_row_init(&c->row, n, d_v) != FD_OK || fd_bound_init(&c->bound, n, d_v) != FD_OK) {
        fd_check_free(c);
        return FD_NO_MEMORY;
    }
    c->k = c->q + d;
    c->v = c->k + n * d;
    c->o = c->v + n * d_v;
    c->lse = c->o + d_v;
    fd_problem *p = &c->p;
    *p = (fd_problem){.size = sizeof *p, .batch = 1, .heads_q = 1, .heads_kv = 1, .q_len = 1, .sm_scale = 1.0f};
    p->head_dim = d;
    p->head_dim_v = d_v;
    p->kv_capacity = n;
    p->window_left = p->window_right = -1;
    p->q = dense(c->q, 1, d);
    p->k = dense(c->k, n, d);
    p->v = dense(c->v, n, d_v);
    p->o = dense(c->o, 1, d_v);
    p->lse = dense(c->lse, 1, 1);
    p->features = fd_features(p);
    return FD_OK;
}

void fd_check_free(fd_check_case *c)
{
    fd_bound_free(&c->bound);
    fd_oracle_row_free(&c->row);
    free(c->q);
    *c = (fd_check_case){.q = NULL};
}

fd_status fd_check_from_logits(fd_check_case *c, int64_t n, const float *s, const float *v)
{
    const fd_status status = fd_check_init(c, n, 1, 1);
    if (status == FD_OK) {
        c->q[0] = 1.0f;
        memcpy(c->k, s, (size_t)n * sizeof *s);
        memcpy(c->v, v, (size_t)n * sizeof *v);
    }
    return status;
}

fd_status fd_check_run(fd_check_case *c, int32_t number, int64_t split_size, fd_arith *arith)
{
    const fd_rung *rung = fd_ladder_find(number);
    const fd_machine machine = {.size = sizeof machine, .space = FD_HOST, .num_units = 1, .blocks_per_unit = 1};
    fd_plan *plan = NULL;
    fd_context context = {.size = sizeof context};
    fd_status status = FD_NO_MEMORY;
    char why[160];
    c->p.split_size_request = split_size;
    if (rung == NULL || fd_supports(rung, &c->p, why, sizeof why) != FD_OK) {
        return FD_UNSUPPORTED;
    }
    const size_t bytes = fd_plan_bytes(rung, &c->p, &machine);
    plan = bytes > 0 ? calloc(1, bytes) : NULL;
    if (bytes > 0 && plan == NULL) {
        goto done;
    }
    status = fd_make_plan(rung, &c->p, &machine, plan);
    if (status != FD_OK) {
        goto done;
    }
    context.plan = context.plan_device = plan;
    context.workspace = malloc(fd_workspace_bytes(rung, &c->p, plan) + 1);
    status = context.workspace != NULL ? rung->run(&c->p, &context) : FD_NO_MEMORY;
    fd_claims(rung, &c->p, plan, c->p.kv_capacity, arith);
done:
    free(context.workspace);
    free(plan);
    return status;
}

fd_status fd_check_judge(fd_check_case *c, const fd_arith *arith, const fd_rounding *r)
{
    char why[160];
    const fd_status status = fd_oracle(&c->p, 0, 0, 0, FD_ORACLE_BITS, &c->row, why, sizeof why);
    if (status == FD_OK) {
        fd_bound_row(arith, r, &c->p, 0, 0, &c->row, &c->bound);
    }
    return status;
}

double fd_check_error(const fd_check_case *c, int32_t i, double o)
{
    return fabs((o - c->row.o[i]) - c->row.o_lo[i]);
}

double fd_check_lse_error(const fd_check_case *c, double lse)
{
    return fabs((lse - c->row.lse) - c->row.lse_lo);
}

double fd_check_uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(*state >> 40) * 0x1p-23 - 1.0;
}

int32_t fd_check_below(uint64_t *state, int32_t n)
{
    return (int32_t)((fd_check_uniform(state) + 1.0) * 0.5 * (double)n);
}
