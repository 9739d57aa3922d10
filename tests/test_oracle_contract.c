/* test_oracle_contract.c: what the oracle refuses, by name; what it does not read; and that threads do not share anything. */
#include <criterion/criterion.h>
#include <math.h>
#include <mpfr.h>
#include <pthread.h>
#include <stdlib.h>

#include "oracle_fast.h"
#include "test_oracle.h"

/* ---- Refusals ---------------------------------------------------------------------------------- */

static void expect_refusal(const fd_problem *p, int32_t b, int32_t t, int32_t h, int bits, fd_oracle_row *row,
                           fd_status status, const char *word)
{
    char why[256] = "";
    const fd_status got = fd_oracle(p, b, t, h, bits, row, why, sizeof why);
    cr_expect(got == status && strstr(why, word) != NULL && strchr(why, '\n') == NULL, "want \"%s\", got %d, \"%s\"",
              word, (int)got, why);
    if (bits == FD_ORACLE_BITS) { /* the fast one takes no bits, and refuses in the same words */
        char fast[256] = "";
        cr_expect_eq(fd_oracle_fast(p, b, t, h, row, fast, sizeof fast), status);
        cr_expect_str_eq(fast, why);
    }
}

Test(oracle_contract, refuses_visible_nan_by_name_and_reads_no_tail)
{
    fd_problem p = problem(2, 4, 2, 3, 2, 9, FD_F32, FD_BF16, 1, 1);
    p.kv_lens = tensor(FD_I32, 2, 1, 1, 1, 1, 0);
    memcpy(p.kv_lens.data, (const int32_t[]){6, 8}, 8);
    p.features = fd_features(&p);
    fill_random(&p, 1.0f, 1.0f);
    const struct {
        fd_tensor *x;
        int32_t y, h, i;
        const char *name;
    } bad[] = {
        {&p.q, 0, 3, 2, "q[1, 0, 3, 2] is"}, {&p.k, 7, 1, 2, "k[1, 7, 1, 2] is"}, {&p.v, 7, 1, 1, "v[1, 7, 1, 1] is"}};
    fd_oracle_row row = ask(&p, 1, 3, FD_ORACLE_BITS); /* fill_random left NaN in the tails */
    const double o = row.o[1];
    for (int c = 0; c < 6; c++) {
        fd_tensor *x = bad[c / 2].x;
        const int64_t at = x->stride[0] + bad[c / 2].y * x->stride[1] + bad[c / 2].h * x->stride[2] + bad[c / 2].i;
        const float kept = fd_load(x, at);
        fd_store(x, at, c % 2 == 0 ? (float)NAN : -(float)INFINITY);
        expect_refusal(&p, 1, 0, 3, FD_ORACLE_BITS, &row, FD_INVALID, bad[c / 2].name);
        fd_store(x, at, kept);
    }
    fd_oracle_row_free(&row);
    row = ask(&p, 1, 3, FD_ORACLE_BITS);
    cr_expect_eq(row.o[1], o, "o %a after, %a before", row.o[1], o);
    ((int32_t *)p.kv_lens.data)[1] = 9; /* the first slot of the tail becomes visible */
    expect_refusal(&p, 1, 0, 3, FD_ORACLE_BITS, &row, FD_INVALID, "k[1, 8, 1, 0] is");
    fd_oracle_row_free(&row);
    drop(&p);
}

