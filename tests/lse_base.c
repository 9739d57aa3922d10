/* lse_base.c: see lse_base.h. Two bases differ by a factor of 1.44, and so by far more than any error worth judging:
 * double precision is exact enough to tell them apart. */
#include "lse_base.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define LOG2_E 1.4426950408889634
#define LN_2 0.6931471805599453

/* An lse this close to one of the two values is taken for it. */
#define NEAR_ABSOLUTE 0x1p-6
#define NEAR_RELATIVE 0x1p-8

static double logit(const fd_problem *p, int32_t b, int32_t t, int32_t h, int64_t j)
{
    const int64_t q = fd_row_at(&p->q, b, t, h), k = fd_kv_at(p, &p->k, b, j, h / fd_group(p));
    double sum = 0.0;
    for (int32_t i = 0; i < p->head_dim; i++) {
        sum += (double)fd_load(&p->q, q + i * p->q.stride[3]) * (double)fd_load(&p->k, k + i * p->k.stride[3]);
    }
    return sum * (double)p->sm_scale;
}

static double lse_of(const fd_problem *p, int32_t b, int32_t t, int32_t h)
{
    const int64_t kv_len = fd_visible_end(p, b, t);
    double m = -HUGE_VAL, l = 0.0;
    for (int64_t j = 0; j < kv_len; j++) {
        const double s = logit(p, b, t, h, j);
        l = s > m ? l * exp(m - s) + 1.0 : l + exp(s - m);
        m = s > m ? s : m;
    }
    return m + log(l);
}

/* 1: natural, 2: base 2, 0: neither, or both. */
static int base_of(double x, double natural)
{
    const double near = NEAR_ABSOLUTE + NEAR_RELATIVE * fabs(natural);
    if (!(fabs(natural) * (LOG2_E - 1.0) > 4.0 * near)) {
        return 0;
    }
    return fabs(x - natural) <= near ? 1 : fabs(x - natural * LOG2_E) <= near * LOG2_E ? 2 : 0;
}

fd_status fd_lse_recognise(const fd_instance *instance, const int32_t *sequences, float *lse, fd_lse_found *found)
{
    const fd_problem *p = &instance->problem;
    const int64_t rows = fd_row_count(p);
    int64_t first[3] = {-1, -1, -1}, empty = 0, plus = 0;
    unsigned char *base = calloc((size_t)rows + 1, 1);
    *found = (fd_lse_found){.base_2 = false};
    if (base == NULL) {
        return FD_NO_MEMORY;
    }
#pragma omp parallel for schedule(dynamic, 1)
    for (int64_t row = 0; row < rows; row++) {
        int32_t b, t, h;
        fd_row_of_index(p, row, &b, &t, &h);
        if (fd_visible_end(p, b, t) > 0) {
            base[row] = (unsigned char)base_of((double)lse[row], lse_of(p, b, t, h));
        }
    }
    for (int64_t row = rows - 1; row >= 0; row--) {
        int32_t b, t, h;
        fd_row_of_index(p, row, &b, &t, &h);
        first[base[row]] = row;
        if (fd_visible_end(p, b, t) == 0) {
            empty++;
            plus += lse[row] == HUGE_VALF;
        }
    }
    free(base);
    found->mixed = first[1] >= 0 && first[2] >= 0;
    found->base_2 = first[1] < 0 && first[2] >= 0;
    found->plus_infinity = empty > 0 && plus == empty;
    if (found->mixed) {
        int32_t at[2][3];
        for (int x = 0; x < 2; x++) {
            fd_row_of_index(p, first[1 + x], &at[x][0], &at[x][1], &at[x][2]);
            at[x][0] = sequences != NULL ? sequences[at[x][0]] : at[x][0];
        }
        snprintf(found->mix, sizeof found->mix,
                 "lse is natural in row b=%d t=%d h=%d, and in base 2 in row b=%d t=%d h=%d", at[0][0], at[0][1],
                 at[0][2], at[1][0], at[1][1], at[1][2]);
    }
    for (int64_t row = 0; row < rows; row++) {
        int32_t b, t, h;
        fd_row_of_index(p, row, &b, &t, &h);
        if (fd_visible_end(p, b, t) == 0) {
            lse[row] = found->plus_infinity ? -HUGE_VALF : lse[row];
        } else if (found->base_2) {
            lse[row] = (float)((double)lse[row] * LN_2);
        }
    }
    return FD_OK;
}
