/* rules_references.c: what published rules compare with.
 *
 * Truth      attention in double precision, from the inputs as stored: what a suite's fp64 or fp32 reference stands
 * for. Yardstick  attention as a framework's plain operations compute it in the inputs' type T (FlashAttention's
 * attention_ref with upcast=False, reorder_ops=True; PyTorch's and FlexAttention's differ by when they scale): keys
 * times sm_scale, logits, weights and output are each rounded to T; inside an operation sums are fp32, in 16
 *            interleaved lanes added pairwise, as BLAS has them. In fp32, T rounds nothing more. lse is fp32. */
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

static void logits(const fd_problem *p, int32_t b, int32_t t, int32_t h, int64_t kv_len, const scratch *w, double *m,
                   float *m_low)
{
    float q[FD_HEAD_DIM_MAX], k[FD_HEAD_DIM_MAX];
    const int32_t h_kv = h / fd_group(p), type = p->k.dtype;
    *m = -HUGE_VAL;
    *m_low = -INFINITY;
    fd_load_q(p, b, t, h, q);
    for (int64_t j = 0; j < kv_len; j++) {
        double sum = 0.0;
        fd_load_k(p, b, j, h_kv, k);
        for (int32_t i = 0; i < p->head_dim; i++) {
            sum += (double)q[i] * (double)k[i];
            k[i] = rounded(k[i] * p->sm_scale, type);
        }
        w->s[j] = (double)p->sm_scale * sum;
        w->s_low[j] = rounded(dot_lanes(q, k, p->head_dim), type);
        *m = fmax(*m, w->s[j]);
        *m_low = fmaxf(*m_low, w->s_low[j]);
    }
}

/* Weights in place of logits, and their sums: those of the truth not divided yet, those of the yardstick divided. */
static double weights(int64_t kv_len, const scratch *w, double m, float m_low, int32_t type, float *l_low)
{
    double l = 0.0;
    float lane[LANES] = {0.0f};
    for (int64_t j = 0; j < kv_len; j++) {
        w->s[j] = exp(w->s[j] - m);
        w->s_low[j] = expf(w->s_low[j] - m_low);
        l += w->s[j];
        lane[j % LANES] += w->s_low[j];
    }
    *l_low = add_lanes(lane);
    for (int64_t j = 0; j < kv_len; j++) {
        w->s_low[j] = rounded(w->s_low[j] / *l_low, type);
    }
    return l;
}

static void compute_row(const fd_problem *p, int32_t b, int32_t t, int32_t h, const scratch *w, fd_rule_references *out)
{
    const int64_t kv_len = fd_visible_end(p, b, t), row = fd_row_index(p, b, t, h);
    const int32_t dims = p->head_dim_v, type = p->k.dtype;
    double *o = out->o + row * dims, m;
    float v[FD_HEAD_DIM_MAX], *low = out->o_low + row * dims, m_low, l_low;
    if (kv_len == 0) {
        out->lse[row] = -HUGE_VAL;
        out->lse_stored[row] = out->lse_low[row] = -INFINITY;
        return;
    }
    logits(p, b, t, h, kv_len, w, &m, &m_low);
    const double l = weights(kv_len, w, m, m_low, type, &l_low);
    memset(w->o_low, 0, (size_t)LANES * (size_t)dims * sizeof *w->o_low);
    for (int64_t j = 0; j < kv_len; j++) {
        float *lane = w->o_low + j % LANES * dims;
        fd_load_v(p, b, j, h / fd_group(p), v);
        for (int32_t i = 0; i < dims; i++) {
            o[i] += w->s[j] * (double)v[i];
            lane[i] += w->s_low[j] * v[i];
        }
    }
    for (int32_t i = 0; i < dims; i++) {
        float lane[LANES];
        for (int x = 0; x < LANES; x++) {
            lane[x] = w->o_low[x * dims + i];
        }
        o[i] /= l;
        low[i] = rounded(add_lanes(lane), p->o.dtype);
        out->o_stored[row * dims + i] = rounded((float)o[i], p->o.dtype);
    }
    out->lse[row] = m + log(l);
    out->lse_stored[row] = (float)out->lse[row];
    out->lse_low[row] = m_low + logf(l_low);
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
    double *storage = calloc(2 * elements + 2 * rows + 1, sizeof *storage);
    const scratch w = {.s = calloc(keys, sizeof(double)),
                       .s_low = calloc(keys, sizeof(float)),
                       .o_low = calloc((size_t)LANES * (size_t)p->head_dim_v, sizeof(float))};
    fd_status status = storage != NULL && w.s != NULL && w.s_low != NULL && w.o_low != NULL ? FD_OK : FD_NO_MEMORY;
    if (status == FD_OK) {
        out->o = storage;
        out->lse = storage + elements;
        out->o_stored = (float *)(void *)(storage + elements + rows);
        out->o_low = out->o_stored + elements;
        out->lse_stored = out->o_low + elements;
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
