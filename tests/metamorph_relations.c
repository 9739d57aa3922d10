/* metamorph_relations.c: the relations: what each promises, and its second instances. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "metamorph.h"
#include "metamorph_contract.h"
#include "metamorph_copy.h"

static int32_t one(const fd_instance *x)
{
    (void)x;
    return 1;
}

static int32_t two(const fd_instance *x)
{
    (void)x;
    return 2;
}

/* Of what moves keys: a mask would follow the place, not the key. */
static int32_t two_unmasked(const fd_instance *x)
{
    return x->c.causal ? 0 : 2;
}

/* ---- Twice, splits, batch ---- */

static fd_status again(const fd_instance *x, int32_t variant, fd_instance *y, char *why, size_t n)
{
    (void)variant;
    return fd_clone(x, y, why, n);
}

static const struct {
    int32_t num_splits;
    int64_t split_size;
} cuts[] = {{1, 0}, {3, 0}, {64, 0}, {0, 1}, {0, 5}, {0, 1 << 20}};

static int32_t cut_variants(const fd_instance *x)
{
    (void)x;
    return sizeof cuts / sizeof *cuts;
}

static fd_status cut(const fd_instance *x, int32_t variant, fd_instance *y, char *why, size_t n)
{
    const fd_status status = fd_clone(x, y, why, n);
    y->problem.num_splits_request = cuts[variant].num_splits;
    y->problem.split_size_request = cuts[variant].split_size;
    return status;
}

/* More than there are cores, and numbers that no row, head or split count divides by. */
static const int32_t thread_counts[] = {1, 2, 3, 7};

static int32_t thread_variants(const fd_instance *x)
{
    (void)x;
    return sizeof thread_counts / sizeof *thread_counts;
}

static int32_t threads_of(int32_t variant)
{
    return thread_counts[variant];
}

static int32_t alone_variants(const fd_instance *x)
{
    return x->c.batch > 1 ? x->c.batch : 0;
}

static fd_status alone(const fd_instance *x, int32_t variant, fd_instance *y, char *why, size_t n)
{
    const fd_status status = fd_reshape(x, 1, &x->c.kv_lens[variant], y, why, n);
    if (status == FD_OK) {
        fd_copy_sequence(y, 0, x, variant);
    }
    return status;
}

static bool alone_image(const fd_instance *x, int32_t variant, int32_t b, int32_t t, int32_t h, fd_image *image)
{
    (void)x, (void)t, (void)h;
    image->b = 0;
    return b == variant;
}

/* ---- V times 2^4 and 2^-4 ---- */

static const float v_factors[] = {16.0f, 0.0625f};

static fd_status scale_v(const fd_instance *x, int32_t variant, fd_instance *y, char *why, size_t n)
{
    const fd_status status = fd_clone(x, y, why, n);
    const fd_problem *p = &y->problem;
    for (int32_t b = 0; b < x->c.batch && status == FD_OK; b++) {
        for (int64_t j = 0; j < x->c.kv_lens[b]; j++) {
            for (int32_t h = 0; h < x->c.heads_kv; h++) {
                for (int32_t i = 0; i < p->head_dim_v; i++) {
                    const int64_t at = fd_kv_at(p, &p->v, b, j, h) + i * p->v.stride[3];
                    const float v = fd_load(&p->v, at), scaled = v * v_factors[variant];
                    fd_store(&p->v, at, scaled);
                    if (!(fabsf(v) < 0x1p100f) || fd_load(&p->v, at) / v_factors[variant] != v) {
                        snprintf(why, n, "v times a power of two does not fit its dtype");
                        fd_instance_free(y);
                        return FD_UNSUPPORTED;
                    }
                }
            }
        }
    }
    return status;
}

static bool scaled_image(const fd_instance *x, int32_t variant, int32_t b, int32_t t, int32_t h, fd_image *image)
{
    (void)x, (void)b, (void)t, (void)h;
    image->o_scale = v_factors[variant];
    return true;
}

/* ---- One vector added to all keys ---- */

static float added(int32_t i)
{
    return (float)(i * 5 % 7 - 3);
}

