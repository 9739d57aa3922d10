/* gen_families.c: the families. Each exists to catch something, and says what. Rows are pure functions of the case and
 * the logical index. No intermediate result is rounded where a compiler could contract it into something else. */
#include <stdio.h>

#include "gen.h"
#include "gen_families.h"

static uint64_t first_q(const fd_gen *g, int32_t b, int32_t h)
{
    return ((uint64_t)b * (uint64_t)g->c->heads_q + (uint64_t)h) * (uint64_t)g->c->head_dim;
}

/* Index of element [b, j, h_kv, 0] of k or v, whose rows have dim elements. */
static uint64_t first_kv(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, int32_t dim)
{
    const uint64_t token = (uint64_t)b * (uint64_t)g->c->kv_len + (uint64_t)j;
    return (token * (uint64_t)g->c->heads_kv + (uint64_t)h_kv) * (uint64_t)dim;
}

static void fill(float value, int32_t n, float *row)
{
    for (int32_t i = 0; i < n; i++) {
        row[i] = value;
    }
}

/* ---- Random components ---- */

static void normals(uint64_t key, uint64_t first, int32_t n, float *row)
{
    for (int32_t i = 0; i < n; i++) {
        row[i] = fd_normal_at(key, first + (uint64_t)i);
    }
}

static void normal_q(const fd_gen *g, int32_t b, int32_t h, float *row)
{
    normals(g->key_q, first_q(g, b, h), g->c->head_dim, row);
}

static void normal_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    normals(g->key_k, first_kv(g, b, j, h_kv, g->c->head_dim), g->c->head_dim, row);
}

static void normal_v(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    normals(g->key_v, first_kv(g, b, j, h_kv, g->c->head_dim_v), g->c->head_dim_v, row);
}

/* Integers -64 .. 63, different for every (b, h_kv, j, i): exact in any dtype, and so are sums of 2^17 of them. */
static void integer_v(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    const uint64_t first = first_kv(g, b, j, h_kv, g->c->head_dim_v);
    for (int32_t i = 0; i < g->c->head_dim_v; i++) {
        row[i] = (float)((int32_t)(fd_bits_at(g->key_v, first + (uint64_t)i) >> 57) - 64);
    }
}

/* ---- peaky: logits spread like factor * N(0, 1). Catches a lost rescale, an fp16 exponent range, a bad maximum. ---- */

static void peaky_q(const fd_gen *g, int32_t b, int32_t h, float *row)
{
    normal_q(g, b, h, row);
    for (int32_t i = 0; i < g->c->head_dim; i++) {
        row[i] *= g->family->q_factor;
    }
}

/* ---- flat: every logit is the same, so every weight is 1 and o is the mean. Catches a key dropped, read twice or
 * read from another head, at any position, because every intermediate result is exact. ---- */

static void flat_q(const fd_gen *g, int32_t b, int32_t h, float *row)
{
    (void)b, (void)h;
    fill(g->family->q_all, g->c->head_dim, row);
}

static void flat_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    (void)b, (void)j, (void)h_kv;
    fill(g->family->k_all, g->c->head_dim, row);
}

static void ones_v(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    (void)b, (void)j, (void)h_kv;
    fill(1.0f, g->c->head_dim_v, row);
}

static bool is_power_of_two(int64_t x)
{
    return x > 0 && (x & (x - 1)) == 0;
}

/* Keys a split if the problem fixes it, kv_len if one split holds them all; 0: left to the planner. */
static int64_t requested_split(const fd_problem *problem, int64_t kv_len)
{
    if (problem->num_splits_request > 0) {
        return (kv_len - 1) / problem->num_splits_request + 1;
    }
    return problem->split_size_request < kv_len ? problem->split_size_request : kv_len;
}

static bool mean_exact(const fd_gen *g, const fd_problem *problem, int32_t b, int32_t h, float *o)
{
    const int64_t kv_len = g->c->kv_lens[b];
    const int32_t h_kv = h / (g->c->heads_q / g->c->heads_kv), dim = g->c->head_dim_v;
    float row[FD_GEN_HEAD_DIM_MAX];

    /* Then the mean of each split is exact as well. 2^17: sums of integers up to 64 stay below 2^24. */
    if (!is_power_of_two(kv_len) || kv_len > 131072 || !is_power_of_two(requested_split(problem, kv_len))) {
        return false;
    }
    fill(0.0f, dim, o);
    for (int64_t j = 0; j < kv_len; j++) {
        g->family->v(g, b, j, h_kv, row);
        for (int32_t i = 0; i < dim; i++) {
            o[i] += row[i];
        }
    }
    for (int32_t i = 0; i < dim; i++) {
        o[i] /= (float)kv_len;
    }
    return true;
}

