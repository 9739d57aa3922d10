/* test_dump_layouts.c: one problem, written as BSHD, BHSD, packed and paged, with the answer of a rung: each is read as
 * the same problem, and a key out of place is seen. */
#define _POSIX_C_SOURCE 200809L

#include "test_dump.h"

/* Batch 3, lengths 5, 130 and 64, three query rows, group 2: small, and no two extents are equal. */
enum { BATCH = 3, Q_LEN = 3, HEADS_Q = 4, HEADS_KV = 2, DIM = 8, DIM_V = 6, CAPACITY = 130, PAGE = 16, PAGES = 20 };
static const int32_t kv_lens[BATCH] = {5, 130, 64};

typedef struct own {
    float q[BATCH][Q_LEN][HEADS_Q][DIM], k[BATCH][CAPACITY][HEADS_KV][DIM], v[BATCH][CAPACITY][HEADS_KV][DIM_V];
    float *o, *lse; /* [BATCH][Q_LEN][HEADS_Q][DIM_V], [BATCH][Q_LEN][HEADS_Q] */
} own;

static uint32_t state = 1;

static float any(void)
{
    state = state * 1664525u + 1013904223u;
    return (float)(int32_t)(state >> 8) * 0x1p-22f - 2.0f;
}

static fd_status fill(void *from, const fd_problem *p, char *why, size_t n)
{
    const own *x = from;
    (void)why;
    (void)n;
    for (int32_t b = 0; b < BATCH; b++) {
        for (int32_t t = 0; t < Q_LEN; t++) {
            for (int32_t h = 0; h < HEADS_Q; h++) {
                memcpy((float *)p->q.data + fd_row_at(&p->q, b, t, h), x->q[b][t][h], sizeof x->q[b][t][h]);
            }
        }
        for (int64_t j = 0; j < kv_lens[b]; j++) {
            for (int32_t h = 0; h < HEADS_KV; h++) {
                memcpy((float *)p->k.data + fd_kv_at(p, &p->k, b, j, h), x->k[b][j][h], sizeof x->k[b][j][h]);
                memcpy((float *)p->v.data + fd_kv_at(p, &p->v, b, j, h), x->v[b][j][h], sizeof x->v[b][j][h]);
            }
        }
    }
    return FD_OK;
}

/* A problem, and what rung 05 makes of it. */
static own *problem(bool causal)
{
    static own x;
    char why[256];
    for (float *p = &x.q[0][0][0][0]; p < &x.q[0][0][0][0] + sizeof x.q / sizeof(float); p++) {
        *p = any();
    }
    for (float *p = &x.k[0][0][0][0]; p < &x.k[0][0][0][0] + sizeof x.k / sizeof(float); p++) {
        *p = any();
    }
    for (float *p = &x.v[0][0][0][0]; p < &x.v[0][0][0][0] + sizeof x.v / sizeof(float); p++) {
        *p = any();
    }
    const fd_problem shape = {.size = sizeof shape,
                              .batch = BATCH,
                              .q_len = Q_LEN,
                              .heads_q = HEADS_Q,
                              .heads_kv = HEADS_KV,
                              .head_dim = DIM,
                              .head_dim_v = DIM_V,
                              .sm_scale = 0.3f,
                              .window_left = -1,
                              .window_right = causal ? 0 : -1,
                              .kv_lens_host = kv_lens};
    fd_instance instance;
    cr_assert(fd_instance_create_from(&instance, &shape, "own", (fd_filler){fill, &x}, why, sizeof why) == FD_OK, "%s",
              why);
    answer_of(fd_ladder_find(5), &instance, &x.o, &x.lse);
    fd_instance_free(&instance);
    return &x;
}

static void expect(const said *s, int code, const char *out)
{
    cr_expect_eq(s->code, code, "exit code %d, expected %d\n%s%s", s->code, code, s->out, s->err);
    cr_expect(strstr(s->out, out) != NULL, "does not say '%s':\n%s%s", out, s->out, s->err);
}

