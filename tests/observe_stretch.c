/* observe_stretch.c: see observe_stretch.h. */
#include "observe_stretch.h"

#include <stddef.h>
#include <stdlib.h>

static int by_sm_and_start(const void *a, const void *b)
{
    const fd_stretch *x = (const fd_stretch *)a, *y = (const fd_stretch *)b;
    if (x->sm != y->sm) {
        return x->sm < y->sm ? -1 : 1;
    }
    return x->start < y->start ? -1 : x->start > y->start;
}

void fd_stretch_sort(fd_stretch *x, int64_t count)
{
    qsort(x, (size_t)count, sizeof *x, by_sm_and_start);
}

int64_t fd_stretch_join(fd_stretch *x, int64_t count)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++) {
        fd_stretch *last = kept > 0 ? &x[kept - 1] : NULL;
        if (last != NULL && last->sm == x[i].sm && x[i].start <= last->end) {
            last->end = x[i].end > last->end ? x[i].end : last->end;
            last->blocks += x[i].blocks;
        } else {
            x[kept++] = x[i];
        }
    }
    return kept;
}

fd_stretch_sum fd_stretch_total(const fd_stretch *x, int64_t count)
{
    fd_stretch_sum sum = {0, 0, INT64_MAX, INT64_MIN};
    for (int64_t i = 0; i < count; i++) {
        sum.sms += i == 0 || x[i].sm != x[i - 1].sm;
        sum.busy += x[i].end - x[i].start;
        sum.start = x[i].start < sum.start ? x[i].start : sum.start;
        sum.end = x[i].end > sum.end ? x[i].end : sum.end;
    }
    return sum;
}

int64_t fd_stretch_step(const fd_stretch *x, int64_t count)
{
    int64_t step = 0;
    for (int64_t i = 0; i < 2 * count; i++) {
        int64_t a = i % 2 == 0 ? x[i / 2].start : x[i / 2].end;
        while (a != 0) { /* the greatest common divisor */
            const int64_t b = step % a;
            step = a;
            a = b;
        }
    }
    return step;
}
