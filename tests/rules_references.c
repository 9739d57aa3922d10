/* rules_references.c: what published rules compare with.
 *
 * Truth      attention in double precision, from the inputs as stored: what a suite's fp64 or fp32 reference stands for.
 * Yardstick  attention as a framework's plain operations compute it in the inputs' type T (FlashAttention's attention_ref
 *            with upcast=False, reorder_ops=True; FlexAttention's differs by when it scales): keys times sm_scale, logits,
 *            weights and output are each rounded to T; inside an operation sums are fp32, in 16 interleaved lanes added
 *            pairwise, as BLAS has them. lse is fp32.
 * Math       the same in fp32 throughout, and only the output rounded: PyTorch's math backend, which has widened 16-bit
 *            inputs since pull request 128922. Where the inputs are fp32, it is the yardstick. */
#include "rules.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "instance.h"
#include "row.h"

#define LANES 16

/* x as dtype denotes it. */
static float rounded(float x, int32_t dtype)
{
    return dtype == FD_F16    ? fd_float_from_f16(fd_f16_from_float(x))
           : dtype == FD_BF16 ? fd_float_from_bf16(fd_bf16_from_float(x))
                              : x;
}

static float add_lanes(float lane[LANES])
{
    for (int width = LANES / 2; width > 0; width /= 2) {
        for (int i = 0; i < width; i++) {
            lane[i] += lane[i + width];
        }
    }
    return lane[0];
}

static float dot_lanes(const float *x, const float *y, int32_t n)
{
    float lane[LANES] = {0.0f};
    for (int32_t i = 0; i < n; i++) {
        lane[i % LANES] += x[i] * y[i];
    }
    return add_lanes(lane);
}

typedef struct scratch { /* of one row */
    double *s;           /* [kv_len] logits, then weights */
    float *s_low;        /* [kv_len] */
    float *o_low;        /* [LANES, head_dim_v] */
} scratch;

static void truth(const fd_problem *p, int32_t b, int32_t t, int32_t h, int64_t kv_len, double *s, double *o,
                  double *lse)
{
    float q[FD_HEAD_DIM_MAX], row[FD_HEAD_DIM_MAX];
    const int32_t h_kv = h / fd_group(p);
    double m = -HUGE_VAL, l = 0.0;
    fd_load_q(p, b, t, h, q);
    for (int64_t j = 0; j < kv_len; j++) {
        double sum = 0.0;
        fd_load_k(p, b, j, h_kv, row);
        for (int32_t i = 0; i < p->head_dim; i++) {
            sum += (double)q[i] * (double)row[i];
        }
        s[j] = (double)p->sm_scale * sum;
        m = fmax(m, s[j]);
    }
    for (int64_t j = 0; j < kv_len; j++) {
        s[j] = exp(s[j] - m);
        l += s[j];
        fd_load_v(p, b, j, h_kv, row);
        for (int32_t i = 0; i < p->head_dim_v; i++) {
            o[i] += s[j] * (double)row[i];
        }
    }
    for (int32_t i = 0; i < p->head_dim_v; i++) {
        o[i] /= l;
    }
    *lse = m + log(l);
}

/* Ordinary attention whose operations return numbers of `type`. */
static void ordinary(const fd_problem *p, int32_t b, int32_t t, int32_t h, int64_t kv_len, int32_t type,
                     const scratch *w, float *o, float *lse)
{
    float q[FD_HEAD_DIM_MAX], row[FD_HEAD_DIM_MAX], lane[LANES] = {0.0f}, m = -INFINITY;
    const int32_t h_kv = h / fd_group(p), dims = p->head_dim_v;
    fd_load_q(p, b, t, h, q);
    for (int64_t j = 0; j < kv_len; j++) {
        fd_load_k(p, b, j, h_kv, row);
        for (int32_t i = 0; i < p->head_dim; i++) {
            row[i] = rounded(row[i] * p->sm_scale, type);
        }
        w->s_low[j] = rounded(dot_lanes(q, row, p->head_dim), type);
        m = fmaxf(m, w->s_low[j]);
    }
    for (int64_t j = 0; j < kv_len; j++) {
        w->s_low[j] = expf(w->s_low[j] - m);
        lane[j % LANES] += w->s_low[j];
    }
    const float l = add_lanes(lane);
    *lse = m + logf(l);

    memset(w->o_low, 0, (size_t)LANES * (size_t)dims * sizeof *w->o_low);
    for (int64_t j = 0; j < kv_len; j++) {
        const float weight = rounded(w->s_low[j] / l, type);
        float *sums = w->o_low + j % LANES * dims;
        fd_load_v(p, b, j, h_kv, row);
        for (int32_t i = 0; i < dims; i++) {
            sums[i] += weight * row[i];
        }
    }
    for (int32_t i = 0; i < dims; i++) {
        for (int x = 0; x < LANES; x++) {
            lane[x] = w->o_low[x * dims + i];
        }
        o[i] = rounded(add_lanes(lane), p->o.dtype);
    }
}