static const fd_metadata scale = {"sm_scale", "0x1.333334p-2"}; /* the float 0.3 */

static const char *written(const fd_safetensor *tensors, int32_t count, const char *key, const char *value)
{
    const fd_metadata metadata[] = {scale, {"causal", "true"}, {key, value}};
    const char *path = in_folder("own.safetensors");
    write_file(path, tensors, count, metadata, key != NULL ? 3 : 2);
    return path;
}

Test(dump_layouts, bshd)
{
    own *x = problem(true);
    const fd_safetensor tensors[] = {
        f32("q", &x->q[0][0][0][0], 4, BATCH, Q_LEN, HEADS_Q, DIM),
        f32("k", &x->k[0][0][0][0], 4, BATCH, CAPACITY, HEADS_KV, DIM),
        f32("v", &x->v[0][0][0][0], 4, BATCH, CAPACITY, HEADS_KV, DIM_V),
        {.name = "cache_seqlens", .dtype_name = "I32", .rank = 1, .shape = {BATCH}, .data = kv_lens},
        f32("out", x->o, 4, BATCH, Q_LEN, HEADS_Q, DIM_V),
        f32("softmax_lse", x->lse, 3, BATCH, Q_LEN, HEADS_Q, 0),
    };
    expect(check(written(tensors, 6, NULL, NULL)), FD_EXIT_PASS, "1 passed, 0 failed");
    /* Without the lengths it is another problem, and a wrong answer: */
    expect(check(written((const fd_safetensor[]){tensors[0], tensors[1], tensors[2], tensors[4]}, 4, NULL, NULL)),
           FD_EXIT_FAIL, "o is outside the proved bound");
    /* ... and so without the mask: */
    write_file(in_folder("own.safetensors"), tensors, 6, &scale, 1);
    expect(check(in_folder("own.safetensors")), FD_EXIT_FAIL, "b=");
    remove_folder();
}

/* Room for n floats that lasts as long as the test. */
static float *room(int64_t n)
{
    static float *all[16];
    static int count;
    cr_assert_lt(count, 16);
    all[count] = malloc((size_t)n * sizeof(float));
    cr_assert_not_null(all[count]);
    return all[count++];
}

/* [b][s][h][d] as [b][h][s][d]. */
static float *heads_first(const float *x, int64_t batch, int64_t slots, int64_t heads, int64_t dim)
{
    float *y = room(batch * slots * heads * dim);
    for (int64_t b = 0; b < batch; b++) {
        for (int64_t s = 0; s < slots; s++) {
            for (int64_t h = 0; h < heads; h++) {
                memcpy(y + ((b * heads + h) * slots + s) * dim, x + ((b * slots + s) * heads + h) * dim,
                       (size_t)dim * sizeof *y);
            }
        }
    }
    return y;
}

Test(dump_layouts, bhsd_and_lse_with_heads_first)
{
    own *x = problem(true);
    const int64_t lens[BATCH] = {kv_lens[0], kv_lens[1], kv_lens[2]};
    const fd_safetensor tensors[] = {
        f32("q", heads_first(&x->q[0][0][0][0], BATCH, Q_LEN, HEADS_Q, DIM), 4, BATCH, HEADS_Q, Q_LEN, DIM),
        f32("k", heads_first(&x->k[0][0][0][0], BATCH, CAPACITY, HEADS_KV, DIM), 4, BATCH, HEADS_KV, CAPACITY, DIM),
        f32("v", heads_first(&x->v[0][0][0][0], BATCH, CAPACITY, HEADS_KV, DIM_V), 4, BATCH, HEADS_KV, CAPACITY, DIM_V),
        {.name = "kv_lens", .dtype_name = "I64", .rank = 1, .shape = {BATCH}, .data = lens},
        f32("o", heads_first(x->o, BATCH, Q_LEN, HEADS_Q, DIM_V), 4, BATCH, HEADS_Q, Q_LEN, DIM_V),
        f32("lse", heads_first(x->lse, BATCH, Q_LEN, HEADS_Q, 1), 3, BATCH, HEADS_Q, Q_LEN, 0),
    };
    expect(check(written(tensors, 6, "layout", "BHSD")), FD_EXIT_PASS, "1 passed, 0 failed");
    cr_expect_eq(check(written(tensors, 6, NULL, NULL))->code, FD_EXIT_USAGE, "BHSD taken for BSHD");
    remove_folder();
}

