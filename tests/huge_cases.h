/* huge_cases.h: what `flashdecode huge` and its tests run: small, and different in dtype, group, masks and paths of a rung. */
#ifndef FD_HUGE_CASES_H
#define FD_HUGE_CASES_H

#include "huge.h"

extern const fd_case fd_huge_cases[];
extern const int fd_huge_case_count;

/* For a GPU: a cache of more than 2^31 elements, and states or logits of more than that. */
extern const fd_huge_dense_shape fd_huge_denses[];
extern const int fd_huge_dense_count;

/* Does the case have more than one element along the axis, and is there anything to learn? */
bool fd_huge_has_axis(const fd_case *c, enum fd_huge_axis axis);

#endif /* FD_HUGE_CASES_H */
