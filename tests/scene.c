#include "scene.h"
#include "oracle_fast.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "execute.h"
#include "gen.h"
#include "ladder.h"
#include "mirror.h"

fd_status fd_scene_create(fd_scene *scene, const fd_scene_shape *s, char *why, size_t n)
{
    fd_problem *p = &scene->problem;
    memset(scene, 0, sizeof *scene);
    *p = (fd_problem){.size = sizeof *p,
                      .batch = s->batch,
                      .heads_q = s->heads_q,
                      .heads_kv = s->heads_kv,
                      .q_len = 1,
                      .head_dim = s->head_dim,
                      .head_dim_v = s->head_dim_v,
                      .kv_capacity = s->kv_capacity,
                      .sm_scale = 1.0f,
                      .window_left = -1,
                      .window_right = -1};
    const struct {
        fd_tensor *tensor;
        fd_buffer *buffer;
        int32_t dtype;
        int64_t rows, heads, dim;
    } parts[] = {{&p->q, &scene->q, s->dtype, 1, s->heads_q, s->head_dim},
                 {&p->k, &scene->k, s->dtype, s->kv_capacity, s->heads_kv, s->head_dim},
                 {&p->v, &scene->v, s->dtype, s->kv_capacity, s->heads_kv, s->head_dim_v},
                 {&p->o, &scene->o, s->dtype, 1, s->heads_q, s->head_dim_v},
                 {&p->lse, &scene->lse, FD_F32, 1, s->heads_q, 1},
                 {&p->kv_lens, &scene->kv_lens, FD_I32, 1, 1, 1}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const int64_t row = parts[i].heads * parts[i].dim, batch = parts[i].rows * row;
        const size_t bytes = (size_t)(s->batch * batch) * fd_dtype_bytes(parts[i].dtype);
        if (fd_buffer_alloc(parts[i].buffer, bytes) != FD_OK) {
            snprintf(why, n, "no memory for a tensor of %zu bytes", bytes);
            fd_scene_free(scene);
            return FD_NO_MEMORY;
        }
        fd_poison_fill(parts[i].buffer->data, bytes, FD_POISON_NAN);
        *parts[i].tensor = (fd_tensor){
            .data = parts[i].buffer->data, .stride = {batch, row, parts[i].dim, 1}, .dtype = parts[i].dtype};
    }
    memcpy(scene->kv_lens.data, s->kv_lens, (size_t)s->batch * sizeof *s->kv_lens);
    p->kv_lens_host = (const int32_t *)p->kv_lens.data;
    p->features = fd_features(p);
    scene->o_rows = (int64_t)s->batch * s->heads_q * s->head_dim_v;
    scene->want = (float *)malloc((size_t)scene->o_rows * sizeof *scene->want + 1);
    if (scene->want == NULL) {
        snprintf(why, n, "no memory for the answers");
        fd_scene_free(scene);
        return FD_NO_MEMORY;
    }
    fd_poison_fill(scene->want, (size_t)scene->o_rows * sizeof *scene->want, FD_POISON_NAN);
    return FD_OK;
}

void fd_scene_free(fd_scene *scene)
{
    fd_buffer *const buffers[] = {&scene->q, &scene->k, &scene->v, &scene->o, &scene->lse, &scene->kv_lens};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        fd_buffer_free(buffers[i]);
    }
    free(scene->want);
    scene->want = NULL;
}

static void fill_row(const fd_tensor *x, int64_t at, int32_t dim, uint64_t seed, uint64_t stream, float factor)
{
    for (int32_t i = 0; i < dim; i++) {
        const int64_t element = at + i * x->stride[3];
        fd_store(x, element, factor * fd_random_normal(seed, stream, (uint64_t)element));
    }
}