static fd_status add_to_keys(const fd_instance *x, int32_t variant, fd_instance *y, char *why, size_t n)
{
    (void)variant;
    const fd_status status = fd_clone(x, y, why, n);
    const fd_problem *p = &y->problem;
    for (int32_t b = 0; b < x->c.batch && status == FD_OK; b++) {
        for (int64_t j = 0; j < x->c.kv_lens[b]; j++) {
            for (int32_t h = 0; h < x->c.heads_kv; h++) {
                for (int32_t i = 0; i < p->head_dim; i++) {
                    const int64_t at = fd_kv_at(p, &p->k, b, j, h) + i * p->k.stride[3];
                    const double sum = (double)fd_load(&p->k, at) + (double)added(i);
                    fd_store(&p->k, at, (float)sum);
                    if ((double)fd_load(&p->k, at) != sum) {
                        snprintf(why, n, "a key plus the vector is no number of its dtype");
                        fd_instance_free(y);
                        return FD_UNSUPPORTED;
                    }
                }
            }
        }
    }
    return status;
}

static bool added_image(const fd_instance *x, int32_t variant, int32_t b, int32_t t, int32_t h, fd_image *image)
{
    (void)variant;
    const fd_problem *p = &x->problem;
    double sum = 0.0;
    for (int32_t i = 0; i < p->head_dim; i++) {
        sum += (double)fd_load(&p->q, fd_row_at(&p->q, b, t, h) + i * p->q.stride[3]) * (double)added(i);
    }
    image->lse_shift = sum * (double)p->sm_scale;
    return true;
}

/* ---- Every token twice; tokens in another order; tokens behind the end ---- */

static fd_status duplicate(const fd_instance *x, int32_t variant, fd_instance *y, char *why, size_t n)
{
    int32_t kv_lens[FD_CASE_BATCH_MAX];
    for (int32_t b = 0; b < x->c.batch; b++) {
        kv_lens[b] = 2 * x->c.kv_lens[b];
    }
    const fd_status status = fd_reshape(x, x->c.batch, kv_lens, y, why, n);
    for (int32_t b = 0; b < x->c.batch && status == FD_OK; b++) {
        for (int32_t h = 0; h < x->c.heads_q; h++) {
            fd_copy_q(y, b, h, x, b, h);
        }
        for (int64_t j = 0; j < kv_lens[b]; j++) {
            for (int32_t h = 0; h < x->c.heads_kv; h++) {
                fd_copy_kv(y, b, j, h, x, b, variant == 0 ? j / 2 : j % x->c.kv_lens[b], h);
            }
        }
    }
    return status;
}

static bool duplicated_image(const fd_instance *x, int32_t variant, int32_t b, int32_t t, int32_t h, fd_image *image)
{
    (void)variant, (void)t, (void)h;
    image->lse_shift = x->c.kv_lens[b] > 0 ? 0x1.62e42fefa39efp-1 : 0.0; /* ln 2 */
    return true;
}

/* Backwards, or with a stride that meets every token. */
static int64_t permuted(int64_t j, int64_t n, int32_t variant)
{
    int64_t stride = 1;
    for (int64_t a = n / 3 + 1, g; variant == 1 && stride == 1 && a < n; a++) {
        int64_t b = n;
        for (g = a; b != 0;) {
            const int64_t rest = g % b;
            g = b;
            b = rest;
        }
        stride = g == 1 ? a : 1;
    }
    return variant == 0 ? n - 1 - j : (j * stride + n / 2) % n;
}

static fd_status permute(const fd_instance *x, int32_t variant, fd_instance *y, char *why, size_t n)
{
    const fd_status status = fd_clone(x, y, why, n);
    for (int32_t b = 0; b < x->c.batch && status == FD_OK; b++) {
        for (int64_t j = 0; j < x->c.kv_lens[b]; j++) {
            for (int32_t h = 0; h < x->c.heads_kv; h++) {
                fd_copy_kv(y, b, permuted(j, x->c.kv_lens[b], variant), h, x, b, j, h);
            }
        }
    }
    return status;
}

