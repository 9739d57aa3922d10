/* decode.c: see decode.h. */
#include "decode.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "execute.h"
#include "gen.h"
#include "gpu_math.h"
#include "machine.h"
#include "mirror.h"
#include "oracle_fast.h"

enum { STREAM_Q = 1, STREAM_K, STREAM_V, STREAM_TEXT };

/* ---- The sequence ------------------------------------------------------------------------------ */

static fd_tensor tensor(const fd_buffer *buffer, int64_t slots, int64_t heads, int64_t dim, int32_t dtype)
{
    return (fd_tensor){buffer->data, {slots * heads * dim, heads * dim, dim, 1}, dtype, FD_HOST};
}

/* Bytes of k, or of v; -1: they exceed any memory. */
static int64_t cache_bytes(const fd_decode_shape *s)
{
    int64_t bytes = (int64_t)fd_dtype_bytes(s->dtype_kv);
    const bool fits = !__builtin_mul_overflow(bytes, s->heads_kv, &bytes) &&
                      !__builtin_mul_overflow(bytes, s->head_dim, &bytes) &&
                      !__builtin_mul_overflow(bytes, s->kv_capacity, &bytes);
    return fits && bytes < INT64_MAX / 8 ? bytes : -1;
}

fd_status fd_decode_create(fd_decode *d, const fd_decode_shape *s, char *why, size_t n)
{
    *d = (fd_decode){.kv_len = 0};
    if (s->kv_capacity < 1 || s->kv_capacity > INT32_MAX || s->heads_kv < 1 || s->heads_q % s->heads_kv != 0) {
        snprintf(why, n, "a sequence has 1 to 2147483647 tokens, and heads_q is a multiple of heads_kv");
        return FD_INVALID;
    }
    const int64_t kv = cache_bytes(s), row = (int64_t)s->heads_q * s->head_dim;
    if (kv < 0 || 2 * kv > fd_memory_available() / 2) {
        snprintf(why, n, "%" PRId64 " tokens need %.1f GiB for K and V, twice; take fewer steps or heads",
                 s->kv_capacity, 2.0 * (double)kv / 0x1p30);
        return FD_NO_MEMORY;
    }
    d->tokens = calloc((size_t)s->kv_capacity, sizeof *d->tokens);
    const struct {
        fd_buffer *buffer;
        int64_t bytes;
    } wanted[] = {{&d->q, row * (int64_t)fd_dtype_bytes(s->dtype_q)},
                  {&d->k, kv},
                  {&d->v, kv},
                  {&d->o, row * (int64_t)fd_dtype_bytes(s->dtype_o)},
                  {&d->lse, s->heads_q * (int64_t)sizeof(float)},
                  {&d->kv_lens, sizeof(int32_t)}};
    fd_status status = d->tokens != NULL ? FD_OK : FD_NO_MEMORY;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted && status == FD_OK; i++) {
        status = fd_buffer_alloc(wanted[i].buffer, (size_t)wanted[i].bytes);
        if (status == FD_OK) {
            fd_poison_fill(wanted[i].buffer->data, (size_t)wanted[i].bytes, FD_POISON_NAN);
        }
    }
    if (status != FD_OK) {
        snprintf(why, n, "no memory for a cache of %" PRId64 " tokens", s->kv_capacity);
        fd_decode_free(d);
        return status;
    }
    *(int32_t *)(void *)d->kv_lens.data = 0;
    d->problem = (fd_problem){
        .size = sizeof(fd_problem),
        .batch = 1,
        .heads_q = s->heads_q,
        .heads_kv = s->heads_kv,
        .q_len = 1,
        .head_dim = s->head_dim,
        .head_dim_v = s->head_dim,
        .kv_capacity = s->kv_capacity,
        .q = tensor(&d->q, 1, s->heads_q, s->head_dim, s->dtype_q),
        .k = tensor(&d->k, s->kv_capacity, s->heads_kv, s->head_dim, s->dtype_kv),
        .v = tensor(&d->v, s->kv_capacity, s->heads_kv, s->head_dim, s->dtype_kv),
        .o = tensor(&d->o, 1, s->heads_q, s->head_dim, s->dtype_o),
        .lse = {d->lse.data, {s->heads_q, s->heads_q, 1, 0}, FD_F32, FD_HOST},
        .kv_lens = {d->kv_lens.data, {1, 0, 0, 0}, FD_I32, FD_HOST},
        .sm_scale = (float)(1.0 / sqrt((double)s->head_dim)),
        .window_left = -1,
        .window_right = -1,
    };
    d->problem.features = fd_features(&d->problem);
    return FD_OK;
}

