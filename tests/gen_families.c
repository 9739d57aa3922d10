/* gen_families.c: the families. Each exists to catch something, and says what. Rows are pure functions of the case and
 * the logical index. No intermediate result is rounded where a compiler could contract it into something else. */
#include <stdio.h>

#include "gen.h"
#include "gen_families.h"

/* ---- Random components ---- */

static void normals(uint64_t key, uint64_t first, int32_t n, float *row)
{
    for (int32_t i = 0; i < n; i++) {
        row[i] = fd_normal_at(key, first + (uint64_t)i);
    }
}

void fd_normal_q(const fd_gen *g, int32_t b, int32_t h, float *row)
{
    normals(g->key_q, fd_first_q(g, b, h), g->c->head_dim, row);
}

void fd_normal_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    normals(g->key_k, fd_first_kv(g, b, j, h_kv, g->c->head_dim), g->c->head_dim, row);
}

void fd_normal_v(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    normals(g->key_v, fd_first_kv(g, b, j, h_kv, g->c->head_dim_v), g->c->head_dim_v, row);
}

/* ---- peaky: logits spread like factor * N(0, 1). Catches a lost rescale, an fp16 exponent range, a bad maximum. ---- */

static void peaky_q(const fd_gen *g, int32_t b, int32_t h, float *row)
{
    fd_normal_q(g, b, h, row);
    for (int32_t i = 0; i < g->c->head_dim; i++) {
        row[i] *= g->family->q_factor;
    }
}

/* ---- negative: all logits near a large negative number. Catches a maximum that starts at 0 or at a finite
 * "minus infinity", and exp without a shift. ---- */

void fd_fixed_0_q(const fd_gen *g, int32_t b, int32_t h, float *row)
{
    fd_normal_q(g, b, h, row);
    row[0] = g->family->q_0;
}

void fd_fixed_0_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    fd_normal_k(g, b, j, h_kv, row);
    row[0] = g->family->k_0;
}

/* ---- ragged-spike: one key of the last, short split has a logit near 12 and values near 8. Catches a last split that
 * is skipped, cut, or weighed by its length. ---- */

/* The last key, or the first of the last split, so that both ends of it matter. */
static int64_t spike_key(const fd_gen *g, int32_t b, int32_t h_kv)
{
    const int64_t n = g->c->kv_lens[b], split = g->c->split_size > 0 ? g->c->split_size : 1024;
    return (b + h_kv) % 2 == 0 ? n - 1 : (n - 1) / split * split;
}

static void spike_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    fd_normal_k(g, b, j, h_kv, row);
    row[0] = j == spike_key(g, b, h_kv) ? 12.0f : 0.0f; /* times q_0 = 8, times sm_scale = 1/8 */
}

static void spike_v(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    fd_normal_v(g, b, j, h_kv, row);
    for (int32_t i = 0; i < g->c->head_dim_v && j == spike_key(g, b, h_kv); i++) {
        row[i] += 8.0f;
    }
}

/* ---- whisper: one key with weight e^-23 and values of 2^29, which is a twentieth of the answer. Catches weights that are
 * flushed, clamped or rescaled because they are "negligible". half: the second half of the cache has weights near e^-60
 * and values near 2^86, half of the answer. Catches whole tiles and splits skipped for that reason. ---- */

static bool whispers(const fd_gen *g, int32_t b, int64_t j)
{
    const int64_t middle = g->c->kv_lens[b] / 2;
    return g->family->number == 0 ? j == middle : j >= middle;
}

static void whisper_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    fd_normal_k(g, b, j, h_kv, row);
    row[0] = !whispers(g, b, j) ? 0.0f : g->family->number == 0 ? -23.0f : -60.0f; /* times q_0 = 8, times 1/8 */
}

static void whisper_v(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    fd_normal_v(g, b, j, h_kv, row);
    for (int32_t i = 0; i < g->c->head_dim_v && whispers(g, b, j); i++) {
        row[i] *= g->family->number == 0 ? 0x1p29f : 0x1p86f;
    }
}

/* ---- attained: a sequential fp32 sum loses every weight from l and rounds every product up in o, so that the error is
 * the proved bound, within 0.1 % at kv_len 4096. Catches a bound that is too small by one operation. ---- */

/* The float nearest to ln 2^-24: expf gives 2^-24 (1 - 2^-24), just too little to count beside 1. */
#define LN_JUST_BELOW_HALF_ULP (-0x1.0a2b24p+4f)

