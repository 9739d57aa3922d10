/* merge.h: plugin.h with a right merge(), which merge_*.c spoil: all parts at once, weights exp(lse - largest lse). */
#ifndef FD_TEST_MERGE_H
#define FD_TEST_MERGE_H

#include <math.h>
#include <stdbool.h>

#include "fd.h"

#ifndef WEIGHT
#define WEIGHT(x) expf(x)
#endif
#ifndef NO_KEYS /* of no part: true for a row that is empty */
#define NO_KEYS(m) ((m) == -INFINITY)
#endif
#ifndef PART_AT /* whose strides lead to a part's row */
#define PART_AT(part, own) (part)
#endif
#ifndef WANTS_LSE
#define WANTS_LSE(p) ((p)->lse.data != NULL)
#endif
#ifndef COUNT
#define COUNT(n) (n)
#endif
#ifndef LAST
#define LAST(n) (n)
#endif

static fd_status merge(const fd_problem *p, int32_t n, const fd_tensor *part_o, const fd_tensor *part_lse,
                       const fd_context *c)
{
    (void)c;
    for (int32_t row = 0; row < p->batch * p->heads_q; row++) {
        const int32_t b = row / p->heads_q, h = row % p->heads_q;
        float m = -INFINITY, l = 0.0f, lse[16];
        for (int32_t part = 0; part < COUNT(LAST(n)); part++) {
            lse[part] = fd_load(&part_lse[part], fd_row_at(PART_AT(&part_lse[part], &p->lse), b, 0, h));
            m = fmaxf(m, lse[part]);
        }
        for (int32_t part = 0; part < COUNT(n); part++) {
            l += NO_KEYS(m) ? 0.0f : WEIGHT(lse[part] - m);
        }
        for (int32_t i = 0; i < p->head_dim_v; i++) {
            float sum = 0.0f;
            for (int32_t part = 0; part < COUNT(n); part++) {
                const float o = fd_load(&part_o[part], fd_row_at(PART_AT(&part_o[part], &p->o), b, 0, h) + i);
                sum += NO_KEYS(m) ? 0.0f : WEIGHT(lse[part] - m) * o;
            }
            fd_store(&p->o, fd_row_at(&p->o, b, 0, h) + i, NO_KEYS(m) ? 0.0f : sum / l);
        }
        if (WANTS_LSE(p)) {
            fd_store(&p->lse, fd_row_at(&p->lse, b, 0, h), NO_KEYS(m) ? -INFINITY : m + logf(l));
        }
    }
    return FD_OK;
}

#define FIELDS .merge = merge
#include "plugin.h"

#endif /* FD_TEST_MERGE_H */