/* Behind the end: copies of real tokens with values of 100, which nothing marks as invalid. */
static fd_status append(const fd_instance *x, int32_t variant, fd_instance *y, char *why, size_t n)
{
    (void)variant;
    int32_t kv_lens[FD_CASE_BATCH_MAX];
    for (int32_t b = 0; b < x->c.batch; b++) {
        kv_lens[b] = x->c.kv_len + 70;
    }
    const fd_status status = fd_reshape(x, x->c.batch, kv_lens, y, why, n);
    fd_problem *p = &y->problem;
    for (int32_t b = 0; b < x->c.batch && status == FD_OK; b++) {
        for (int32_t h = 0; h < x->c.heads_q; h++) {
            fd_copy_q(y, b, h, x, b, h);
        }
        for (int64_t j = 0; j < kv_lens[b] && x->c.kv_lens[b] > 0; j++) {
            for (int32_t h = 0; h < x->c.heads_kv; h++) {
                fd_copy_kv(y, b, j, h, x, b, j % x->c.kv_lens[b], h);
                for (int32_t i = 0; i < p->head_dim_v && j >= x->c.kv_lens[b]; i++) {
                    fd_store(&p->v, fd_kv_at(p, &p->v, b, j, h) + i, 100.0f);
                }
            }
        }
        /* What run() and plan() see is short; y->c keeps the long ones, so that no poison replaces these tokens. */
        ((int32_t *)p->kv_lens.data)[b] = x->c.kv_lens[b];
        ((int32_t *)(void *)y->kv_lens.data)[b] = x->c.kv_lens[b];
    }
    return status;
}

/* ---- Heads in another order: KV heads rotated, the query heads of a group backwards ---- */

static bool rotated_image(const fd_instance *x, int32_t variant, int32_t b, int32_t t, int32_t h, fd_image *image)
{
    (void)variant, (void)b, (void)t;
    const int32_t group = x->c.heads_q / x->c.heads_kv;
    image->h = (h / group + 1) % x->c.heads_kv * group + (group - 1 - h % group);
    return true;
}

static int32_t rotate_variants(const fd_instance *x)
{
    return x->c.heads_q > 1 ? 1 : 0;
}

static fd_status rotate(const fd_instance *x, int32_t variant, fd_instance *y, char *why, size_t n)
{
    const fd_status status = fd_clone(x, y, why, n);
    for (int32_t b = 0; b < x->c.batch && status == FD_OK; b++) {
        for (int32_t h = 0; h < x->c.heads_q; h++) {
            fd_image image = {b, 0, h, 1.0f, 0.0};
            rotated_image(x, variant, b, 0, h, &image);
            fd_copy_q(y, b, image.h, x, b, h);
        }
        for (int64_t j = 0; j < x->c.kv_lens[b]; j++) {
            for (int32_t h = 0; h < x->c.heads_kv; h++) {
                fd_copy_kv(y, b, j, (h + 1) % x->c.heads_kv, x, b, j, h);
            }
        }
    }
    return status;
}

/* ---- Containment: one KV head of one sequence, or the first query row of one head, broken; under a mask also the last
 * key alone, which earlier query rows do not see: 0 times its NaN is none of theirs ---- */

enum { NAN_IN_K, INF_IN_V, LARGEST_IN_K, LARGEST_IN_V, NAN_IN_Q, LARGEST_IN_Q, NAN_IN_LAST_K, INF_IN_LAST_V, BREAKS };

/* The place: the first KV head of the first sequence that has keys, or the last of the last. */
static void broken_place(const fd_instance *x, int32_t variant, int32_t *b, int32_t *h_kv)
{
    const bool last = variant >= BREAKS;
    *b = last ? x->c.batch - 1 : 0;
    while (x->c.kv_lens[*b] == 0 && *b + (last ? -1 : 1) >= 0 && *b + (last ? -1 : 1) < x->c.batch) {
        *b += last ? -1 : 1;
    }
    *h_kv = last ? x->c.heads_kv - 1 : 0;
}

static bool untouched_image(const fd_instance *x, int32_t variant, int32_t b, int32_t t, int32_t h, fd_image *image)
{
    (void)image;
    int32_t broken_b, broken_h;
    broken_place(x, variant, &broken_b, &broken_h);
    const int32_t group = x->c.heads_q / x->c.heads_kv, what = variant % BREAKS;
    const bool in_q = what == NAN_IN_Q || what == LARGEST_IN_Q;
    const bool sees = what < NAN_IN_LAST_K || fd_visible_end(&x->problem, b, t) == x->c.kv_lens[b];
    return !(b == broken_b && (in_q ? t == 0 && h == broken_h * group : h / group == broken_h && sees));
}

static int32_t break_variants(const fd_instance *x)
{
    return fd_row_count(&x->problem) > 1 ? 2 * BREAKS : 0;
}

static float largest_of(int32_t dtype)
{
    return dtype == FD_F16 ? 65504.0f : dtype == FD_BF16 ? 0x1.fep127f : 0x1.fffffep127f;
}