static void compute_row(const fd_problem *p, int32_t b, int32_t t, int32_t h, const scratch *w, fd_rule_references *out)
{
    const int64_t kv_len = fd_visible_end(p, b, t), row = fd_row_index(p, b, t, h), at = row * p->head_dim_v;
    if (kv_len == 0) {
        out->lse[row] = -HUGE_VAL;
        out->lse_stored[row] = out->lse_low[row] = -INFINITY;
        return;
    }
    truth(p, b, t, h, kv_len, w->s, out->o + at, &out->lse[row]);
    out->lse_stored[row] = (float)out->lse[row];
    for (int32_t i = 0; i < p->head_dim_v; i++) {
        out->o_stored[at + i] = rounded((float)out->o[at + i], p->o.dtype);
    }
    float lse_math;
    ordinary(p, b, t, h, kv_len, p->k.dtype, w, out->o_low + at, &out->lse_low[row]);
    if (p->k.dtype == FD_F32) {
        memcpy(out->o_math + at, out->o_low + at, (size_t)p->head_dim_v * sizeof(float));
    } else {
        ordinary(p, b, t, h, kv_len, FD_F32, w, out->o_math + at, &lse_math);
    }
}

fd_status fd_rule_references_create(const fd_problem *p, fd_rule_references *out, char *why, size_t n)
{
    *out = (fd_rule_references){.rows = fd_row_count(p)};
    const uint32_t features =
        FD_LSE | FD_RAGGED | FD_HEAD_DIM_V | FD_STRIDED_DIM | FD_MULTI_QUERY | (p->window_left < 0 ? FD_WINDOW : 0u);
    if (p->head_dim > FD_HEAD_DIM_MAX || p->head_dim_v > FD_HEAD_DIM_MAX || (p->features & ~features) != 0) {
        snprintf(why, n, "published rules are compared on a dense cache without window_left only");
        return FD_UNSUPPORTED;
    }
    out->elements = out->rows * p->head_dim_v;
    const size_t elements = (size_t)out->elements, rows = (size_t)out->rows, keys = (size_t)p->kv_capacity + 1;
    double *storage = calloc(elements + (3 * elements + 1) / 2 + 2 * rows + 1, sizeof *storage);
    const scratch w = {.s = calloc(keys, sizeof(double)),
                       .s_low = calloc(keys, sizeof(float)),
                       .o_low = calloc((size_t)LANES * (size_t)p->head_dim_v, sizeof(float))};
    fd_status status = storage != NULL && w.s != NULL && w.s_low != NULL && w.o_low != NULL ? FD_OK : FD_NO_MEMORY;
    if (status == FD_OK) {
        out->o = storage;
        out->lse = storage + elements;
        out->o_stored = (float *)(void *)(storage + elements + rows);
        out->o_low = out->o_stored + elements;
        out->o_math = out->o_low + elements;
        out->lse_stored = out->o_math + elements;
        out->lse_low = out->lse_stored + rows;
        out->storage = storage;
        for (int64_t r = 0; r < out->rows; r++) {
            int32_t b, t, h;
            fd_row_of_index(p, r, &b, &t, &h);
            compute_row(p, b, t, h, &w, out);
        }
    } else {
        snprintf(why, n, "no memory for the references of %zu outputs", elements);
        free(storage);
    }
    free(w.s);
    free(w.s_low);
    free(w.o_low);
    return status;
}

void fd_rule_references_free(fd_rule_references *references)
{
    free(references->storage);
    *references = (fd_rule_references){.rows = 0};
}