/* ---- selector: one key (or four) has logit 0, the others -256, whose exp is 0 in fp32. Catches an off-by-one at the
 * ends of cache and splits: o is one row of v (or the mean of four), bit for bit. ---- */

#define LOGIT_0_K (-2048.0f) /* with q_0 = 1 and sm_scale = 1/8: logit -256; exact in fp16 and bf16 */

static int64_t clip(int64_t j, int64_t kv_len)
{
    return j < 0 ? 0 : j < kv_len ? j : kv_len - 1;
}

/* A cycle over KV heads and batch rows: the places where loops go wrong. */
static int64_t selected_key(const fd_gen *g, int32_t b, int32_t h_kv)
{
    const int64_t n = g->c->kv_lens[b], split = g->c->split_size > 0 ? g->c->split_size : 1024;
    const int64_t place[] = {0, n - 1, 1, split - 1, split, split + 1, n / 2};
    return clip(place[((int64_t)b * g->c->heads_kv + h_kv) % 7], n);
}

/* Four places: both ends; the ends of the quarters; around the middle; four in a row somewhere. */
static void selected_four(const fd_gen *g, int32_t b, int32_t h_kv, int64_t place[4])
{
    const int64_t n = g->c->kv_lens[b], head = (int64_t)b * g->c->heads_kv + h_kv;
    const int64_t block = n < 4 ? 0 : (int64_t)(fd_bits_at(g->key_k, (uint64_t)head) % (uint64_t)(n / 4)) * 4;
    for (int64_t x = 0; x < 4; x++) {
        const int64_t places[] = {x < 2 ? x : n - 4 + x, n * (x + 1) / 4 - 1, n / 2 - 2 + x, block + x};
        place[x] = clip(places[head % 4], n);
    }
}

static void selector_q(const fd_gen *g, int32_t b, int32_t h, float *row)
{
    (void)b, (void)h;
    fill(0.0f, g->c->head_dim, row);
    row[0] = 1.0f;
}

static void selector_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    normal_k(g, b, j, h_kv, row);
    row[0] = j == selected_key(g, b, h_kv) ? 0.0f : LOGIT_0_K;
}

static void selector_four_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    int64_t place[4];
    selected_four(g, b, h_kv, place);
    normal_k(g, b, j, h_kv, row);
    row[0] = j == place[0] || j == place[1] || j == place[2] || j == place[3] ? 0.0f : LOGIT_0_K;
}

static bool selector_exact(const fd_gen *g, const fd_problem *problem, int32_t b, int32_t h, float *o)
{
    (void)problem;
    const int32_t h_kv = h / (g->c->heads_q / g->c->heads_kv);
    normal_v(g, b, selected_key(g, b, h_kv), h_kv, o);
    uint32_t element;
    const fd_tensor one = {.data = &element, .dtype = g->c->dtype_kv};
    for (int32_t i = 0; i < g->c->head_dim_v; i++) {
        fd_store(&one, 0, o[i]); /* v is rounded to its dtype; o is that number */
        o[i] = fd_load(&one, 0);
    }
    return true;
}

static bool selector_four_exact(const fd_gen *g, const fd_problem *problem, int32_t b, int32_t h, float *o)
{
    const int64_t kv_len = g->c->kv_lens[b];
    const int32_t h_kv = h / (g->c->heads_q / g->c->heads_kv), dim = g->c->head_dim_v;
    float row[FD_GEN_HEAD_DIM_MAX];
    int64_t place[4];

    /* Powers of two put the same number of selected keys, 1, 2 or 4, into every split that has any: all means and
     * weights are exact, in every kind of merge that divides. */
    if (!is_power_of_two(kv_len) || kv_len < 4 || !is_power_of_two(requested_split(problem, kv_len))) {
        return false;
    }
    selected_four(g, b, h_kv, place);
    fill(0.0f, dim, o);
    for (int32_t x = 0; x < 4; x++) {
        integer_v(g, b, place[x], h_kv, row);
        for (int32_t i = 0; i < dim; i++) {
            o[i] += 0.25f * row[i];
        }
    }
    return true;
}

/* ---- negative: all logits near a large negative number. Catches a maximum that starts at 0 or at a finite
 * "minus infinity", and exp without a shift. ---- */

static void fixed_0_q(const fd_gen *g, int32_t b, int32_t h, float *row)
{
    normal_q(g, b, h, row);
    row[0] = g->family->q_0;
}

static void fixed_0_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    normal_k(g, b, j, h_kv, row);
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
    normal_k(g, b, j, h_kv, row);
    row[0] = j == spike_key(g, b, h_kv) ? 12.0f : 0.0f; /* times q_0 = 8, times sm_scale = 1/8 */
}

