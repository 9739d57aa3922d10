/* test_bug_numbers.c: reported bugs of indexing, numbers and semantics; see test_bug_cases.c. */
#include "bug_scene.h"

/* ---- I: indexing. Addresses are arithmetic and need no memory ---- */

Test(bug_numbers, I01_I02_pages_beyond_2_31_elements)
{
    int32_t table[4] = {32767, 32768, 7767, 7768};
    fd_problem p = {.page_size = 16, .page_table = {.data = table, .stride = {4, 1, 0, 0}, .dtype = FD_I32}};
    fd_tensor x = {.stride = {65536, 4096, 128, 1}};
    cr_assert_eq(fd_kv_at(&p, &x, 0, 15, 7), INT64_C(2147480448)); /* 32767 65536 + 15 4096 + 7 128 */
    cr_assert_eq(fd_kv_at(&p, &x, 0, 16, 0), INT64_C(2147483648));
    p.page_size = 480;
    x.stride[0] = 480 * 576;
    x.stride[1] = 576;
    cr_assert_eq(fd_kv_at(&p, &x, 0, 2 * 480 + 479, 0), INT64_C(2147696064)); /* 7767 276480 + 479 576 */
    cr_assert_eq(fd_kv_at(&p, &x, 0, 3 * 480, 0), INT64_C(2147696640));
    table[0] = INT32_MAX;
    cr_assert_eq(fd_kv_at(&p, &x, 0, 0, 0), INT64_C(593736278722560)); /* (2^31 - 1) 276480 */
}

Test(bug_numbers, I03_I04_I05_rows_batches_and_tokens_beyond_2_31_elements)
{
    const fd_tensor q = {.stride = {16384, 16384, 128, 1}};
    cr_assert_eq(fd_row_at(&q, 131071, 0, 127), INT64_C(2147483520));
    cr_assert_eq(fd_row_at(&q, 131072, 0, 0), INT64_C(2147483648));
    cr_assert_eq(fd_row_at(&q, 131071, 1, 127), INT64_C(2147499904));
    const fd_problem dense = {.page_size = 0};
    const fd_tensor layered = {.stride = {INT64_C(1) << 30, 128, 1 << 20, 1}};
    for (int32_t b = 1; b <= 4; b++) {
        cr_assert_eq(fd_kv_at(&dense, &layered, b, 3, 2), b * INT64_C(1073741824) + 384 + 2097152);
    }
    const fd_tensor tokens = {.stride = {0, 8192, 0, 1}};
    cr_assert_eq(fd_kv_at(&dense, &tokens, 0, 524288, 0), INT64_C(4294967296));
    cr_assert_eq(fd_kv_at(&dense, &tokens, 0, INT32_MAX, 0), INT64_C(17592186036224));
}

/* All signal, of the logits and of the values, in one dimension of the upper half. */
Test(bug_numbers, I06_signal_in_the_upper_dimensions)
{
    const int32_t dims[] = {16, 32, 64, 80, 96, 128, 192, 256, 320, 512, 576};
    for (size_t x = 0; x < sizeof dims / sizeof *dims; x++) {
        const int32_t dim = dims[x], places[] = {dim / 2, dim - dim / 4 - 1, dim - 1};
        for (int y = 0; y < 3; y++) {
            fd_scene s = make(1, 2, 1, dim, 9, all_dtypes[(x + (size_t)y) % 3], LENS(9));
            const fd_problem *p = &s.problem;
            set_q(&s, 0.0f);
            set_visible(&s, &p->k, 0.0f);
            set_visible(&s, &p->v, 0.0f);
            want_all(&s, 0.0f);
            for (int32_t h = 0; h < 2; h++) {
                fd_store(&p->q, fd_row_at(&p->q, 0, 0, h) + places[y], 1.0f);
                s.want[h * dim + places[y]] = 6.0f;
            }
            for (int64_t j = 0; j < 9; j++) {
                fd_store(&p->k, fd_kv_at(p, &p->k, 0, j, 0) + places[y], j == 5 ? 0.0f : -256.0f);
                fd_store(&p->v, fd_kv_at(p, &p->v, 0, j, 0) + places[y], (float)(j + 1));
            }
            finish(&s, "I06");
        }
    }
}