void fd_scene_fill(fd_scene *scene, uint64_t seed, float q_factor, float k_factor, float v_factor)
{
    const fd_problem *p = &scene->problem;
    for (int32_t b = 0; b < p->batch; b++) {
        for (int32_t h = 0; h < p->heads_q; h++) {
            fill_row(&p->q, fd_row_at(&p->q, b, 0, h), p->head_dim, seed, 1, q_factor);
        }
        for (int64_t j = 0; j < fd_kv_len(p, b); j++) {
            for (int32_t h = 0; h < p->heads_kv; h++) {
                fill_row(&p->k, fd_kv_at(p, &p->k, b, j, h), p->head_dim, seed, 2, k_factor);
                fill_row(&p->v, fd_kv_at(p, &p->v, b, j, h), p->head_dim_v, seed, 3, v_factor);
            }
        }
    }
}

/* ---- Running ---- */

/* Is every byte of the output buffers that is no element of o or lse still NaN? Reads the elements out and away. */
static bool take_outputs(const fd_scene *scene, const fd_problem *p, float *o_out, float *lse_out)
{
    const float nan = fd_float_from_bits(0xffffffffu);
    for (int32_t b = 0; b < p->batch; b++) {
        for (int32_t h = 0; h < p->heads_q; h++) {
            const int64_t row = (int64_t)b * p->heads_q + h;
            for (int32_t i = 0; i < p->head_dim_v; i++) {
                const int64_t at = fd_row_at(&p->o, b, 0, h) + i * p->o.stride[3];
                o_out[row * p->head_dim_v + i] = fd_load(&p->o, at);
                memset((unsigned char *)p->o.data + (size_t)at * fd_dtype_bytes(p->o.dtype), 0xff,
                       fd_dtype_bytes(p->o.dtype));
            }
            if (lse_out != NULL) {
                float *lse = (float *)p->lse.data + fd_row_at(&p->lse, b, 0, h);
                lse_out[row] = *lse;
                memcpy(lse, &nan, sizeof nan);
            }
        }
    }
    bool clean = fd_buffer_intact(&scene->o) && fd_buffer_intact(&scene->lse);
    for (size_t i = 0; i < scene->o.bytes; i++) {
        clean = clean && scene->o.data[i] == 0xff;
    }
    for (size_t i = 0; i < scene->lse.bytes; i++) {
        clean = clean && scene->lse.data[i] == 0xff;
    }
    return clean;
}

static fd_problem with_path(const fd_scene *scene, fd_path path, bool with_lse)
{
    fd_problem p = scene->problem;
    p.num_splits_request = path.num_splits;
    p.split_size_request = path.split_size;
    p.lse.data = with_lse ? p.lse.data : NULL;
    p.features = fd_features(&p);
    return p;
}

static fd_status run(const fd_scene *scene, const fd_rung *rung, const fd_problem *p, const fd_plan *plan,
                     fd_buffer *workspace, char *why, size_t n)
{
    const fd_device *device = fd_device_for(rung, why, n);
    if (device != NULL) {
        fd_buffer o = scene->o, lse = scene->lse;
        const fd_memory memory = {.inputs = {&scene->q, &scene->k, &scene->v, &scene->kv_lens},
                                  .num_inputs = 4,
                                  .o = &o,
                                  .lse = &lse,
                                  .workspace = workspace};
        return fd_run_mirrored(device, rung, p, plan, &memory, why, n);
    }
    const fd_context context = {
        .size = sizeof context, .plan = plan, .plan_device = plan, .workspace = workspace->data};
    const fd_status status = rung->run(p, &context);
    if (status != FD_OK) {
        snprintf(why, n, "run() returned %s", fd_status_name(status));
    }
    return status;
}