/* The visible rows of all sequences, one after another. */
static float *packed(const float *x, const int32_t *lens, int64_t slots, int64_t row, int64_t *total)
{
    float *y = room(BATCH * slots * row);
    *total = 0;
    for (int64_t b = 0; b < BATCH; b++) {
        memcpy(y + *total * row, x + b * slots * row, (size_t)(lens[b] * row) * sizeof *y);
        *total += lens[b];
    }
    return y;
}

Test(dump_layouts, packed_with_different_q_lens)
{
    own *x = problem(false);
    const int32_t q_lens[BATCH] = {Q_LEN, 1, 0}; /* the first rows of each; no mask, so any will do */
    const int32_t cu_q[BATCH + 1] = {0, 3, 4, 4}, cu_k[BATCH + 1] = {0, 5, 135, 199};
    int64_t rows, keys;
    const fd_metadata metadata[] = {scale};
    const fd_safetensor tensors[] = {
        f32("q", packed(&x->q[0][0][0][0], q_lens, Q_LEN, HEADS_Q * DIM, &rows), 3, 4, HEADS_Q, DIM, 0),
        f32("k", packed(&x->k[0][0][0][0], kv_lens, CAPACITY, HEADS_KV * DIM, &keys), 3, 199, HEADS_KV, DIM, 0),
        f32("v", packed(&x->v[0][0][0][0], kv_lens, CAPACITY, HEADS_KV * DIM_V, &keys), 3, 199, HEADS_KV, DIM_V, 0),
        {.name = "cu_seqlens_q", .dtype_name = "I32", .rank = 1, .shape = {BATCH + 1}, .data = cu_q},
        {.name = "cu_seqlens_k", .dtype_name = "I32", .rank = 1, .shape = {BATCH + 1}, .data = cu_k},
        f32("o", packed(x->o, q_lens, Q_LEN, HEADS_Q * DIM_V, &rows), 3, 4, HEADS_Q, DIM_V, 0),
        f32("lse", packed(x->lse, q_lens, Q_LEN, HEADS_Q, &rows), 2, 4, HEADS_Q, 0, 0),
    };
    const char *path = in_folder("own.safetensors");
    write_file(path, tensors, 7, metadata, 1);
    expect(check(path), FD_EXIT_PASS, "2 passed, 0 failed"); /* q_len 1 and 3 */
    ((float *)(uintptr_t)tensors[5].data)[3 * HEADS_Q * DIM_V + 1] += 1.0f;
    write_file(path, tensors, 7, metadata, 1);
    expect(check(path), FD_EXIT_FAIL, "b=1 t=0 h=0 i=1");
    expect(check(path), FD_EXIT_FAIL, "1 passed, 1 failed");
    remove_folder();
}

/* Slots of permuted pages; NaN in those that belong to nobody. */
static float *paged(const float *x, int64_t row, const int32_t *page_of, int64_t pages_each)
{
    float *y = room(PAGES * PAGE * row);
    fd_poison_fill(y, (size_t)(PAGES * PAGE * row) * sizeof *y, FD_POISON_NAN);
    for (int64_t b = 0; b < BATCH; b++) {
        for (int64_t j = 0; j < kv_lens[b]; j++) {
            memcpy(y + (page_of[b * pages_each + j / PAGE] * PAGE + j % PAGE) * row, x + (b * CAPACITY + j) * row,
                   (size_t)row * sizeof *y);
        }
    }
    return y;
}

