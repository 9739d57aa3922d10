/* observe_stretch.h: times in which a multiprocessor has at least one block, from the times of the blocks. */
#ifndef FD_OBSERVE_STRETCH_H
#define FD_OBSERVE_STRETCH_H

#include <stdint.h>

typedef struct fd_stretch {
    int32_t sm, blocks; /* so many blocks in it */
    int64_t start, end; /* nanoseconds */
} fd_stretch;

typedef struct fd_stretch_sum {
    int sms;                  /* that have a stretch */
    int64_t busy, start, end; /* the lengths of all stretches; from the first to the last */
} fd_stretch_sum;

/* In order of multiprocessor, then of start. */
void fd_stretch_sort(fd_stretch *x, int64_t count);

/* Joins those of one multiprocessor that overlap or touch, in place; x is sorted, and stays so. Returns how many are left. */
int64_t fd_stretch_join(fd_stretch *x, int64_t count);

/* Of sorted, joined stretches; count is at least 1. */
fd_stretch_sum fd_stretch_total(const fd_stretch *x, int64_t count);

/* What divides all starts and ends: the step of the clock that told them. 0: all are 0. */
int64_t fd_stretch_step(const fd_stretch *x, int64_t count);

#endif /* FD_OBSERVE_STRETCH_H */
