/* merge_scene.c: see merge_scene.h. */
#include "merge_scene.h"

#ifdef __linux__
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "execute.h"
#include "ladder.h"

void fd_merge_scene_free(fd_merge_scene *s)
{
    for (int part = 0; part <= FD_WORKER_PARTS; part++) {
        fd_buffer_free(&s->o_buffer[part]);
        fd_buffer_free(&s->lse_buffer[part]);
    }
    fd_buffer_free(&s->kept[0]);
    fd_buffer_free(&s->kept[1]);
    fd_buffer_free(&s->workspace);
    free(s->plan);
    fd_instance_free(&s->x);
}

/* Rows of dim elements, `step` apart, filled with NaN. */
static fd_status rows_of(const fd_problem *p, int64_t step, int32_t dtype, fd_tensor *x, fd_buffer *buffer)
{
    const int64_t rows = (int64_t)p->q_len * p->heads_q;
    const fd_status status = fd_buffer_alloc(buffer, (size_t)(p->batch * rows * step) * fd_dtype_bytes(dtype));
    *x = (fd_tensor){
        .data = buffer->data, .stride = {rows * step, p->heads_q * step, step, 1}, .dtype = dtype, .space = FD_HOST};
    if (status == FD_OK) {
        fd_poison_fill(buffer->data, buffer->bytes, FD_POISON_NAN);
    }
    return status;
}

static fd_status make_part(fd_merge_scene *s, int part, char *why, size_t n)
{
    const fd_rung *rung = fd_ladder_find(2);
    const bool none = part == s->cuts->parts;
    const int64_t begin = none ? 0 : s->cuts->at[part], end = none ? 0 : s->cuts->at[part + 1];
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
    fd_status status = rows_of(&p, p.head_dim_v + 8 * (int64_t)part, p.o.dtype, &s->o[part], &s->o_buffer[part]);
    status = status == FD_OK ? rows_of(&p, 1 + part % 3, FD_F32, &s->lse[part], &s->lse_buffer[part]) : status;
    status = status == FD_OK ? fd_buffer_alloc(&scratch, fd_workspace_bytes(rung, &p, NULL)) : status;
    if (status != FD_OK) {
        snprintf(why, n, "no memory for the parts that merge() is given");
        return status;
    }
    p.o = s->o[part];
    p.lse = s->lse[part];
    const fd_context context = {.size = sizeof context, .workspace = scratch.data};
    status = rung->run(&p, &context);
    fd_buffer_free(&scratch);
    return status;
}

/* Shapes from the one that asks most to the one that most kernels take. */
static fd_status choose(fd_case *c, char *reason, char *why, size_t n)
{
    static const int32_t dims[] = {64, 128, 32, 256}, heads[][2] = {{10, 2}, {4, 2}, {4, 4}}, rows[] = {3, 1};
    fd_status status = FD_UNSUPPORTED;
    for (size_t d = 0; d < 2 * 4 * 3 && status == FD_UNSUPPORTED; d++) {
        c->q_len = rows[d / 12];
        c->head_dim = c->head_dim_v = dims[d % 4];
        c->heads_q = heads[d / 4 % 3][0];
        c->heads_kv = heads[d / 4 % 3][1];
        fd_instance outline;
        status = fd_instance_outline(&outline, c, why, n);
        if (status == FD_OK) {
            status = fd_supports_here(fd_worker_rung(), &outline.problem, reason, 200);
            fd_instance_free(&outline);
        }
    }
    return status;
}

