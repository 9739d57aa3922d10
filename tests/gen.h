/* gen.h: the generator. Counter-based integers, tables, exact powers of two, and + - * / sqrt without contraction:
 * no libm, so a case has the same bits with every compiler and on every processor. An element depends on the seed
 * and its logical index (tensor, b, j, h, i) only, never on strides or on the order of generation. */
#ifndef FD_GEN_H
#define FD_GEN_H

#include <stdbool.h>

#include "cases.h"

/* The 64 random bits of counter `index` in stream `stream` of `seed` (the splitmix64 finaliser, twice). */
uint64_t fd_random_bits(uint64_t seed, uint64_t stream, uint64_t index);

/* Near-normal float of that counter: (popcount of 64 bits - 32, plus a uniform fraction in (-1/2, 1/2)) / 4. An
 * exact odd multiple of 2^-20, never 0; mean 0, variance 1 + 1/192, |x| < 8.125. */
float fd_random_normal(uint64_t seed, uint64_t stream, uint64_t index);

/* The float sm_scale of a case: 1 / sqrt(head_dim) rounded once, unless the family fixes another. */
float fd_gen_sm_scale(const fd_case *c);

/* Is there such a family, with this argument, and does it have the case's shape and dtypes? FD_OK, or FD_INVALID with
 * one line in why. Reads no file. */
fd_status fd_gen_check(const fd_case *c, char *why, size_t n);

/* Writes the visible elements of q, k and v (host tensors of `problem`, any strides), rounded to their dtypes.
 * FD_OK, or FD_INVALID with one line in why (unknown family, bad argument, unreadable file). */
fd_status fd_gen_fill(const fd_case *c, const fd_problem *problem, char *why, size_t n);

/* Tier 1: the exact answer of row [b, t, h], where the family has one that any correct kernel must return bit for bit:
 * one whose weights and partials are fp32 and whose merges divide (exp(lse_c - lse) is not exact). A row that
 * sees no key has the answer 0 in every family. A mean has one only if the row sees a power of two of keys, and the
 * problem requests a split that is one too, or that holds them all. Depends on no stride or stored element of `problem`.
 * Fills o [head_dim_v], before rounding to dtype_o (exactly representable in fp32); false if there is none. */
bool fd_gen_exact(const fd_case *c, const fd_problem *problem, int32_t b, int32_t t, int32_t h, float *o);

/* Are the logits and values of the case drawn at random, so that their roundings may be taken as independent (tier 3)? */
bool fd_gen_random_family(const fd_case *c);

/* 64-bit FNV-1a over the stored bytes of the visible elements of q, k and v, in logical order. */
uint64_t fd_gen_hash(const fd_problem *problem);

#endif /* FD_GEN_H */