static fd_status attained_check(const fd_case *c, char *why, size_t n)
{
    if (c->head_dim != 1 || c->head_dim_v != 1 || c->dtype_q != FD_F32 || c->dtype_kv != FD_F32 ||
        c->dtype_o != FD_F32) {
        snprintf(why, n, "family attained needs head_dim 1 and dtypes fff");
        return FD_INVALID;
    }
    return FD_OK;
}

static void attained_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    (void)g, (void)b, (void)h_kv;
    row[0] = j == 0 ? 0.0f : LN_JUST_BELOW_HALF_ULP;
}

static void attained_v(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    (void)g, (void)b, (void)h_kv;
    row[0] = j == 0 ? 1.0f : 1.0f + 0x1p-22f;
}

/* ---- real: q, k, v of a trained transformer (data/real/README.md), k and v shared by the batch. Catches what only
 * trained statistics show: correlated keys, sinks, a wide range of row maxima. ---- */

static fd_status real_check(const fd_case *c, char *why, size_t n)
{
    bool fits = c->q_len <= 1 && c->batch == 4 && c->heads_q == 12 && c->heads_kv == 12 && c->head_dim == 32 &&
                c->head_dim_v == 32;
    for (int32_t b = 0; b < c->batch && fits; b++) {
        fits = c->kv_lens[b] == 347;
    }
    if (!fits) {
        snprintf(why, n, "family real needs one query row, heads 12:12, head_dim 32 and kv_len 347+347+347+347");
        return FD_INVALID;
    }
    return FD_OK;
}

static void real_q(const fd_gen *g, int32_t b, int32_t h, float *row)
{
    memcpy(row, g->file_q + fd_first_q(g, b, h), (size_t)g->c->head_dim * sizeof *row);
}

static void real_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    (void)b;
    memcpy(row, g->file_k + fd_first_kv(g, 0, j, h_kv, g->c->head_dim), (size_t)g->c->head_dim * sizeof *row);
}

static void real_v(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    (void)b;
    memcpy(row, g->file_v + fd_first_kv(g, 0, j, h_kv, g->c->head_dim_v), (size_t)g->c->head_dim_v * sizeof *row);
}

/* ---- The table ---- */

#define REAL_FILE "real/minilm-l6.safetensors"