static void spike_v(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    normal_v(g, b, j, h_kv, row);
    for (int32_t i = 0; i < g->c->head_dim_v && j == spike_key(g, b, h_kv); i++) {
        row[i] += 8.0f;
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
    bool fits = c->batch == 4 && c->heads_q == 12 && c->heads_kv == 12 && c->head_dim == 32 && c->head_dim_v == 32;
    for (int32_t b = 0; b < c->batch && fits; b++) {
        fits = c->kv_lens[b] == 347;
    }
    if (!fits) {
        snprintf(why, n, "family real needs heads 12:12, head_dim 32 and kv_len 347+347+347+347");
        return FD_INVALID;
    }
    return FD_OK;
}

static void real_q(const fd_gen *g, int32_t b, int32_t h, float *row)
{
    memcpy(row, g->file_q + first_q(g, b, h), (size_t)g->c->head_dim * sizeof *row);
}

static void real_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    (void)b;
    memcpy(row, g->file_k + first_kv(g, 0, j, h_kv, g->c->head_dim), (size_t)g->c->head_dim * sizeof *row);
}

static void real_v(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    (void)b;
    memcpy(row, g->file_v + first_kv(g, 0, j, h_kv, g->c->head_dim_v), (size_t)g->c->head_dim_v * sizeof *row);
}

/* ---- The table ---- */

#define REAL_FILE "real/minilm-l6.safetensors"

static const fd_family families[] = {
    {.name = "gaussian", .argument = "", .q = normal_q, .k = normal_k, .v = normal_v},
    {.name = "peaky", .argument = "8", .q = peaky_q, .k = normal_k, .v = normal_v, .q_factor = 8.0f},
    {.name = "peaky", .argument = "40", .q = peaky_q, .k = normal_k, .v = normal_v, .q_factor = 40.0f},
    {.name = "flat-integer", .argument = "", .q = flat_q, .k = normal_k, .v = integer_v, .exact = mean_exact},
    {.name = "flat-integer", .argument = "ones", .q = flat_q, .k = normal_k, .v = ones_v, .exact = mean_exact},
    {.name = "selector",
     .argument = "",
     .q = selector_q,
     .k = selector_k,
     .v = normal_v,
     .exact = selector_exact,
     .sm_scale = 0.125f},
    {.name = "selector",
     .argument = "four",
     .q = selector_q,
     .k = selector_four_k,
     .v = integer_v,
     .exact = selector_four_exact,
     .sm_scale = 0.125f},
    /* q_0 k_0 sm_scale = -120: exp is 0 without a shift. */
    {.name = "negative",
     .argument = "-120",
     .q = fixed_0_q,
     .k = fixed_0_k,
     .v = normal_v,
     .sm_scale = 0.125f,
     .q_0 = 30.0f,
     .k_0 = -32.0f},
    /* -46080: below some kernels' finite "minus infinity". */
    {.name = "negative",
     .argument = "-46000",
     .q = fixed_0_q,
     .k = fixed_0_k,
     .v = normal_v,
     .sm_scale = 0.125f,
     .q_0 = 512.0f,
     .k_0 = -720.0f},
    /* -4096 head_dim sm_scale, -46341 at head_dim 128: the same, with an exact answer. */
    {.name = "negative",
     .argument = "-46000-flat",
     .q = flat_q,
     .k = flat_k,
     .v = integer_v,
     .exact = mean_exact,
     .q_all = 64.0f,
     .k_all = -64.0f},
    {.name = "ragged-spike",
     .argument = "",
     .q = fixed_0_q,
     .k = spike_k,
     .v = spike_v,
     .sm_scale = 0.125f,
     .q_0 = 8.0f},
    {.name = "attained",
     .argument = "",
     .q = flat_q,
     .k = attained_k,
     .v = attained_v,
     .check = attained_check,
     .sm_scale = 1.0f,
     .q_all = 1.0f},
    {.name = "real", .argument = "0", .q = real_q, .k = real_k, .v = real_v, .check = real_check, .file = REAL_FILE},
    {.name = "real", .argument = "2", .q = real_q, .k = real_k, .v = real_v, .check = real_check, .file = REAL_FILE},
    {.name = "real", .argument = "5", .q = real_q, .k = real_k, .v = real_v, .check = real_check, .file = REAL_FILE},
};

fd_status fd_family_find(const char *name, const char *argument, const fd_family **family, char *why, size_t n)
{
    char known[200] = "", arguments[100] = "";
    const char *last = "";
    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        const fd_family *x = &families[f];
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