Test(bug_numbers, I07_head_dims_that_lanes_do_not_divide)
{
    const int32_t dims[] = {8, 16, 32, 40, 48, 72, 80, 96, 112};
    for (size_t x = 0; x < sizeof dims / sizeof *dims; x++) {
        judge_random(1, 2, 1, dims[x], 40, LENS(33), "I07");
    }
}

/* o and lse with the heads inside or outside the batch, with gaps between rows and elements; gaps must stay as they are. */
Test(bug_numbers, I10_strides_of_the_outputs)
{
    const int64_t strides[][4] = {{32, 32, 8, 1}, {8, 16, 16, 1}, {8, 16, 31, 1}, {100, 100, 24, 1}, {128, 128, 31, 3}};
    for (size_t x = 0; x < sizeof strides / sizeof *strides; x++) {
        fd_scene s = make(2, 4, 2, 8, 20, FD_F32, LENS(20, 13));
        fd_buffer_free(&s.o);
        fd_buffer_free(&s.lse);
        cr_assert(fd_buffer_alloc(&s.o, 300 * sizeof(float)) == FD_OK &&
                  fd_buffer_alloc(&s.lse, 100 * sizeof(float)) == FD_OK);
        s.problem.o.data = s.o.data;
        s.problem.lse.data = s.lse.data;
        memcpy(s.problem.o.stride, strides[x], sizeof strides[x]);
        const int64_t lse_stride[4] = {x % 2 == 0 ? 40 : 1, 40, x % 2 == 0 ? 3 : 2, 1};
        memcpy(s.problem.lse.stride, lse_stride, sizeof lse_stride);
        s.problem.features = fd_features(&s.problem);
        fd_scene_fill(&s, 4, 1.0f, 1.0f, 1.0f);
        finish(&s, "I10");
    }
}

/* q, k and v with gaps between the elements of a row, NaN in them, or with one element a row, repeated. */
Test(bug_numbers, I10_strides_within_the_rows_of_the_inputs)
{
    for (int64_t step = 0; step <= 3; step++) {
        fd_scene s = make(2, 4, 2, 8, 20, FD_F32, LENS(20, 13));
        fd_tensor *const inputs[] = {&s.problem.q, &s.problem.k, &s.problem.v};
        fd_buffer *const buffers[] = {&s.q, &s.k, &s.v};
        for (int t = 0; t < 3; t++) {
            const size_t bytes = 3 * buffers[t]->bytes;
            fd_buffer_free(buffers[t]);
            cr_assert_eq(fd_buffer_alloc(buffers[t], bytes), FD_OK);
            fd_poison_fill(buffers[t]->data, bytes, FD_POISON_NAN);
            inputs[t]->data = buffers[t]->data;
            for (int d = 0; d < 3; d++) {
                inputs[t]->stride[d] *= step > 0 ? step : 1;
            }
            inputs[t]->stride[3] = step;
        }
        s.problem.features = fd_features(&s.problem);
        fd_scene_fill(&s, 6, 1.0f, 1.0f, 1.0f);
        finish(&s, "I10");
    }
}