static const fd_family families[] = {
    {.name = "gaussian", .argument = "", .q = fd_normal_q, .k = fd_normal_k, .v = fd_normal_v, .random = true},
    {.name = "peaky",
     .argument = "8",
     .q = peaky_q,
     .k = fd_normal_k,
     .v = fd_normal_v,
     .q_factor = 8.0f,
     .random = true},
    {.name = "peaky",
     .argument = "40",
     .q = peaky_q,
     .k = fd_normal_k,
     .v = fd_normal_v,
     .q_factor = 40.0f,
     .random = true},
    {.name = "flat-integer",
     .argument = "",
     .q = fd_flat_q,
     .k = fd_normal_k,
     .v = fd_integer_v,
     .exact = fd_mean_exact},
    {.name = "flat-integer",
     .argument = "ones",
     .q = fd_flat_q,
     .k = fd_normal_k,
     .v = fd_ones_v,
     .exact = fd_mean_exact},
    {.name = "selector",
     .argument = "",
     .q = fd_selector_q,
     .k = fd_selector_k,
     .v = fd_normal_v,
     .exact = fd_selector_exact,
     .sm_scale = 0.125f},
    {.name = "selector",
     .argument = "four",
     .q = fd_selector_q,
     .k = fd_selector_four_k,
     .v = fd_integer_v,
     .exact = fd_selector_four_exact,
     .sm_scale = 0.125f},
    {.name = "whisper",
     .argument = "",
     .q = fd_fixed_0_q,
     .k = whisper_k,
     .v = whisper_v,
     .sm_scale = 0.125f,
     .q_0 = 8.0f},
    {.name = "whisper",
     .argument = "half",
     .q = fd_fixed_0_q,
     .k = whisper_k,
     .v = whisper_v,
     .sm_scale = 0.125f,
     .q_0 = 8.0f,
     .number = 1},
    /* A scale that is negative, or nothing: catches a maximum taken before the scale. */
    {.name = "scale", .argument = "negative", .q = fd_normal_q, .k = fd_normal_k, .v = fd_normal_v, .sm_scale = -8.0f},
    {.name = "scale",
     .argument = "zero",
     .q = fd_normal_q,
     .k = fd_normal_k,
     .v = fd_normal_v,
     .sm_scale = FD_SCALE_ZERO},
    /* q_0 k_0 sm_scale = -120: exp is 0 without a shift. */
    {.name = "negative",
     .argument = "-120",
     .q = fd_fixed_0_q,
     .k = fd_fixed_0_k,
     .v = fd_normal_v,
     .sm_scale = 0.125f,
     .q_0 = 30.0f,
     .k_0 = -32.0f,
     .random = true},
    /* -46080: below some kernels' finite "minus infinity". */
    {.name = "negative",
     .argument = "-46000",
     .q = fd_fixed_0_q,
     .k = fd_fixed_0_k,
     .v = fd_normal_v,
     .sm_scale = 0.125f,
     .q_0 = 512.0f,
     .k_0 = -720.0f,
     .random = true},
    /* -4096 head_dim sm_scale, -46341 at head_dim 128: the same, with an exact answer. */
    {.name = "negative",
     .argument = "-46000-flat",
     .q = fd_flat_q,
     .k = fd_flat_k,
     .v = fd_integer_v,
     .exact = fd_mean_exact,
     .q_all = 64.0f,
     .k_all = -64.0f},
    /* -2^19 head_dim sm_scale, -5931642 at head_dim 128: a clamp shows in lse, whose bound is still a number. */
    {.name = "negative",
     .argument = "-5900000-flat",
     .q = fd_flat_q,
     .k = fd_flat_k,
     .v = fd_integer_v,
     .exact = fd_mean_exact,
     .q_all = 1024.0f,
     .k_all = -512.0f},
    /* -2^104 head_dim sm_scale, -2.3e32 at head_dim 128: below -10^30, which others take for minus infinity. */
    {.name = "negative",
     .argument = "-1e32-flat",
     .q = fd_flat_q,
     .k = fd_flat_k,
     .v = fd_integer_v,
     .exact = fd_mean_exact,
     .q_all = 0x1p52f,
     .k_all = -0x1p52f},
    {.name = "ragged-spike",
     .argument = "",
     .q = fd_fixed_0_q,
     .k = spike_k,
     .v = spike_v,
     .sm_scale = 0.125f,
     .q_0 = 8.0f,
     .random = true},
    {.name = "attained",
     .argument = "",
     .q = fd_flat_q,
     .k = attained_k,
     .v = attained_v,
     .check = attained_check,
     .sm_scale = 1.0f,
     .q_all = 1.0f},
    {.name = "real", .argument = "0", .q = real_q, .k = real_k, .v = real_v, .check = real_check, .file = REAL_FILE},
    {.name = "real", .argument = "2", .q = real_q, .k = real_k, .v = real_v, .check = real_check, .file = REAL_FILE},
    {.name = "real", .argument = "5", .q = real_q, .k = real_k, .v = real_v, .check = real_check, .file = REAL_FILE},
};

bool fd_gen_random_family(const fd_case *c)
{
    char why[1];
    const fd_family *family;
    if (fd_family_find(c->family, c->argument, &family, why, sizeof why) != FD_OK || !family->random) {
        return false;
    }
    /* Beside a fixed component 0, few others leave logits that hardly differ: nearly equal weights round alike when they
     * are added to one large sum (head_dim 1: 21 standard deviations, 2: 7, from 345 keys behind a spike). */
    return c->head_dim >= 8 || family->q_0 == 0.0f;
}

fd_status fd_family_find(const char *name, const char *argument, const fd_family **family, char *why, size_t n)
{
    char known[400] = "", arguments[160] = "";
    const char *last = "";
    const struct {
        const fd_family *families;
        size_t count;
    } tables[] = {{families, sizeof families / sizeof *families},
                  {fd_numeric_families, (size_t)fd_numeric_family_count},
                  {fd_place_families, (size_t)fd_place_family_count}};
    for (size_t f = 0, t = 0; t < 3; f + 1 < tables[t].count ? f++ : (t++, f = 0)) {
        const fd_family *x = &tables[t].families[f];
        if (strcmp(x->name, name) == 0) {
            if (strcmp(x->argument, argument) == 0) {
                *family = x;
                return FD_OK;
            }
            const size_t at = strlen(arguments);
            snprintf(arguments + at, sizeof arguments - at, " '%s'", x->argument);
        }
        if (strcmp(x->name, last) != 0) {
            const size_t at = strlen(known);
            snprintf(known + at, sizeof known - at, " %s", x->name);
            last = x->name;
        }
    }
    if (arguments[0] != '\0') {
        snprintf(why, n, "family %s has no argument '%s'; it takes one of%s", name, argument, arguments);
    } else {
        snprintf(why, n, "unknown family '%s'; there are%s", name, known);
    }
    return FD_INVALID;
}
