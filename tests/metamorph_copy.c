#include "metamorph_copy.h"

#include <stdio.h>

static void copy_row(const fd_tensor *to, int64_t to_at, const fd_tensor *from, int64_t from_at, int32_t dim)
{
    for (int32_t i = 0; i < dim; i++) {
        fd_store(to, to_at + i * to->stride[3], fd_load(from, from_at + i * from->stride[3]));
    }
}

void fd_copy_q(fd_instance *y, int32_t b, int32_t h, const fd_instance *x, int32_t from_b, int32_t from_h)
{
    for (int32_t t = 0; t < x->c.q_len; t++) {
        copy_row(&y->problem.q, fd_row_at(&y->problem.q, b, t, h), &x->problem.q,
                 fd_row_at(&x->problem.q, from_b, t, from_h), x->c.head_dim);
    }
}

void fd_copy_kv(fd_instance *y, int32_t b, int64_t j, int32_t h_kv, const fd_instance *x, int32_t from_b,
                int64_t from_j, int32_t from_h)
{
    const fd_problem *to = &y->problem, *from = &x->problem;
    copy_row(&to->k, fd_kv_at(to, &to->k, b, j, h_kv), &from->k, fd_kv_at(from, &from->k, from_b, from_j, from_h),
             from->head_dim);
    copy_row(&to->v, fd_kv_at(to, &to->v, b, j, h_kv), &from->v, fd_kv_at(from, &from->v, from_b, from_j, from_h),
             from->head_dim_v);
}

void fd_copy_sequence(fd_instance *y, int32_t b, const fd_instance *x, int32_t from_b)
{
    for (int32_t h = 0; h < x->c.heads_q; h++) {
        fd_copy_q(y, b, h, x, from_b, h);
    }
    for (int64_t j = 0; j < x->c.kv_lens[from_b]; j++) {
        for (int32_t h = 0; h < x->c.heads_kv; h++) {
            fd_copy_kv(y, b, j, h, x, from_b, j, h);
        }
    }
}

fd_status fd_reshape(const fd_instance *x, int32_t batch, const int32_t *kv_lens, fd_instance *y, char *why, size_t n)
{
    fd_case c = x->c;
    snprintf(c.family, sizeof c.family, "gaussian");
    c.argument[0] = '\0';
    c.batch = batch;
    c.kv_len = 0;
    for (int32_t b = 0; b < batch; b++) {
        c.kv_lens[b] = kv_lens[b];
        c.kv_len = kv_lens[b] > c.kv_len ? kv_lens[b] : c.kv_len;
    }
    const fd_status status = fd_instance_create(y, &c, why, n);
    if (status == FD_OK) {
        y->problem.sm_scale = x->problem.sm_scale;
    }
    return status;
}

fd_status fd_clone(const fd_instance *x, fd_instance *y, char *why, size_t n)
{
    const fd_status status = fd_reshape(x, x->c.batch, x->c.kv_lens, y, why, n);
    for (int32_t b = 0; b < x->c.batch && status == FD_OK; b++) {
        fd_copy_sequence(y, b, x, b);
    }
    return status;
}