static fd_status break_one(const fd_instance *x, int32_t variant, fd_instance *y, char *why, size_t n)
{
    if (variant % BREAKS >= NAN_IN_LAST_K && !x->c.causal) {
        snprintf(why, n, "every row sees the last key");
        return FD_UNSUPPORTED;
    }
    const fd_status status = fd_clone(x, y, why, n);
    if (status != FD_OK) {
        return status;
    }
    const fd_problem *p = &y->problem;
    int32_t b, h_kv;
    broken_place(x, variant, &b, &h_kv);
    const int32_t what = variant % BREAKS;
    const bool in_q = what == NAN_IN_Q || what == LARGEST_IN_Q;
    const bool in_v = what == INF_IN_V || what == LARGEST_IN_V || what == INF_IN_LAST_V;
    const fd_tensor *tensor = in_q ? &p->q : in_v ? &p->v : &p->k;
    const float value = what == NAN_IN_K || what == NAN_IN_Q || what == NAN_IN_LAST_K ? NAN
                        : what == INF_IN_V || what == INF_IN_LAST_V                   ? INFINITY
                                                                                      : largest_of(tensor->dtype);
    const int32_t dim = in_v ? p->head_dim_v : p->head_dim;
    const int64_t keys = in_q ? 1 : x->c.kv_lens[b];
    for (int64_t j = what >= NAN_IN_LAST_K ? keys - 1 : 0; j < keys; j++) {
        const int64_t at = in_q ? fd_row_at(tensor, b, 0, h_kv * fd_group(p)) : fd_kv_at(p, tensor, b, j, h_kv);
        for (int32_t i = 0; i < dim; i++) {
            fd_store(tensor, at + i * tensor->stride[3], value);
        }
    }
    return FD_OK;
}

/* ---- The table ---- */

const fd_relation fd_relations[] = {
    {"twice", "the same call again: the same bits", FD_SAME_BITS, true, one, again, NULL, 0, NULL},
    {"splits", "other split requests: the same answer", FD_SAME_BITS_IF_CUT_ALIKE, true, cut_variants, cut, NULL,
     FD_INV_SPLITS, NULL},
    {"threads", "1, 2, 3 and 7 threads: the same answer", FD_SAME_BITS_IF_CUT_ALIKE, true, thread_variants, again, NULL,
     FD_INV_THREADS, threads_of},
    {"batch-of-one", "a sequence alone: as in its batch", FD_SAME_BITS_IF_CUT_ALIKE, true, alone_variants, alone,
     alone_image, FD_INV_BATCH, NULL},
    {"scaled-v", "v times 16, or 1/16: o times that, bit for bit", FD_SAME_BITS, false, two, scale_v, scaled_image, 0,
     NULL},
    {"shifted-keys", "a vector added to all keys: the same o, lse shifted by q.c sm_scale", FD_WITHIN_BOUNDS, false,
     one, add_to_keys, added_image, 0, NULL},
    {"duplicated", "every token twice: the same o, lse + ln 2", FD_WITHIN_BOUNDS, false, two_unmasked, duplicate,
     duplicated_image, 0, NULL},
    {"permuted-keys", "tokens in another order: the same answer", FD_WITHIN_BOUNDS, false, two_unmasked, permute, NULL,
     0, NULL},
    {"appended", "real tokens behind kv_len: the same bits", FD_SAME_BITS, true, one, append, NULL, 0, NULL},
    {"permuted-heads", "heads in another order: the rows in that order, bit for bit", FD_SAME_BITS, true,
     rotate_variants, rotate, rotated_image, 0, NULL},
    {"containment", "NaN, infinity or overflow in one row: the bits of every other row stay", FD_SAME_BITS, true,
     break_variants, break_one, untouched_image, 0, NULL},
    {"loose-bounds", "kv_lens_host above kv_lens, or absent: the same answer", FD_SAME_BITS_IF_CUT_ALIKE, true,
     fd_bounds_variants, fd_loosen_bounds, NULL, 0, NULL},
    {"full-cache", "no kv_lens, a cache that is full: the same answer", FD_SAME_BITS_IF_CUT_ALIKE, true,
     fd_full_variants, fd_fill_cache, fd_full_image, 0, NULL},
    {"other-strides", "the same numbers elsewhere in memory: the same answer", FD_WITHIN_BOUNDS, true,
     fd_layout_variants, fd_lay_otherwise, NULL, 0, NULL},
    {"one-kv-head", "heads of k and v with stride 0: the same answer", FD_WITHIN_BOUNDS, true, fd_broadcast_variants,
     fd_broadcast_heads, fd_broadcast_image, 0, NULL},
};
const int fd_relation_count = sizeof fd_relations / sizeof *fd_relations;