fd_status fd_merge_scene_create(fd_merge_scene *s, const fd_merge_cuts *cuts, const char *family, const char *argument,
                                int32_t dtype, char *reason, char *why, size_t n)
{
    const int32_t keys = (int32_t)cuts->at[cuts->parts];
    fd_case c = {.name = "merge", .batch = 2, .kv_lens = {keys, 0}, .kv_len = keys, .seed = 3};
    snprintf(c.family, sizeof c.family, "%s", family);
    snprintf(c.argument, sizeof c.argument, "%s", argument);
    c.dtype_q = c.dtype_kv = c.dtype_o = dtype;
    *s = (fd_merge_scene){.cuts = cuts};
    fd_status status = choose(&c, reason, why, n);
    if (status != FD_OK) {
        return status;
    }
    status = fd_instance_create(&s->x, &c, why, n);
    const fd_problem *p = &s->x.problem;
    status = status == FD_OK ? fd_plan_for(fd_worker_rung(), p, &s->plan, why, n) : status;
    status =
        status == FD_OK ? fd_buffer_alloc(&s->workspace, fd_workspace_bytes(fd_worker_rung(), p, s->plan)) : status;
    status = status == FD_OK ? rows_of(p, p->head_dim_v, p->o.dtype, &s->kept_o, &s->kept[0]) : status;
    status = status == FD_OK ? rows_of(p, 1, FD_F32, &s->kept_lse, &s->kept[1]) : status;
    for (int part = 0; part <= cuts->parts && status == FD_OK; part++) {
        status = make_part(s, part, why, n);
    }
    if (status != FD_OK) {
        fd_merge_scene_free(s);
    }
    return status;
}

fd_status fd_merge_parts(fd_merge_scene *s, const int *order, int32_t count, bool with_lse, char *why, size_t n)
{
    fd_tensor o[FD_WORKER_PARTS], lse[FD_WORKER_PARTS];
    fd_problem p = s->x.problem;
    for (int32_t part = 0; part < count; part++) {
        o[part] = s->o[order[part]];
        lse[part] = s->lse[order[part]];
    }
    if (!with_lse) {
        p.lse.data = NULL;
        p.features = fd_features(&p);
    }
    fd_poison_fill(s->workspace.data, s->workspace.bytes, FD_POISON_NAN);
    fd_instance_poison(&s->x, FD_POISON_NAN);
    fd_status status = fd_worker_merge(&p, s->plan, &s->workspace, count, o, lse, why, n);
    if (status == FD_OK && !fd_instance_outputs_intact(&s->x, FD_POISON_NAN)) {
        snprintf(why, n, "merge() wrote outside the rows of o and lse");
        status = FD_INVALID;
    }
    return status;
}

static void copy_row(const fd_problem *p, const fd_tensor *to, const fd_tensor *from, int64_t row, int32_t dim)
{
    int32_t b, t, h;
    fd_row_of_index(p, row, &b, &t, &h);
    for (int32_t i = 0; i < dim; i++) {
        fd_store(to, fd_row_at(to, b, t, h) + i, fd_load(from, fd_row_at(from, b, t, h) + i));
    }
}

void fd_merge_keep(fd_merge_scene *s)
{
    const fd_problem *p = &s->x.problem;
    for (int64_t row = 0; row < fd_row_count(p); row++) {
        copy_row(p, &s->kept_o, &p->o, row, p->head_dim_v);
        copy_row(p, &s->kept_lse, &p->lse, row, 1);
    }
}

static bool same_row(const fd_problem *p, const fd_tensor *x, const fd_tensor *y, int64_t row, int32_t dim)
{
    int32_t b, t, h;
    fd_row_of_index(p, row, &b, &t, &h);
    bool same = true;
    for (int32_t i = 0; i < dim; i++) {
        same = same && fd_bits_from_float(fd_load(x, fd_row_at(x, b, t, h) + i)) ==
                           fd_bits_from_float(fd_load(y, fd_row_at(y, b, t, h) + i));
    }
    return same;
}

bool fd_merge_same_rows(const fd_merge_scene *s, const fd_tensor *o, const fd_tensor *lse, int64_t except)
{
    const fd_problem *p = &s->x.problem;
    bool same = true;
    for (int64_t row = 0; row < fd_row_count(p); row++) {
        same = same && (row == except || (same_row(p, &p->o, o, row, p->head_dim_v) &&
                                          (lse == NULL || same_row(p, &p->lse, lse, row, 1))));
    }
    return same;
}
#endif