fd_status fd_scene_run(const fd_scene *scene, const fd_rung *rung, fd_path path, enum fd_poison poison,
                       fd_buffer *workspace, float *o_out, float *lse_out, char *why, size_t n)
{
    const fd_problem p = with_path(scene, path, lse_out != NULL);
    fd_buffer own = {.base = NULL};
    fd_plan *plan = NULL;
    fd_status status = fd_supports_here(rung, &p, why, n);
    if (status == FD_OK) {
        status = fd_plan_for(rung, &p, &plan, why, n);
    }
    if (status != FD_OK) {
        return status;
    }
    const size_t bytes = fd_workspace_bytes(rung, &p, plan);
    if (workspace == NULL) {
        status = fd_buffer_alloc(&own, bytes);
        workspace = &own;
        if (status == FD_OK) {
            fd_poison_fill(own.data, bytes, poison);
        }
    } else if (workspace->bytes < bytes) {
        status = FD_NO_MEMORY;
    }
    if (status != FD_OK) {
        snprintf(why, n, "no memory for a workspace of %zu bytes", bytes);
        goto done;
    }
    fd_poison_fill(scene->o.data, scene->o.bytes, FD_POISON_NAN);
    fd_poison_fill(scene->lse.data, scene->lse.bytes, FD_POISON_NAN);
    status = run(scene, rung, &p, plan, workspace, why, n);
    if (status != FD_OK) {
        goto done;
    }
    if (!take_outputs(scene, &p, o_out, lse_out) || !fd_buffer_intact(workspace)) {
        snprintf(why, n, "wrote outside o, lse and workspace");
        status = FD_INVALID;
    }
done:
    fd_buffer_free(&own);
    free(plan);
    return status;
}

/* ---- Judging ---- */

typedef struct bench { /* what all paths share */
    fd_oracle_row *rows;
    fd_bound bound;
    float *o, *o_bare, *lse;
} bench;

static bool same(float x, float y)
{
    return fd_bits_from_float(x) == fd_bits_from_float(y);
}

static fd_status wrong(const char *what, int32_t b, int32_t h, int32_t i, double got, double want, double line,
                       char *why, size_t n)
{
    snprintf(why, n, "%s at b=%d h=%d i=%d: got %.9g, want %.9g (pass line %.3g)", what, b, h, i, got, want, line);
    return FD_INVALID;
}

static fd_status judge_row(const fd_scene *scene, const fd_problem *p, const fd_arith *claims,
                           const fd_rounding *rounding, bench *w, int32_t b, int32_t h, char *why, size_t n)
{
    const int64_t at = (int64_t)b * p->heads_q + h;
    const fd_oracle_row *row = &w->rows[at];
    const float *o = w->o + at * p->head_dim_v, *bare = w->o_bare + at * p->head_dim_v, lse = w->lse[at];
    for (int32_t i = 0; i < p->head_dim_v; i++) {
        if (!same(o[i], bare[i]) && !(isnan(o[i]) && isnan(bare[i]))) {
            return wrong("other bits without lse", b, h, i, (double)bare[i], (double)o[i], 0.0, why, n);
        }
    }
    if (row->kv_len == 0) {
        for (int32_t i = 0; i < p->head_dim_v; i++) {
            if (!(o[i] == 0.0f)) {
                return wrong("o of no key", b, h, i, (double)o[i], 0.0, 0.0, why, n);
            }
        }
        return lse == -INFINITY ? FD_OK : wrong("lse of no key", b, h, -1, (double)lse, -(double)INFINITY, 0.0, why, n);
    }
    if (claims->shift == FD_SHIFT_NONE &&
        (row->lse > (double)claims->fails_above || row->s_max < (double)claims->fails_below)) {
        return FD_OK;
    }
    fd_bound_row(claims, rounding, p, b, h, row, &w->bound);
    for (int32_t i = 0; i < p->head_dim_v; i++) {
        const float want = scene->want[at * p->head_dim_v + i];
        const double bound = w->bound.o[i];
        const double line = isfinite(bound) ? fd_bound_stored(bound, row->o[i], p->o.dtype) + row->radius[i] : HUGE_VAL;
        if (!isnan(want) && !(o[i] == want)) {
            return wrong("o is not exact", b, h, i, (double)o[i], (double)want, 0.0, why, n);
        }
        if (!isfinite(o[i]) || !(fabs((double)o[i] - row->o[i] - row->o_lo[i]) <= line)) {
            return wrong("o outside the bound", b, h, i, (double)o[i], row->o[i], line, why, n);
        }
    }
    if (!isfinite(lse) || !(fabs((double)lse - row->lse - row->lse_lo) <= w->bound.lse + row->lse_radius)) {
        return wrong("lse outside the bound", b, h, -1, (double)lse, row->lse, w->bound.lse, why, n);
    }
    return FD_OK;
}

