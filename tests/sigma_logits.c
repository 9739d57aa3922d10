/* sigma_logits.c: how far the dot products are off, whatever the claims. */
#include <math.h>

#include "row.h"
#include "sigma_parts.h"

#define LANES 4 /* keys whose dot products advance together: the sums of one key depend on each other */

/* Sums of (q_i k_i)^2, and of the squares of all prefix sums but the first, of LANES keys; and of the sizes of those
 * that an instruction of FD_SIGMA_MMA_DIMS products would begin with. */
static void dot_squares(const double *q, const float *const k[LANES], int32_t n, double products[LANES],
                        double prefixes[LANES], double chains[LANES])
{
    double sum[LANES] = {0.0};
    for (int x = 0; x < LANES; x++) {
        sum[x] = q[0] * (double)k[x][0];
        products[x] = sum[x] * sum[x];
        prefixes[x] = chains[x] = 0.0;
    }
    for (int32_t i = 1; i < n; i++) {
        for (int x = 0; x < LANES && i % FD_SIGMA_MMA_DIMS == 0; x++) {
            chains[x] += fabs(sum[x]);
        }
        for (int x = 0; x < LANES; x++) {
            const double product = q[i] * (double)k[x][i];
            sum[x] += product;
            products[x] += product * product;
            prefixes[x] += sum[x] * sum[x];
        }
    }
}

static int significand_bits(int32_t dtype)
{
    return dtype == FD_F16 ? 11 : dtype == FD_BF16 ? 8 : 24;
}

void fd_sigma_logits(const fd_problem *p, int32_t b, int32_t t, int32_t h, const fd_oracle_row *row, fd_sigma *sigma)
{
    const int32_t h_kv = h / fd_group(p);
    const double scale = (double)p->sm_scale;
    const bool products_exact = significand_bits(p->q.dtype) + significand_bits(p->k.dtype) <= 24;
    int exponent;
    const bool scale_exact = fabs(frexp(scale, &exponent)) == 0.5 || scale == 0.0;
    float row_q[FD_HEAD_DIM_MAX], rows[LANES][FD_HEAD_DIM_MAX];
    double q[FD_HEAD_DIM_MAX];

    fd_load_q(p, b, t, h, row_q);
    for (int32_t i = 0; i < p->head_dim; i++) {
        q[i] = (double)row_q[i];
    }
    for (int64_t j = 0; j < row->kv_len; j += LANES) {
        const int64_t keys = row->kv_len - j < LANES ? row->kv_len - j : LANES;
        const float *k[LANES];
        double products[LANES], prefixes[LANES], chains[LANES];
        for (int x = 0; x < LANES; x++) {
            k[x] = rows[x < keys ? x : 0];
            if (x < keys) {
                fd_load_k(p, b, j + x, h_kv, rows[x]);
            }
        }
        dot_squares(q, k, p->head_dim, products, prefixes, chains);
        for (int64_t x = 0; x < keys; x++) {
            const double s = row->s_max - row->gap[j + x];
            sigma->logit[j + x] =
                scale * scale * ((products_exact ? 0.0 : products[x]) + prefixes[x]) + (scale_exact ? 0.0 : s * s);
            sigma->chain[j + x] = fabs(scale) * chains[x];
        }
    }
}
