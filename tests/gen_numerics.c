/* gen_numerics.c: the families aimed at one rounding or one sum: cancellation, ties, ramps, offsets, worst
 * cases of sums and dot products, the counterexamples that shaped the bound. */
#include <math.h>
#include <stdio.h>

#include "gen_families.h"

/* ---- cancel: the values of equal keys cancel, so that o is 0, or 2^-10 of the gauge. Catches a judge that divides by
 * |o|, and a sum that loses its end. pairs: neighbours; near: from both ends of the cache, in different splits. ---- */

/* The first key of j's pair; j itself if it has no partner. */
static int64_t first_of_pair(const fd_gen *g, int32_t b, int64_t j)
{
    const int64_t mirrored = g->c->kv_lens[b] - 1 - j;
    return g->family->number == 0 ? j - j % 2 : mirrored < j ? mirrored : j;
}

static void cancel_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    fd_normal_k(g, b, first_of_pair(g, b, j), h_kv, row);
}

static void cancel_v(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    const int64_t n = g->c->kv_lens[b], first = first_of_pair(g, b, j);
    const bool near = g->family->number != 0, alone = near ? j == n - 1 - j : j == first && j == n - 1;
    fd_normal_v(g, b, first, h_kv, row);
    if (alone) {
        fd_fill_row(0.0f, g->c->head_dim_v, row);
    } else if (j != first) {
        fd_scale_row(near ? -1.0f + 0x1p-10f : -1.0f, g->c->head_dim_v, row);
    }
}

/* ---- tied: a third of the keys share the largest logit, and all values are positive. Catches biased rounding of 16-bit
 * weights, which are exactly 1 here (Qiu and Yao), and a maximum that is taken as unique. ---- */

static void positive_v(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    fd_normal_v(g, b, j, h_kv, row);
    for (int32_t i = 0; i < g->c->head_dim_v; i++) {
        row[i] = fabsf(row[i]) + 0.5f;
    }
}

static void tied_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    const bool top = j == 0 || fd_bits_at(g->key_k, fd_token_at(g, b, j, h_kv)) % 3 == 0;
    fd_normal_k(g, b, top ? 0 : j, h_kv, row);
    row[0] = top ? 12.0f : 0.0f; /* times q_0 = 8, times sm_scale = 1/8 */
}

/* ---- ramp: logits from -80 to 0 or back, otherwise alike. Ascending, every key raises the running maximum: catches a
 * rescale lost, doubled or late, and a count of rescales that is too low. Descending, none does. ---- */

static void ramp_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    const int64_t n = g->c->kv_lens[b], below = g->family->number == 0 ? n - 1 - j : j;
    fd_normal_k(g, b, 0, h_kv, row);
    row[0] = (float)(-80 * below) / (float)(n > 1 ? n - 1 : 1);
}

/* ---- adversarial: an fp32 sum that rounds the same way at every step. Catches a pass line with sqrt(n) in place of n.
 * v: values 1 + 2^-11 - 2^-23 in a sequential sum. dot: keys just above and just below a rounding boundary of the sum of
 * head_dim ones, values 1 and -1. ---- */

static fd_status fp32_kv_check(const fd_case *c, char *why, size_t n)
{
    if (c->dtype_kv != FD_F32) {
        snprintf(why, n, "family %s:%s needs k and v in fp32", c->family, c->argument);
        return FD_INVALID;
    }
    return FD_OK;
}

static void adversarial_v(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    (void)b, (void)j, (void)h_kv;
    fd_fill_row(1.0f + 0x1p-11f - 0x1p-23f, g->c->head_dim_v, row);
}

static void adversarial_dot_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    (void)b, (void)h_kv;
    fd_fill_row(j % 2 == 0 ? 1.0f + 0x1p-18f - 0x1p-23f : 1.0f + 0x1p-18f + 0x1p-23f, g->c->head_dim, row);
}

static void alternating_v(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    (void)b, (void)h_kv;
    fd_fill_row(j % 2 == 0 ? 1.0f : -1.0f, g->c->head_dim_v, row);
}

/* ---- counterexample: inputs on which an earlier form of the bound was false. Catch its return.
 * underflow: logits 0 and -104, values 0 and 1: the weight of the only value underflows.
 * alpha-l: behind a split of zeros, splits whose fl(exp(m_s - m) l_s) is off by half the least subnormal, and huge v.
 * lse: a product of 2^27 in the dot product, for an lse bound that took the mean of an exponent's error. ---- */

static fd_status counterexample_check(const fd_case *c, char *why, size_t n)
{
    const bool lse = strcmp(c->argument, "lse") == 0, alpha_l = strcmp(c->argument, "alpha-l") == 0;
    bool fits = c->dtype_q == FD_F32 && c->dtype_kv == FD_F32 && c->dtype_o == FD_F32 && c->head_dim == (lse ? 2 : 1) &&
                c->head_dim_v == 1;
    for (int32_t b = 0; b < c->batch && fits; b++) {
        fits = alpha_l ? c->kv_lens[b] >= 2 && c->kv_lens[b] <= 1000000 : c->kv_lens[b] == 2;
    }
    if (!fits) {
        snprintf(why, n, "family counterexample:%s needs dtypes fff, head_dim %s and kv_len %s", c->argument,
                 lse ? "2/1" : "1", alpha_l ? "2 .. 1000000" : "2");
        return FD_INVALID;
    }
    return FD_OK;
}