static fd_status judge_path(const fd_scene *scene, const fd_rung *rung, fd_path path, enum fd_poison poison,
                            const fd_rounding *rounding, bench *w, char *why, size_t n)
{
    const fd_problem p = with_path(scene, path, true);
    char reason[160] = "";
    fd_plan *plan = NULL;
    fd_status status = fd_scene_run(scene, rung, path, poison, NULL, w->o, w->lse, reason, sizeof reason);
    if (status == FD_UNSUPPORTED) {
        return FD_OK; /* refused, and by name */
    }
    if (status == FD_OK) {
        status = fd_scene_run(scene, rung, path, FD_POISON_FINITE, NULL, w->o_bare, NULL, reason, sizeof reason);
    }
    if (status == FD_OK) {
        status = fd_plan_for(rung, &p, &plan, reason, sizeof reason);
    }
    for (int32_t b = 0; b < p.batch && status == FD_OK; b++) {
        for (int32_t h = 0; h < p.heads_q && status == FD_OK; h++) {
            fd_arith claims;
            fd_claims(rung, &p, plan, fd_kv_len(&p, b), &claims);
            status = judge_row(scene, &p, &claims, rounding, w, b, h, reason, sizeof reason);
        }
    }
    free(plan);
    if (status != FD_OK) {
        snprintf(why, n, "%02d %s, num_splits %d, split_size %lld, poison %d: %s", rung->number, rung->name,
                 path.num_splits, (long long)path.split_size, (int)poison, reason);
    }
    return status;
}

fd_status fd_scene_judge(const fd_scene *scene, const fd_rounding *rounding, char *why, size_t n)
{
    static const fd_path usual[] = {{0, 0}, {1, 0}, {2, 0}, {3, 0}, {7, 0}, {64, 0},
                                    {0, 1}, {0, 2}, {0, 5}, {0, 8}, {0, 64}};
    const fd_problem *p = &scene->problem;
    const fd_path *paths = scene->paths != NULL ? scene->paths : usual;
    const int num_paths = scene->paths != NULL ? scene->num_paths : (int)(sizeof usual / sizeof *usual);
    const int64_t rows = (int64_t)p->batch * p->heads_q;
    bench w = {.rows = calloc((size_t)rows + 1, sizeof *w.rows),
               .o = calloc((size_t)scene->o_rows + 1, sizeof *w.o),
               .o_bare = calloc((size_t)scene->o_rows + 1, sizeof *w.o_bare),
               .lse = calloc((size_t)rows + 1, sizeof *w.lse)};
    fd_status status = w.rows != NULL && w.o != NULL && w.o_bare != NULL && w.lse != NULL ? FD_OK : FD_NO_MEMORY;
    status = status == FD_OK ? fd_bound_init(&w.bound, p->kv_capacity, p->head_dim_v) : status;
    snprintf(why, n, "no memory");
    for (int64_t r = 0; r < rows && status == FD_OK; r++) {
        status = fd_oracle_row_init(&w.rows[r], p->kv_capacity, p->head_dim_v);
        if (status == FD_OK) {
            status = fd_oracle_fast(p, (int32_t)(r / p->heads_q), 0, (int32_t)(r % p->heads_q), &w.rows[r], why, n);
        }
    }
    for (int k = 0; k < fd_ladder_count && status == FD_OK; k++) {
        for (int x = 0; x < num_paths && status == FD_OK; x++) {
            status =
                judge_path(scene, fd_ladder[k], paths[x], (enum fd_poison)(x % FD_NUM_POISONS), rounding, &w, why, n);
        }
    }
    for (int64_t r = 0; r < rows && w.rows != NULL; r++) {
        fd_oracle_row_free(&w.rows[r]);
    }
    free(w.rows);
    free(w.o);
    free(w.o_bare);
    free(w.lse);
    fd_bound_free(&w.bound);
    return status;
}
