/* gen_places.c: families that single out a key, a channel or a magnitude: needles, sinks, outliers, the ends of the range. */
#include <stdio.h>

#include "gen_families.h"

/* ---- needle: one key stands out, at a place that walks through the cache with the KV head and the batch row, so that
 * kv_len heads see every place. Catches a fault at any single position. every: logit 16; every-exact: the others have
 * logit -256 and no weight. ---- */

static int64_t walking_place(const fd_gen *g, int32_t b, int32_t h_kv)
{
    return ((int64_t)b * g->c->heads_kv + h_kv) % g->c->kv_lens[b];
}

static void needle_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    fd_normal_k(g, b, j, h_kv, row);
    row[0] = j == walking_place(g, b, h_kv) ? g->family->k_0 : 0.0f;
}

/* ---- sink: the first key takes almost all weight, and its values are small, as in trained models. Catches a first key
 * or tile that is skipped, and an error measured against max |v|. ---- */

static void sink_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    fd_normal_k(g, b, j, h_kv, row);
    row[0] = j == 0 ? g->family->k_0 : 0.0f;
}

static void sink_v(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    fd_normal_v(g, b, j, h_kv, row);
    if (j == 0) {
        fd_scale_row(0x1p-6f, g->c->head_dim_v, row);
    }
}

/* ---- outlier: one channel of k, or of q and k, is 50 times as large, as in trained models. Catches a dot product that
 * loses the other channels, or leaves out that one; and 16-bit logits. ---- */

static int32_t outlier_channel(const fd_gen *g, int32_t h_kv)
{
    return (7 * h_kv + 3) % g->c->head_dim;
}

static void outlier_q(const fd_gen *g, int32_t b, int32_t h, float *row)
{
    fd_normal_q(g, b, h, row);
    row[outlier_channel(g, h / (g->c->heads_q / g->c->heads_kv))] *= 50.0f;
}

static void outlier_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    fd_normal_k(g, b, j, h_kv, row);
    row[outlier_channel(g, h_kv)] *= 50.0f;
}

/* 2^exponent, -126 .. 127. */
static float power(int32_t exponent)
{
    return fd_float_from_bits((uint32_t)(exponent + 127) << 23);
}

/* ---- magnitude: values at the ends of the range. 2^-126 and 2^-140: catches subnormals that are flushed, the second
 * mostly by its exact form; 2^-20, and k-2^-18 for k: the same for fp16, whose normal numbers end at 2^-14; huge, near 10^37:
 * a sum that overflows although the inputs allow it; mixed: each key has a scale of its own, 2^-60 .. 2^60. ---- */

/* Is it meant for fp16? */
static bool for_fp16(const fd_case *c)
{
    return strcmp(c->argument, "2^-20") == 0 || strcmp(c->argument, "k-2^-18") == 0;
}

static fd_status magnitude_check(const fd_case *c, char *why, size_t n)
{
    const bool tiny = strncmp(c->argument, "2^-140", 6) == 0; /* 0 in bf16 */
    if (for_fp16(c)) {
        return FD_OK;
    }
    if (c->dtype_kv == FD_F16 || c->dtype_o == FD_F16 || (tiny && (c->dtype_kv != FD_F32 || c->dtype_o != FD_F32))) {
        snprintf(why, n, "family magnitude:%s does not fit: v and o must be %s", c->argument,
                 tiny ? "fp32" : "fp32 or bf16");
        return FD_INVALID;
    }
    return FD_OK;
}

static void scaled_v(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    fd_normal_v(g, b, j, h_kv, row);
    fd_scale_row(power(g->family->number / 2), g->c->head_dim_v, row); /* exact; the second rounds once, below 2^-126 */
    fd_scale_row(power(g->family->number - g->family->number / 2), g->c->head_dim_v, row);
}

/* Logits near 1 all the same: q_factor 2^12 and sm_scale 8. */
static void scaled_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    fd_normal_k(g, b, j, h_kv, row);
    fd_scale_row(power(g->family->number), g->c->head_dim, row);
}

static void loud_q(const fd_gen *g, int32_t b, int32_t h, float *row)
{
    fd_normal_q(g, b, h, row);
    fd_scale_row(g->family->q_factor, g->c->head_dim, row);
}

static void scaled_integer_v(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    fd_integer_v(g, b, j, h_kv, row);
    fd_scale_row(power(-70), g->c->head_dim_v, row);
    fd_scale_row(power(-70), g->c->head_dim_v, row);
}

static bool scaled_mean_exact(const fd_gen *g, const fd_problem *problem, int32_t b, int32_t h, float *o)
{
    return fd_case_visible(g->c, b, g->t) <= 512 &&
           fd_mean_exact(g, problem, b, h, o); /* multiples of 2^-149 up to there */
}

static void mixed_v(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    fd_normal_v(g, b, j, h_kv, row);
    const uint64_t bits = fd_bits_at(g->key_v, fd_token_at(g, b, j, h_kv));
    fd_scale_row(power((int32_t)(bits % 121) - 60), g->c->head_dim_v, row);
}

/* ---- The table ---- */

#define EIGHTH .sm_scale = 0.125f

const fd_family fd_place_families[] = {
    {.name = "needle",
     .argument = "every",
     .q = fd_fixed_0_q,
     .k = needle_k,
     .v = fd_normal_v,
     EIGHTH,
     .q_0 = 8.0f,
     .k_0 = 16.0f},
    {.name = "needle",
     .argument = "every-exact",
     .q = fd_selector_q,
     .k = fd_selector_k,
     .v = fd_normal_v,
     .exact = fd_selector_exact,
     .place = walking_place,
     EIGHTH},
    {.name = "sink", .argument = "", .q = fd_fixed_0_q, .k = sink_k, .v = sink_v, EIGHTH, .q_0 = 8.0f, .k_0 = 14.0f},
    {.name = "outlier", .argument = "k", .q = fd_normal_q, .k = outlier_k, .v = fd_normal_v},
    {.name = "outlier", .argument = "qk", .q = outlier_q, .k = outlier_k, .v = fd_normal_v},
    {.name = "magnitude",
     .argument = "2^-126",
     .q = fd_normal_q,
     .k = fd_normal_k,
     .v = scaled_v,
     .check = magnitude_check,
     .number = -126},
    {.name = "magnitude",
     .argument = "2^-140",
     .q = fd_normal_q,
     .k = fd_normal_k,
     .v = scaled_v,
     .check = magnitude_check,
     .number = -140},
    {.name = "magnitude",
     .argument = "2^-140-flat",
     .q = fd_flat_q,
     .k = fd_normal_k,
     .v = scaled_integer_v,
     .exact = scaled_mean_exact,
     .check = magnitude_check},
    {.name = "magnitude",
     .argument = "2^-20",
     .q = fd_normal_q,
     .k = fd_normal_k,
     .v = scaled_v,
     .check = magnitude_check,
     .number = -20},
    {.name = "magnitude",
     .argument = "k-2^-18",
     .q = loud_q,
     .k = scaled_k,
     .v = fd_normal_v,
     .check = magnitude_check,
     .sm_scale = 8.0f,
     .q_factor = 0x1p12f,
     .number = -18},
    {.name = "magnitude",
     .argument = "huge",
     .q = fd_normal_q,
     .k = fd_normal_k,
     .v = scaled_v,
     .check = magnitude_check,
     .number = 121},
    {.name = "magnitude",
     .argument = "mixed",
     .q = fd_normal_q,
     .k = fd_normal_k,
     .v = mixed_v,
     .check = magnitude_check},
};
const int fd_place_family_count = sizeof fd_place_families / sizeof *fd_place_families;
