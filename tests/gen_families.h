/* gen_families.h: what gen.c, gen_exact.c, gen_families.c, gen_numerics.c and gen_places.c share: random numbers of a
 * stream, and the shape of a family. */
#ifndef FD_GEN_FAMILIES_H
#define FD_GEN_FAMILIES_H

#include <math.h>
#include <stdbool.h>

#include "cases.h"
#include "safetensors.h"

#define FD_GEN_HEAD_DIM_MAX 1024 /* floats of one row on the stack */

#define FD_SCALE_ZERO HUGE_VALF /* of fd_family.sm_scale, where 0 means that the family fixes none */

enum fd_stream { FD_STREAM_Q = 1, FD_STREAM_K, FD_STREAM_V };

typedef struct fd_gen fd_gen;

/* One family with one argument. Rows come out as floats, before rounding to the tensor's dtype. */
typedef struct fd_family {
    const char *name, *argument;
    void (*q)(const fd_gen *g, int32_t b, int32_t h, float *row /* [head_dim] */);
    void (*k)(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row /* [head_dim] */);
    void (*v)(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row /* [head_dim_v] */);
    bool (*exact)(const fd_gen *g, const fd_problem *problem, int32_t b, int32_t h, float *o); /* NULL: none */
    fd_status (*check)(const fd_case *c, char *why, size_t n);                                 /* NULL: any shape */
    const char *file;                                                                          /* below FD_DATA */
    float sm_scale;     /* 0: 1 / sqrt(head_dim); FD_SCALE_ZERO: 0 */
    float q_factor;     /* of q, for peaky */
    float q_all, k_all; /* every component, where a family fixes q or k */
    float q_0, k_0;     /* component 0, where a family fixes that one */
    int32_t number;     /* whatever one argument of a family has to tell another */
    int64_t (*place)(const fd_gen *g, int32_t b,
                     int32_t h_kv); /* the selected key; NULL: the ends of cache and splits */
    bool random;                    /* fd_gen_random_family() */
} fd_family;

/* A case made ready: streams keyed, the file of the family read. */
struct fd_gen {
    const fd_case *c;
    const fd_family *family;
    uint64_t key_q, key_k, key_v;
    float sm_scale;
    int32_t t; /* the query row that q() and exact() are asked about */
    fd_safetensors file;
    const float *file_q, *file_k, *file_v;
};

/* The entry of a family and argument. FD_INVALID, with one line in why that lists what there is. */
fd_status fd_family_find(const char *name, const char *argument, const fd_family **family, char *why, size_t n);

/* The families of gen_numerics.c and gen_places.c. */
extern const fd_family fd_numeric_families[], fd_place_families[];
extern const int fd_numeric_family_count, fd_place_family_count;

/* What the table in gen_families.c is made of. Random rows: */
void fd_normal_q(const fd_gen *g, int32_t b, int32_t h, float *row);
void fd_normal_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row);
void fd_normal_v(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row);

/* Random but for component 0: */
void fd_fixed_0_q(const fd_gen *g, int32_t b, int32_t h, float *row);
void fd_fixed_0_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row);

/* Rows and answers of gen_exact.c: */
void fd_integer_v(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row);
void fd_ones_v(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row);
void fd_flat_q(const fd_gen *g, int32_t b, int32_t h, float *row);
void fd_flat_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row);
bool fd_mean_exact(const fd_gen *g, const fd_problem *problem, int32_t b, int32_t h, float *o);
void fd_selector_q(const fd_gen *g, int32_t b, int32_t h, float *row);
void fd_selector_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row);
void fd_selector_four_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row);
bool fd_selector_exact(const fd_gen *g, const fd_problem *problem, int32_t b, int32_t h, float *o);
bool fd_selector_four_exact(const fd_gen *g, const fd_problem *problem, int32_t b, int32_t h, float *o);

static inline uint64_t fd_mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

#define FD_GOLDEN_GAMMA 0x9e3779b97f4a7c15u /* 2^64 / golden ratio, odd: the step of splitmix64 */

static inline uint64_t fd_stream_key(uint64_t seed, uint64_t stream)
{
    return fd_mix(seed + FD_GOLDEN_GAMMA * (stream + 1));
}

static inline uint64_t fd_bits_at(uint64_t key, uint64_t index)
{
    return fd_mix(key + FD_GOLDEN_GAMMA * (index + 1));
}

static inline uint32_t fd_popcount(uint64_t x)
{
    x -= x >> 1 & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (uint32_t)(x * 0x0101010101010101u >> 56);
}

/* All in integers, in units of 2^-20, so that nothing can be contracted or rounded: 2^18 (popcount - 32), plus an odd
 * number below 2^17 in magnitude. The fraction takes the top bits of a product, which mix all 64. */
static inline float fd_normal_at(uint64_t key, uint64_t index)
{
    const uint64_t bits = fd_bits_at(key, index);
    const int32_t whole = ((int32_t)fd_popcount(bits) - 32) * 262144;
    const int32_t fraction = (int32_t)((bits * 0xd1342543de82ef95u) >> 47) * 2 + 1 - 131072;
    return (float)(whole + fraction) * 0x1p-20f;
}

/* Index of element [b, t, h, 0] of q. Row 0 comes first, for the whole batch: it is the same for any q_len. */
static inline uint64_t fd_first_q(const fd_gen *g, int32_t b, int32_t h)
{
    const uint64_t sequence = (uint64_t)g->t * (uint64_t)g->c->batch + (uint64_t)b;
    return (sequence * (uint64_t)g->c->heads_q + (uint64_t)h) * (uint64_t)g->c->head_dim;
}

/* Index of element [b, j, h_kv, 0] of k or v, whose rows have dim elements. */
static inline uint64_t fd_first_kv(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, int32_t dim)
{
    const uint64_t token = (uint64_t)b * (uint64_t)g->c->kv_len + (uint64_t)j;
    return (token * (uint64_t)g->c->heads_kv + (uint64_t)h_kv) * (uint64_t)dim;
}

static inline void fd_fill_row(float value, int32_t n, float *row)
{
    for (int32_t i = 0; i < n; i++) {
        row[i] = value;
    }
}

/* One index for each (b, j, h_kv). */
static inline uint64_t fd_token_at(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv)
{
    return fd_first_kv(g, b, j, h_kv, 1);
}

static inline void fd_scale_row(float factor, int32_t n, float *row)
{
    for (int32_t i = 0; i < n; i++) {
        row[i] *= factor;
    }
}

#endif /* FD_GEN_FAMILIES_H */
