/* metamorph_contract.h: second instances with the same numbers, asked for in another way that fd.h allows: lengths that plan()
 * does not know, or nobody gives; tensors that lie otherwise in memory. */
#ifndef FD_METAMORPH_CONTRACT_H
#define FD_METAMORPH_CONTRACT_H

#include "metamorph.h"

/* kv_lens_host are upper bounds: 70 keys above the longest sequence, or absent, which means kv_capacity. */
int32_t fd_bounds_variants(const fd_instance *x);
fd_status fd_loosen_bounds(const fd_instance *x, int32_t variant, fd_instance *y, char *why, size_t n);

/* The longest sequence alone, in a cache that is full: no kv_lens, neither for run() nor for plan(). */
int32_t fd_full_variants(const fd_instance *x);
fd_status fd_fill_cache(const fd_instance *x, int32_t variant, fd_instance *y, char *why, size_t n);
bool fd_full_image(const fd_instance *x, int32_t variant, int32_t b, int32_t t, int32_t h, fd_image *image);

/* Every tensor with its outer dimensions in another order, padded; then with rows that begin anywhere; then, for who takes
 * FD_STRIDED_DIM, with a gap behind each element. */
int32_t fd_layout_variants(const fd_instance *x);
fd_status fd_lay_otherwise(const fd_instance *x, int32_t variant, fd_instance *y, char *why, size_t n);

/* Head stride 0: all KV heads are one, and every group asks what group 0 asks. */
int32_t fd_broadcast_variants(const fd_instance *x);
fd_status fd_broadcast_heads(const fd_instance *x, int32_t variant, fd_instance *y, char *why, size_t n);
bool fd_broadcast_image(const fd_instance *x, int32_t variant, int32_t b, int32_t t, int32_t h, fd_image *image);

#endif /* FD_METAMORPH_CONTRACT_H */
