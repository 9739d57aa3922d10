/* bug_scene.h: scenes for reported bugs, set up element by element, and judged; shared by test_bug_cases.c and
 * test_bug_numbers.c. */
#ifndef FD_BUG_SCENE_H
#define FD_BUG_SCENE_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "execute.h"
#include "gen.h"
#include "ladder.h"
#include "scene.h"

#define LENS(...) ((const int32_t[]){__VA_ARGS__})

static inline fd_scene make(int32_t batch, int32_t heads_q, int32_t heads_kv, int32_t dim, int64_t capacity,
                            int32_t dtype, const int32_t *kv_lens)
{
    const fd_scene_shape shape = {batch, heads_q, heads_kv, dim, dim, capacity, dtype, kv_lens};
    fd_scene scene;
    char why[200];
    cr_assert_eq(fd_scene_create(&scene, &shape, why, sizeof why), FD_OK, "%s", why);
    return scene;
}

static inline void judge(const fd_scene *scene, const char *name)
{
    const fd_libm_error libm = fd_libm_error_get("/nonexistent/libm_error.csv"); /* assumed, the same everywhere */
    const fd_rounding rounding = fd_host_rounding(&libm);
    char why[300] = "";
    cr_assert_eq(fd_scene_judge(scene, &rounding, why, sizeof why), FD_OK, "%s: %s", name, why);
}

static inline void finish(fd_scene *scene, const char *name)
{
    judge(scene, name);
    fd_scene_free(scene);
}

/* x of row [b, h], or of a key's row, at all dimensions or at one. */
static inline void set_q(fd_scene *s, float value)
{
    const fd_problem *p = &s->problem;
    for (int64_t row = 0; row < (int64_t)p->batch * p->heads_q; row++) {
        const int64_t at = fd_row_at(&p->q, (int32_t)(row / p->heads_q), 0, (int32_t)(row % p->heads_q));
        for (int32_t i = 0; i < p->head_dim; i++) {
            fd_store(&p->q, at + i * p->q.stride[3], value);
        }
    }
}

static inline void set_row(const fd_scene *s, const fd_tensor *x, int32_t b, int64_t j, float value)
{
    for (int32_t h = 0; h < s->problem.heads_kv; h++) {
        const int64_t at = fd_kv_at(&s->problem, x, b, j, h);
        const int32_t dim = x == &s->problem.k ? s->problem.head_dim : s->problem.head_dim_v;
        for (int32_t i = 0; i < dim; i++) {
            fd_store(x, at + i * x->stride[3], value);
        }
    }
}

static inline void set_visible(fd_scene *s, const fd_tensor *x, float value)
{
    for (int32_t b = 0; b < s->problem.batch; b++) {
        for (int64_t j = 0; j < fd_kv_len(&s->problem, b); j++) {
            set_row(s, x, b, j, value);
        }
    }
}

static inline void want_all(fd_scene *s, float value)
{
    for (int64_t i = 0; i < s->o_rows; i++) {
        s->want[i] = value;
    }
}

/* Key j of row b takes all weight: q is 1 in dimension 0, all other keys have logit -256. o must be v_j, bit for bit. */
static inline void select_key(fd_scene *s, int32_t b, int64_t j)
{
    const fd_problem *p = &s->problem;
    for (int32_t h = 0; h < p->heads_q; h++) {
        const int64_t at = fd_row_at(&p->q, b, 0, h), row = (int64_t)b * p->heads_q + h;
        for (int32_t i = 0; i < p->head_dim; i++) {
            fd_store(&p->q, at + i * p->q.stride[3], i == 0 ? 1.0f : 0.0f);
        }
        for (int32_t i = 0; i < p->head_dim_v; i++) {
            s->want[row * p->head_dim_v + i] =
                fd_load(&p->v, fd_kv_at(p, &p->v, b, j, h / fd_group(p)) + i * p->v.stride[3]);
        }
    }
    for (int64_t k = 0; k < fd_kv_len(p, b); k++) {
        for (int32_t h = 0; h < p->heads_kv; h++) {
            fd_store(&p->k, fd_kv_at(p, &p->k, b, k, h), k == j ? 0.0f : -256.0f);
        }
    }
}

static const int32_t all_dtypes[] = {FD_F32, FD_F16, FD_BF16};

/* Random numbers in all dtypes, judged by the bound. */
static inline void judge_random(int32_t batch, int32_t heads_q, int32_t heads_kv, int32_t dim, int64_t capacity,
                                const int32_t *kv_lens, const char *name)
{
    for (int d = 0; d < 3; d++) {
        fd_scene s = make(batch, heads_q, heads_kv, dim, capacity, all_dtypes[d], kv_lens);
        s.problem.sm_scale = 0.25f;
        fd_scene_fill(&s, 7, 1.0f, 1.0f, 1.0f);
        finish(&s, name);
    }
}

/* A CUDA rung may refuse a dtype or a head_dim; a rung of the host takes all of these. */
static inline bool takes(const fd_scene *s, const fd_rung *rung)
{
    char why[200];
    const fd_status status = fd_supports_here(rung, &s->problem, why, sizeof why);
    cr_assert(status == FD_OK || (status == FD_UNSUPPORTED && !fd_runs_on_host(rung)), "%s", why);
    return status == FD_OK;
}

#endif /* FD_BUG_SCENE_H */