Test(dump_layouts, permuted_pages)
{
    own *x = problem(true);
    enum { EACH = 9 };             /* pages of 130 keys */
    int32_t table_of[BATCH][EACH]; /* 1 + 9 + 4 pages in use, the rest of the table is rubbish */
    int32_t next = 3;              /* 7 has no divisor in common with PAGES: a permutation */
    for (int32_t b = 0; b < BATCH; b++) {
        for (int32_t i = 0; i < EACH; i++) {
            const bool used = i * PAGE < kv_lens[b];
            table_of[b][i] = used ? next : -1;
            next = used ? (next + 7) % PAGES : next;
        }
    }
    float *k = paged(&x->k[0][0][0][0], HEADS_KV * DIM, &table_of[0][0], EACH);
    float *v = paged(&x->v[0][0][0][0], HEADS_KV * DIM_V, &table_of[0][0], EACH);
    fd_safetensor tensors[] = {
        f32("q", &x->q[0][0][0][0], 4, BATCH, Q_LEN, HEADS_Q, DIM),
        f32("k_cache", k, 4, PAGES, PAGE, HEADS_KV, DIM),
        f32("v_cache", v, 4, PAGES, PAGE, HEADS_KV, DIM_V),
        {.name = "block_table", .dtype_name = "I32", .rank = 2, .shape = {BATCH, EACH}, .data = table_of},
        {.name = "kv_lens", .dtype_name = "I32", .rank = 1, .shape = {BATCH}, .data = kv_lens},
        f32("o", x->o, 4, BATCH, Q_LEN, HEADS_Q, DIM_V),
        f32("lse", x->lse, 3, BATCH, Q_LEN, HEADS_Q, 0),
    };
    expect(check(written(tensors, 7, NULL, NULL)), FD_EXIT_PASS, "1 passed, 0 failed");

    tensors[1] = f32("k", heads_first(k, PAGES, PAGE, HEADS_KV, DIM), 4, PAGES, HEADS_KV, PAGE, DIM);
    tensors[2] = f32("v", heads_first(v, PAGES, PAGE, HEADS_KV, DIM_V), 4, PAGES, HEADS_KV, PAGE, DIM_V);
    expect(check(written(tensors, 7, "kv_layout", "HND")), FD_EXIT_PASS, "1 passed, 0 failed");

    table_of[1][0] = table_of[2][0]; /* another sequence's; the order of its own pages would not matter */
    expect(check(written(tensors, 7, "kv_layout", "HND")), FD_EXIT_FAIL, "b=1 ");
    remove_folder();
}

Test(dump_layouts, one_query_row_and_no_scale)
{
    static float q[2][4][8], k[2][3][4][8], v[2][3][4][8], o[2][4][8];
    const float *const k_all = &k[0][0][0][0];
    for (int32_t i = 0; i < 2 * 4 * 8; i++) { /* all logits 0: o is the mean, 2 of 1, 2 and 3 */
        (&q[0][0][0])[i] = 1.0f;
        (&o[0][0][0])[i] = 2.0f;
    }
    for (int32_t j = 0; j < 2 * 3; j++) {
        for (int32_t i = 0; i < 32; i++) {
            v[j / 3][j % 3][i / 8][i % 8] = (float)(j % 3 + 1);
        }
    }
    const fd_safetensor tensors[] = {f32("q", &q[0][0][0], 3, 2, 4, 8, 0), f32("k", k_all, 4, 2, 3, 4, 8),
                                     f32("v", &v[0][0][0][0], 4, 2, 3, 4, 8), f32("o", &o[0][0][0], 3, 2, 4, 8, 0)};
    const char *path = in_folder("own.safetensors");
    write_file(path, tensors, 4, NULL, 0);
    expect(check(path), FD_EXIT_PASS,
           "note, 1 of 1: kv_lens is not given: all 3 slots are visible; sm_scale is not given: 1/sqrt(head_dim), "
           "0x1.6a09e6p-2; lse was not judged");
    remove_folder();
}
