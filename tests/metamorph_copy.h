/* metamorph_copy.h: what second instances are made of: an instance of another shape, and rows copied into it. */
#ifndef FD_METAMORPH_COPY_H
#define FD_METAMORPH_COPY_H

#include "instance.h"

/* All query rows [from_b, from_h] of x's q become rows [b, h] of y's; token from_j of KV head from_h becomes token j of h_kv. */
void fd_copy_q(fd_instance *y, int32_t b, int32_t h, const fd_instance *x, int32_t from_b, int32_t from_h);
void fd_copy_kv(fd_instance *y, int32_t b, int64_t j, int32_t h_kv, const fd_instance *x, int32_t from_b,
                int64_t from_j, int32_t from_h);

/* Sequence from_b of x, q and its visible tokens, becomes sequence b of y. */
void fd_copy_sequence(fd_instance *y, int32_t b, const fd_instance *x, int32_t from_b);

/* An instance of x's shape but for the batch and the lengths, with x's sm_scale and split, and other numbers. */
fd_status fd_reshape(const fd_instance *x, int32_t batch, const int32_t *kv_lens, fd_instance *y, char *why, size_t n);

/* The same numbers, in memory of their own. */
fd_status fd_clone(const fd_instance *x, fd_instance *y, char *why, size_t n);

#endif /* FD_METAMORPH_COPY_H */