void fd_decode_free(fd_decode *d)
{
    fd_buffer *const buffers[] = {&d->q, &d->k, &d->v, &d->o, &d->lse, &d->kv_lens, &d->workspace};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        fd_buffer_free(buffers[i]);
    }
    free(d->tokens);
    free(d->plan);
    *d = (fd_decode){.kv_len = 0};
}

int64_t fd_decode_bytes(const fd_decode *d)
{
    const fd_problem *p = &d->problem;
    return 2 * d->kv_len * p->heads_kv * p->head_dim * (int64_t)fd_dtype_bytes(p->k.dtype);
}

static void draw(const fd_tensor *x, int64_t at, int64_t elements, uint64_t token, uint64_t stream)
{
    for (int64_t i = 0; i < elements; i++) {
        fd_store(x, at + i, fd_random_normal(token, stream, (uint64_t)i));
    }
}

void fd_decode_append(fd_decode *d, uint64_t token)
{
    const fd_problem *p = &d->problem;
    const int64_t slot = d->kv_len * p->k.stride[1];
    draw(&p->k, slot, p->k.stride[1], token, STREAM_K);
    draw(&p->v, slot, p->v.stride[1], token, STREAM_V);
    draw(&p->q, 0, p->q.stride[1], token, STREAM_Q);
    d->tokens[d->kv_len++] = token;
    *(int32_t *)(void *)d->kv_lens.data = (int32_t)d->kv_len;
}

uint64_t fd_decode_next(const fd_decode *d)
{
    return fd_fnv(fd_fnv(FD_FNV_BEGIN, d->o.data, d->o.bytes), d->lse.data, d->lse.bytes);
}

uint64_t fd_decode_text(uint64_t token, int64_t i)
{
    return fd_random_bits(token, STREAM_TEXT, (uint64_t)i);
}

/* ---- Attending --------------------------------------------------------------------------------- */

fd_status fd_decode_use(fd_decode *d, const fd_rung *rung, int32_t threads, int64_t keys, char *why, size_t n)
{
    const int32_t longest = (int32_t)keys;
    fd_problem p = d->problem;
    p.kv_lens_host = &longest;
    free(d->plan);
    fd_buffer_free(&d->workspace);
    d->plan = NULL;
    d->rung = rung;
    d->planned = keys;
    fd_status status = fd_supports_here(rung, &p, why, n);
    if (status != FD_OK) {
        return status;
    }
    const fd_device *device = fd_device_for(rung, why, n);
    const fd_machine machine = device != NULL ? device->machine : fd_host_machine(threads);
    status = fd_plan_on(&machine, rung, &p, &d->plan, why, n);
    if (status == FD_OK) {
        const fd_problem seen = device != NULL ? fd_problem_on_device(&p) : p;
        status = fd_buffer_alloc(&d->workspace, fd_workspace_bytes(rung, &seen, d->plan));
        snprintf(why, n, "no memory for the workspace");
    }
    if (status == FD_OK) {
        fd_poison_fill(d->workspace.data, d->workspace.bytes, FD_POISON_NAN);
    }
    return status;
}

fd_status fd_decode_attend(fd_decode *d, double *ns, char *why, size_t n)
{
    const fd_device *device = fd_device_for(d->rung, why, n);
    const fd_context context = {
        .size = sizeof context, .plan = d->plan, .plan_device = d->plan, .workspace = d->workspace.data};
    const double start = fd_now_ns();
    fd_status status;
    if (device != NULL) {
        const fd_memory memory = {.inputs = {&d->q, &d->k, &d->v, &d->kv_lens},
                                  .num_inputs = 4,
                                  .o = &d->o,
                                  .lse = &d->lse,
                                  .workspace = &d->workspace};
        status = fd_run_mirrored(device, d->rung, &d->problem, d->plan, &memory, why, n);
    } else {
        status = d->rung->run(&d->problem, &context);
        snprintf(why, n, "run() returned %s", fd_status_name(status));
    }
    *ns = fd_now_ns() - start;
    return status;
}

/* ---- Checking ---------------------------------------------------------------------------------- */

