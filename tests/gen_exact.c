/* gen_exact.c: the families whose answer is known bit for bit: flat-integer and selector, with their exact answers. */
#include "gen_families.h"

/* Integers -64 .. 63, different for every (b, h_kv, j, i): exact in any dtype, and so are sums of 2^17 of them. */
void fd_integer_v(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    const uint64_t first = fd_first_kv(g, b, j, h_kv, g->c->head_dim_v);
    for (int32_t i = 0; i < g->c->head_dim_v; i++) {
        row[i] = (float)((int32_t)(fd_bits_at(g->key_v, first + (uint64_t)i) >> 57) - 64);
    }
}

/* ---- flat: every logit is the same, so every weight is 1 and o is the mean. Catches a key dropped, read twice or
 * read from another head, at any position, because every intermediate result is exact. ---- */

void fd_flat_q(const fd_gen *g, int32_t b, int32_t h, float *row)
{
    (void)b, (void)h;
    fd_fill_row(g->family->q_all, g->c->head_dim, row);
}

void fd_flat_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    (void)b, (void)j, (void)h_kv;
    fd_fill_row(g->family->k_all, g->c->head_dim, row);
}

void fd_ones_v(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    (void)b, (void)j, (void)h_kv;
    fd_fill_row(1.0f, g->c->head_dim_v, row);
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

bool fd_mean_exact(const fd_gen *g, const fd_problem *problem, int32_t b, int32_t h, float *o)
{
    const int64_t kv_len = fd_case_visible(g->c, b, g->t);
    const int32_t h_kv = h / (g->c->heads_q / g->c->heads_kv), dim = g->c->head_dim_v;
    float row[FD_GEN_HEAD_DIM_MAX];

    /* Then the mean of each split is exact as well. 2^17: sums of integers up to 64 stay below 2^24. */
    if (!is_power_of_two(kv_len) || kv_len > 131072 || !is_power_of_two(requested_split(problem, kv_len))) {
        return false;
    }
    fd_fill_row(0.0f, dim, o);
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
    if (g->family->place != NULL) {
        return g->family->place(g, b, h_kv);
    }
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

void fd_selector_q(const fd_gen *g, int32_t b, int32_t h, float *row)
{
    (void)b, (void)h;
    fd_fill_row(0.0f, g->c->head_dim, row);
    row[0] = 1.0f;
}

void fd_selector_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    fd_normal_k(g, b, j, h_kv, row);
    row[0] = j == selected_key(g, b, h_kv) ? 0.0f : LOGIT_0_K;
}

void fd_selector_four_k(const fd_gen *g, int32_t b, int64_t j, int32_t h_kv, float *row)
{
    int64_t place[4];
    selected_four(g, b, h_kv, place);
    fd_normal_k(g, b, j, h_kv, row);
    row[0] = j == place[0] || j == place[1] || j == place[2] || j == place[3] ? 0.0f : LOGIT_0_K;
}

bool fd_selector_exact(const fd_gen *g, const fd_problem *problem, int32_t b, int32_t h, float *o)
{
    (void)problem;
    const int32_t h_kv = h / (g->c->heads_q / g->c->heads_kv);
    const int64_t key = selected_key(g, b, h_kv);
    if (key >= fd_case_visible(g->c, b, g->t)) {
        return false;
    }
    fd_normal_v(g, b, key, h_kv, o);
    uint32_t element;
    const fd_tensor one = {.data = &element, .dtype = g->c->dtype_kv};
    for (int32_t i = 0; i < g->c->head_dim_v; i++) {
        fd_store(&one, 0, o[i]); /* v is rounded to its dtype; o is that number */
        o[i] = fd_load(&one, 0);
    }
    return true;
}

bool fd_selector_four_exact(const fd_gen *g, const fd_problem *problem, int32_t b, int32_t h, float *o)
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
    for (int32_t x = 0; x < 4; x++) {
        if (place[x] >= fd_case_visible(g->c, b, g->t)) {
            return false;
        }
    }
    fd_fill_row(0.0f, dim, o);
    for (int32_t x = 0; x < 4; x++) {
        fd_integer_v(g, b, place[x], h_kv, row);
        for (int32_t i = 0; i < dim; i++) {
            o[i] += 0.25f * row[i];
        }
    }
    return true;
}