/* One buffer [batch, token, q | gap | k | gap | v | gap]; q is that of the last token. NaN in the gaps. */
Test(bug_numbers, I11_slices_of_one_fused_buffer)
{
    enum { BATCH = 4, TOKENS = 19, GAP = 3, Q = 4 * 16, KV = 2 * 16, ROW = Q + 2 * KV + 3 * GAP };
    for (int d = 0; d < 3; d++) {
        fd_scene s = make(BATCH, 4, 2, 16, TOKENS, all_dtypes[d], LENS(19, 0, 7, 18));
        fd_problem *p = &s.problem;
        const size_t element = fd_dtype_bytes(all_dtypes[d]);
        fd_buffer_free(&s.q);
        cr_assert_eq(fd_buffer_alloc(&s.q, BATCH * TOKENS * ROW * element), FD_OK);
        fd_poison_fill(s.q.data, s.q.bytes, FD_POISON_NAN);
        const int64_t stride[4] = {TOKENS * ROW, ROW, 16, 1};
        fd_tensor *const slices[] = {&p->q, &p->k, &p->v};
        const size_t first[] = {(TOKENS - 1) * ROW, Q + GAP, Q + KV + 2 * GAP};
        for (int t = 0; t < 3; t++) {
            slices[t]->data = s.q.data + first[t] * element;
            memcpy(slices[t]->stride, stride, sizeof stride);
        }
        p->sm_scale = 0.25f;
        fd_scene_fill(&s, 5, 1.0f, 1.0f, 1.0f);
        finish(&s, "I11");
    }
}

/* One KV head, read as eight by a stride of 0: the bits of a cache with one. */
Test(bug_numbers, I12_kv_heads_expanded_by_stride_0)
{
    const int32_t kv_lens[] = {31, 32, 33, 65, 97};
    for (int x = 0; x < 10; x++) {
        const int32_t dim = x < 5 ? 64 : 512, dtype = all_dtypes[x % 2 == 0 ? 2 : 0];
        fd_scene s = make(1, 8, 1, dim, 100, dtype, &kv_lens[x % 5]);
        float *o = calloc((size_t)(16 * dim), sizeof *o), lse[2][8];
        char why[200];
        s.problem.sm_scale = 0.125f;
        fd_scene_fill(&s, 6, 1.0f, 1.0f, 1.0f);
        for (int k = 0; k < fd_ladder_count; k++) {
            if (!takes(&s, fd_ladder[k])) {
                continue;
            }
            for (int expanded = 0; expanded < 2; expanded++) {
                s.problem.heads_kv = expanded ? 8 : 1;
                s.problem.k.stride[2] = s.problem.v.stride[2] = expanded ? 0 : dim;
                cr_assert_eq(fd_scene_run(&s, fd_ladder[k], (fd_path){0, 32}, FD_POISON_NAN, NULL,
                                          o + expanded * 8 * dim, lse[expanded], why, sizeof why),
                             FD_OK, "%s", why);
            }
            cr_assert(memcmp(o, o + 8 * dim, (size_t)(8 * dim) * sizeof *o) == 0 && memcmp(lse[0], lse[1], 32) == 0,
                      "%s", fd_ladder[k]->name);
        }
        free(o);
        finish(&s, "I12");
    }
}

/* ---- N: numbers ---- */

/* Logits 300 + N(0, 1), in fp16 15 + N(0, 1): dimension 0 brings the offset. */
Test(bug_numbers, N01_a_common_logit_beyond_exp)
{
    for (int d = 0; d < 3; d++) {
        fd_scene s = make(2, 4, 2, 16, 70, all_dtypes[d], LENS(70, 33));
        const fd_problem *p = &s.problem;
        s.problem.sm_scale = 0.25f;
        fd_scene_fill(&s, 8, 1.0f, 1.0f, 1.0f);
        for (int32_t b = 0; b < 2; b++) {
            for (int32_t h = 0; h < 4; h++) {
                fd_store(&p->q, fd_row_at(&p->q, b, 0, h), 4.0f);
            }
            for (int64_t j = 0; j < fd_kv_len(p, b); j++) {
                for (int32_t h = 0; h < 2; h++) {
                    fd_store(&p->k, fd_kv_at(p, &p->k, b, j, h), all_dtypes[d] == FD_F16 ? 15.0f : 300.0f);
                }
            }
        }
        finish(&s, "N01");
    }
}