Test(oracle_contract, refuses_what_it_does_not_know_by_name)
{
    const uint32_t bits[] = {FD_PAGED, FD_WINDOW, FD_SOFTCAP, FD_SINKS, FD_SCALES, FD_SHARD};
    const fd_problem plain = problem(1, 1, 1, 4, 4, 8, FD_F32, FD_F32, 1, 0);
    float aside[64] = {0};
    int32_t page = 0;
    fd_oracle_row row;
    cr_assert_eq(fd_oracle_row_init(&row, 8, 4), FD_OK, "out of memory");
    for (size_t c = 0; c < sizeof bits / sizeof *bits; c++) {
        fd_problem p = plain;
        const fd_tensor more = {.data = aside, .stride = {1, 1, 1, 1}};
        p.page_size = bits[c] == FD_PAGED ? 8 : 0;
        p.num_pages = bits[c] == FD_PAGED ? 1 : 0;
        p.page_table = bits[c] == FD_PAGED ? (fd_tensor){&page, {1, 1, 1, 1}, FD_I32, FD_HOST} : (fd_tensor){0};
        p.window_left = bits[c] == FD_WINDOW ? 4 : -1;
        p.softcap = bits[c] == FD_SOFTCAP ? 30.0f : 0.0f;
        p.sinks = bits[c] == FD_SINKS ? more : (fd_tensor){0};
        p.k_scale = bits[c] == FD_SCALES ? more : (fd_tensor){0};
        p.kv_start = bits[c] == FD_SHARD ? 8 : 0;
        p.features = fd_features(&p);
        cr_expect_eq(p.features, bits[c], "the test sets 0x%x", p.features);
        expect_refusal(&p, 0, 0, 0, FD_ORACLE_BITS, &row, FD_UNSUPPORTED,
                       bits[c] == FD_WINDOW ? "window_left 4" : fd_feature_name(bits[c]));
    }
    fd_problem p = plain;
    p.k.space = FD_DEVICE;
    expect_refusal(&p, 0, 0, 0, FD_ORACLE_BITS, &row, FD_UNSUPPORTED, "device memory");
    p = plain;
    p.v.dtype = FD_I8;
    expect_refusal(&p, 0, 0, 0, FD_ORACLE_BITS, &row, FD_UNSUPPORTED, "int8");
    p = plain;
    expect_refusal(&p, 1, 0, 0, FD_ORACLE_BITS, &row, FD_INVALID, "[1, 0, 0]");
    expect_refusal(&p, 0, 0, -1, FD_ORACLE_BITS, &row, FD_INVALID, "[0, 0, -1]");
    expect_refusal(&p, 0, 0, 0, FD_ORACLE_BITS - 1, &row, FD_INVALID, "bits is 127");
    fd_oracle_row_free(&row);
    cr_assert_eq(fd_oracle_row_init(&row, 7, 4), FD_OK, "out of memory");
    expect_refusal(&p, 0, 0, 0, FD_ORACLE_BITS, &row, FD_INVALID, "7 keys");
    fd_oracle_row_free(&row);
    cr_expect_eq(fd_oracle_row_init(&row, INT64_MAX / 8, 4), FD_NO_MEMORY, "an impossible row was allocated");
    drop(&p);
}

/* ---- Threads ----------------------------------------------------------------------------------- */

typedef struct share {
    const fd_problem *p;
    int32_t head;
    fd_oracle_row row, fast;
} share;

static void *answer(void *arg)
{
    share *mine = arg;
    char why[256];
    for (int repeat = 0; repeat < 20; repeat++) {
        fd_oracle(mine->p, 0, 0, mine->head, FD_ORACLE_BITS, &mine->row, why, sizeof why);
        fd_oracle_fast(mine->p, 0, 0, mine->head, &mine->fast, why, sizeof why);
    }
    return NULL;
}

Test(oracle_contract, two_threads_give_the_bits_of_one)
{
    cr_expect(mpfr_buildopt_tls_p(), "this MPFR was built without thread-safe caches");
    fd_problem p = problem(1, 2, 1, 16, 16, 64, FD_F32, FD_F32, 1, 0);
    fill_random(&p, 3.0f, 1.0f);
    share shares[2];
    pthread_t threads[2];
    for (int32_t c = 0; c < 2; c++) {
        shares[c].p = &p;
        shares[c].head = c;
        cr_assert_eq(fd_oracle_row_init(&shares[c].row, 64, 16), FD_OK, "out of memory");
        cr_assert_eq(fd_oracle_row_init(&shares[c].fast, 64, 16), FD_OK, "out of memory");
        cr_assert_eq(pthread_create(&threads[c], NULL, answer, &shares[c]), 0, "no thread");
    }
    for (int32_t c = 0; c < 2; c++) {
        pthread_join(threads[c], NULL);
        fd_oracle_row alone = ask(&p, 0, c, FD_ORACLE_BITS);
        const size_t bytes = (3 * 64 + 7 * 16) * sizeof(double);
        cr_expect_eq(memcmp(alone.storage, shares[c].row.storage, bytes), 0, "head %d differs", c);
        cr_expect_eq(alone.lse, shares[c].row.lse, "lse of head %d differs", c);
        char why[256];
        cr_assert_eq(fd_oracle_fast(&p, 0, 0, c, &alone, why, sizeof why), FD_OK);
        cr_expect_eq(memcmp(alone.storage, shares[c].fast.storage, bytes), 0, "head %d of the fast one differs", c);
        fd_oracle_row_free(&alone);
        fd_oracle_row_free(&shares[c].row);
        fd_oracle_row_free(&shares[c].fast);
    }
    drop(&p);
}