/* The same tokens, written at once into memory of their own; q is the last token's. */
static fd_status rebuild(const fd_decode *d, fd_decode *fresh, char *why, size_t n)
{
    const fd_problem *p = &d->problem;
    const fd_decode_shape shape = {.heads_q = p->heads_q,
                                   .heads_kv = p->heads_kv,
                                   .head_dim = p->head_dim,
                                   .dtype_q = p->q.dtype,
                                   .dtype_kv = p->k.dtype,
                                   .dtype_o = p->o.dtype,
                                   .kv_capacity = p->kv_capacity};
    const fd_status status = fd_decode_create(fresh, &shape, why, n);
    for (int64_t j = 0; j < d->kv_len && status == FD_OK; j++) {
        fd_decode_append(fresh, d->tokens[j]);
    }
    return status;
}

/* Runs the fresh sequence with a plan for `keys` keys. Are its bits those of d? */
static fd_status same_bits(const fd_decode *d, fd_decode *fresh, int32_t threads, int64_t keys, bool *same, char *why,
                           size_t n)
{
    double ns;
    fd_status status = fd_decode_use(fresh, d->rung, threads, keys, why, n);
    if (status == FD_OK) {
        status = fd_decode_attend(fresh, &ns, why, n);
    }
    *same = status == FD_OK && memcmp(d->o.data, fresh->o.data, d->o.bytes) == 0 &&
            memcmp(d->lse.data, fresh->lse.data, d->lse.bytes) == 0;
    return status;
}

/* error over bound; what is no number is above every bound. */
static double over(double error, double bound)
{
    return isnan(error) ? HUGE_VAL : error == 0.0 ? 0.0 : error / bound;
}

static double largest_ratio(const fd_problem *p, int32_t h, const fd_oracle_row *row, const fd_bound *bound)
{
    const double lse = (double)fd_load(&p->lse, fd_row_at(&p->lse, 0, 0, h));
    double ratio = over(fabs((lse - row->lse) - row->lse_lo), bound->lse);
    for (int32_t i = 0; i < p->head_dim_v; i++) {
        const double o = (double)fd_load(&p->o, fd_row_at(&p->o, 0, 0, h) + i);
        const double line = fd_bound_stored(bound->o[i], row->o[i], p->o.dtype);
        ratio = fmax(ratio, over(fabs((o - row->o[i]) - row->o_lo[i]), line));
    }
    return ratio;
}

static fd_status ask_oracle(const fd_decode *d, int32_t h, const fd_rounding *rounding, double *ratio, char *why,
                            size_t n)
{
    const fd_problem *p = &d->problem;
    const fd_problem there = fd_runs_on_host(d->rung) ? *p : fd_problem_on_device(p);
    fd_oracle_row row = {.kv_len = 0};
    fd_bound bound = {.known = false};
    fd_arith claims;
    fd_status status = fd_oracle_row_init(&row, d->kv_len, p->head_dim_v);
    if (status == FD_OK) {
        status = fd_bound_init(&bound, d->kv_len, p->head_dim_v);
    }
    if (status == FD_OK) {
        status = fd_oracle_fast(p, 0, 0, h, &row, why, n);
    } else {
        snprintf(why, n, "no memory for the oracle");
    }
    if (status == FD_OK) {
        fd_claims_here(d->rung, &there, d->plan, d->kv_len, &claims);
        fd_bound_row(&claims, rounding, p, 0, h, &row, &bound);
        *ratio = largest_ratio(p, h, &row, &bound);
    }
    fd_bound_free(&bound);
    fd_oracle_row_free(&row);
    return status;
}

fd_status fd_decode_recheck(const fd_decode *d, int32_t threads, int32_t h, const fd_rounding *rounding,
                            fd_decode_check *check, char *why, size_t n)
{
    const fd_problem there = fd_runs_on_host(d->rung) ? d->problem : fd_problem_on_device(&d->problem);
    fd_arith claims;
    fd_claims_here(d->rung, &there, d->plan, d->kv_len, &claims);
    *check = (fd_decode_check){.claimed = d->plan == NULL || (claims.invariances & FD_INV_BATCH) != 0};

    fd_decode fresh;
    fd_status status = rebuild(d, &fresh, why, n);
    if (status != FD_OK) {
        return status;
    }
    status = same_bits(d, &fresh, threads, d->planned, &check->same, why, n);
    if (status == FD_OK) {
        status = same_bits(d, &fresh, threads, d->kv_len, &check->same_planned, why, n);
    }
    fd_decode_free(&fresh);
    return status == FD_OK ? ask_oracle(d, h, rounding, &check->ratio, why, n) : status;
}