static void judge_flat(int32_t kv_len, float q, float k, float v, int32_t dim, int32_t dtype, const char *name)
{
    static const fd_path paths[] = {{0, 0}, {1, 0}, {7, 0}, {0, 1000}};
    fd_scene s = make(1, 1, 1, dim, kv_len, dtype, &kv_len);
    s.paths = paths;
    s.num_paths = sizeof paths / sizeof *paths;
    set_q(&s, q);
    set_visible(&s, &s.problem.k, k);
    set_visible(&s, &s.problem.v, v);
    want_all(&s, v);
    finish(&s, name);
}

/* Logits beyond 65504 before scaling, sums beyond 65504, sums that a 16-bit accumulator stops at. */
Test(bug_numbers, N02_beyond_the_range_of_fp16)
{
    for (int d = 0; d < 3; d++) {
        judge_flat(33, 256.0f, 256.0f, 1.0f, 128, all_dtypes[d], "N02 a");
        judge_flat(40000, 0.0f, 1.0f, 4.0f, 1, all_dtypes[d], "N02 b");
        judge_flat(3000, 0.0f, 1.0f, 1.0f, 1, all_dtypes[d], "N02 c");
    }
}

/* A request alone, and as the first and the last of a batch of longer ones: the same bits, for the same split size. */
Test(bug_numbers, N03_batch_mates_change_no_bit)
{
    int32_t kv_lens[64];
    for (int b = 0; b < 64; b++) {
        kv_lens[b] = b == 0 || b == 63 ? 77 : 1 + b * 37 % 300;
    }
    fd_scene many = make(64, 2, 1, 8, 300, FD_F32, kv_lens), alone = make(1, 2, 1, 8, 300, FD_F32, kv_lens);
    fd_scene_fill(&many, 9, 1.0f, 1.0f, 1.0f);
    fd_scene_fill(&alone, 9, 1.0f, 1.0f, 1.0f); /* the numbers of row 0, by their address */
    const fd_problem *p = &many.problem;
    memcpy(many.q.data + 63 * 16 * sizeof(float), many.q.data, 16 * sizeof(float));
    memcpy((float *)p->k.data + 63 * p->k.stride[0], p->k.data, (size_t)p->k.stride[0] * sizeof(float));
    memcpy((float *)p->v.data + 63 * p->v.stride[0], p->v.data, (size_t)p->v.stride[0] * sizeof(float));
    const fd_path paths[] = {{0, 0}, {0, 1}, {0, 16}, {0, 100}};
    float o[64 * 16], lse[128], o_alone[16], lse_alone[2];
    char why[200];
    for (int k = 0; k < fd_ladder_count; k++) {
        if (!takes(&many, fd_ladder[k])) {
            continue;
        }
        for (size_t x = 0; x < sizeof paths / sizeof *paths; x++) {
            cr_assert_eq(fd_scene_run(&many, fd_ladder[k], paths[x], FD_POISON_NAN, NULL, o, lse, why, sizeof why),
                         FD_OK);
            cr_assert_eq(
                fd_scene_run(&alone, fd_ladder[k], paths[x], FD_POISON_INF, NULL, o_alone, lse_alone, why, sizeof why),
                FD_OK);
            for (int b = 0; b < 64; b += 63) {
                cr_assert(memcmp(o + b * 16, o_alone, sizeof o_alone) == 0 && memcmp(lse + b * 2, lse_alone, 8) == 0,
                          "%s, row %d, split_size %d", fd_ladder[k]->name, b, (int)paths[x].split_size);
            }
        }
    }
    fd_scene_free(&many);
    finish(&alone, "N03");
}

/* ---- S: two shards with partition sums 2 and 8, values 0 and 1: o = 0.8, and lse = ln 10, in either order. Mixed bases of
 * the logarithm give 0.723 or 0.881. ---- */