static void underflow_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    (void)g, (void)b, (void)h_kv;
    row[0] = j == 0 ? 0.0f : -104.0f;
}

static void second_v(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    (void)g, (void)b, (void)h_kv;
    row[0] = j == 0 ? 0.0f : 1.0f;
}

static void alpha_l_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    (void)g, (void)b, (void)h_kv;
    row[0] = j == 0 ? 0.0f : j == 1 ? -300.0f : j % 2 == 0 ? -103.97138f : -104.66453f;
}

static void alpha_l_v(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    (void)g, (void)b, (void)h_kv;
    row[0] = j < 2 ? 0.0f : 1e30f;
}

static void lse_q(const fd_gen *g, int32_t b, int32_t h, float *row)
{
    (void)g, (void)b, (void)h;
    row[0] = 12888.609375f;
    row[1] = 1.0f;
}

static void lse_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    (void)g, (void)b, (void)h_kv;
    row[0] = j == 0 ? 0.0f : 12572.1982421875f;
    row[1] = j == 0 ? 0.0f : -162038160.0f;
}

/* ---- The table ---- */

#define EIGHTH .sm_scale = 0.125f

const fd_family fd_numeric_families[] = {
    {.name = "cancel", .argument = "pairs", .q = fd_normal_q, .k = cancel_k, .v = cancel_v},
    {.name = "cancel", .argument = "near", .q = fd_normal_q, .k = cancel_k, .v = cancel_v, .number = 1},
    {.name = "tied", .argument = "", .q = fd_fixed_0_q, .k = tied_k, .v = positive_v, EIGHTH, .q_0 = 8.0f},
    {.name = "ramp", .argument = "ascending", .q = fd_fixed_0_q, .k = ramp_k, .v = fd_normal_v, EIGHTH, .q_0 = 8.0f},
    {.name = "ramp",
     .argument = "descending",
     .q = fd_fixed_0_q,
     .k = ramp_k,
     .v = fd_normal_v,
     EIGHTH,
     .q_0 = 8.0f,
     .number = 1},
    /* offset: all logits near 3584; the dot product loses three digits in every rung, and the bound follows. The flat one
     * has 4096 head_dim sm_scale, 46341 at head_dim 128, and an exact answer. Catch exp without a shift. */
    {.name = "offset",
     .argument = "3584",
     .q = fd_fixed_0_q,
     .k = fd_fixed_0_k,
     .v = fd_normal_v,
     EIGHTH,
     .q_0 = 64.0f,
     .k_0 = 448.0f},
    {.name = "offset",
     .argument = "46000-flat",
     .q = fd_flat_q,
     .k = fd_flat_k,
     .v = fd_integer_v,
     .exact = fd_mean_exact,
     .q_all = 64.0f,
     .k_all = 64.0f},
    /* 741455 at head_dim 128: catches logits clamped to what fp16 holds, which lse shows. */
    {.name = "offset",
     .argument = "740000-flat",
     .q = fd_flat_q,
     .k = fd_flat_k,
     .v = fd_integer_v,
     .exact = fd_mean_exact,
     .q_all = 256.0f,
     .k_all = 256.0f},
    /* flat-positive: equal weights, positive values, where sums grow and their roundings are largest. Catches partials
     * or weights kept in 16 bits, which zero-mean values hide. */
    {.name = "flat-positive", .argument = "", .q = fd_flat_q, .k = fd_normal_k, .v = positive_v},
    {.name = "adversarial",
     .argument = "v",
     .q = fd_flat_q,
     .k = fd_normal_k,
     .v = adversarial_v,
     .check = fp32_kv_check},
    {.name = "adversarial",
     .argument = "dot",
     .q = fd_flat_q,
     .k = adversarial_dot_k,
     .v = alternating_v,
     .check = fp32_kv_check,
     .q_all = 1.0f},
    {.name = "counterexample",
     .argument = "underflow",
     .q = fd_flat_q,
     .k = underflow_k,
     .v = second_v,
     .check = counterexample_check,
     .sm_scale = 1.0f,
     .q_all = 1.0f},
    {.name = "counterexample",
     .argument = "alpha-l",
     .q = fd_flat_q,
     .k = alpha_l_k,
     .v = alpha_l_v,
     .check = counterexample_check,
     .sm_scale = 1.0f,
     .q_all = 1.0f},
    {.name = "counterexample",
     .argument = "lse",
     .q = lse_q,
     .k = lse_k,
     .v = second_v,
     .check = counterexample_check,
     .sm_scale = 1.0f},
};
const int fd_numeric_family_count = sizeof fd_numeric_families / sizeof *fd_numeric_families;