Test(bug_numbers, S03_partition_sums_2_and_8)
{
    const fd_path two = {0, 8};
    for (int first = 0; first < 2; first++) { /* 0: the shard of sum 2 is the first */
        fd_scene s = make(1, 1, 1, 1, 16, FD_F32, LENS(16));
        s.paths = &two;
        s.num_paths = 1;
        set_q(&s, 1.0f);
        for (int64_t j = 0; j < 16; j++) { /* sum 2: two logits 0, six logits -256 */
            const bool small = j / 8 == first;
            set_row(&s, &s.problem.k, 0, j, small && j % 8 >= 2 ? -256.0f : 0.0f);
            set_row(&s, &s.problem.v, 0, j, small ? 0.0f : 1.0f);
        }
        want_all(&s, 0.8f);
        judge(&s, "S03");
        for (int k = 0; k < fd_ladder_count; k++) {
            if (!takes(&s, fd_ladder[k])) {
                continue;
            }
            float o, lse;
            char why[200];
            cr_assert_eq(fd_scene_run(&s, fd_ladder[k], two, FD_POISON_NAN, NULL, &o, &lse, why, sizeof why), FD_OK);
            cr_assert_float_eq((double)lse, 2.302585093, 1e-6, "%s", fd_ladder[k]->name);
        }
        fd_scene_free(&s);
    }
}

/* ---- Counterexamples to earlier forms of the bound: it must cover them, although as a pass line it is vacuous there ---- */

Test(bug_numbers, the_bound_covers_its_counterexamples)
{
    static const char *const names[] = {"underflow", "alpha-l", "lse"};
    const fd_libm_error libm = fd_libm_error_get("/nonexistent/libm_error.csv");
    const fd_rounding rounding = fd_host_rounding(&libm);
    for (int x = 0; x < 3; x++) {
        fd_case c = {.name = "counterexample",
                     .family = "counterexample",
                     .batch = 1,
                     .heads_q = 1,
                     .heads_kv = 1,
                     .head_dim = x == 2 ? 2 : 1,
                     .head_dim_v = 1,
                     .kv_lens = {x == 1 ? 24 : 2},
                     .kv_len = x == 1 ? 24 : 2,
                     .split_size = 2};
        snprintf(c.argument, sizeof c.argument, "%s", names[x]);
        char why[200] = "";
        fd_scene s = make(1, 1, 1, c.head_dim, c.kv_len, FD_F32, c.kv_lens);
        s.problem.head_dim_v = 1;
        s.problem.v.stride[2] = 1;
        s.problem.v.stride[1] = 1;
        s.problem.o.stride[2] = 1;
        s.problem.features = fd_features(&s.problem);
        cr_assert_eq(fd_gen_fill(&c, &s.problem, why, sizeof why), FD_OK, "%s", why);
        const fd_path paths[] = {{0, 0}, {0, 2}, {0, 1}};
        s.paths = paths;
        s.num_paths = 3;
        cr_assert_eq(fd_scene_judge(&s, &rounding, why, sizeof why), FD_OK, "%s: %s", names[x], why);

        fd_oracle_row row;
        float o, lse;
        cr_assert_eq(fd_oracle_row_init(&row, c.kv_len, 1), FD_OK);
        cr_assert_eq(fd_oracle(&s.problem, 0, 0, 0, FD_ORACLE_BITS, &row, why, sizeof why), FD_OK);
        cr_assert_eq(
            fd_scene_run(&s, fd_ladder_find(5), (fd_path){0, 2}, FD_POISON_NAN, NULL, &o, &lse, why, sizeof why),
            FD_OK);
        const double err = x == 2 ? fabs((double)lse - row.lse) : fabs((double)o - row.o[0]) / row.gauge[0];
        cr_assert(err > 0.1, "%s is no counterexample: %g", names[x], err); /* thousands of roundings, from a handful */
        fd_oracle_row_free(&row);
        fd_scene_free(&s);
    }
}
