/* test_cases.c: the case table is read strictly; an instance has guards that notice a byte, and poison in exactly the
 * places that are no visible token. */
#define _POSIX_C_SOURCE 200809L /* getpid */

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gen.h"
#include "instance.h"

/* ---- Reading ---- */

#define VERSION "# fd-cases version 1\n"
#define COLUMNS "name,family,argument,dtypes,heads,head_dim,kv_len,split_size,layout,size,plot,seed\n"
#define HEAD VERSION COLUMNS

static const char *path(void)
{
    static char name[4096];
    const char *folder = getenv("TMPDIR");
    snprintf(name, sizeof name, "%s/fd-test-%ld.csv", folder != NULL ? folder : "/tmp", (long)getpid());
    return name;
}

static fd_status read_text(const char *text, size_t bytes, fd_case_table *table, char *why, size_t n)
{
    FILE *file = fopen(path(), "wb");
    cr_assert_not_null(file, "%s cannot be written", path());
    cr_assert(fwrite(text, 1, bytes, file) == bytes && fclose(file) == 0);
    const fd_status status = fd_cases_read(path(), table, why, n);
    remove(path());
    return status;
}

static fd_case_table read_good(const char *text)
{
    fd_case_table table;
    char why[512] = "";
    cr_assert(read_text(text, strlen(text), &table, why, sizeof why) == FD_OK, "%s", why);
    return table;
}

Test(cases, a_line_is_the_cross_product_of_its_lists)
{
    fd_case_table table = read_good(HEAD "# comment\n\n"
                                         ",peaky,8 40,fff bbf,6:2,64 96/64,7 1000+0+17,0 100,bshd bhsd,class,0,5\n"
                                         "mine,gaussian,,hhh,1:1,1,0,0,bshd,full,1,18446744073709551615\n");
    cr_assert(table.count == 2 * 2 * 2 * 2 * 2 * 2 + 1);
    const fd_case *c = &table.cases[0];
    cr_assert_str_eq(c->name, "peaky:8/fff/h6:2/d64/n7");
    cr_assert(c->batch == 1 && c->heads_q == 6 && c->heads_kv == 2 && c->head_dim == 64 && c->head_dim_v == 64);
    cr_assert(c->kv_len == 7 && c->kv_lens[0] == 7 && c->split_size == 0 && c->layout == FD_LAYOUT_BSHD);
    cr_assert(c->size == FD_CLASS && !c->plot && c->dtype_q == FD_F32 && c->dtype_o == FD_F32);
    c = &table.cases[63];
    cr_assert_str_eq(c->name, "peaky:40/bbf/h6:2/d96/64/n1000+0+17/s100/bhsd");
    cr_assert(c->batch == 3 && c->kv_lens[0] == 1000 && c->kv_lens[1] == 0 && c->kv_lens[2] == 17 && c->kv_len == 1000);
    cr_assert(c->head_dim == 96 && c->head_dim_v == 64 && c->split_size == 100 && c->layout == FD_LAYOUT_BHSD);
    cr_assert(c->dtype_q == FD_BF16 && c->dtype_kv == FD_BF16 && c->dtype_o == FD_F32);
    cr_assert_str_eq(c->argument, "40");
    c = &table.cases[64];
    cr_assert_str_eq(c->name, "mine");
    cr_assert(c->plot && c->size == FD_FULL && c->dtype_kv == FD_F16 && c->kv_len == 0 && c->batch == 1);
    for (int32_t x = 0; x < table.count; x++) {
        for (int32_t y = 0; y < x; y++) {
            cr_assert(table.cases[x].seed != table.cases[y].seed, "%s and %s", table.cases[x].name,
                      table.cases[y].name);
        }
    }
    fd_cases_free(&table);
    cr_assert(table.cases == NULL && table.count == 0);
}

Test(cases, query_rows_and_the_mask_are_a_suffix_of_the_heads)
{
    fd_case_table table =
        read_good(HEAD ",gaussian,,fff,6:2 6:2q1 6:2q3 6:2q1c 6:2q3c 6:2q3c0 6:2q16c5,64,7,0,bshd,small,0,5\n");
    const struct {
        const char *name;
        int32_t q_len, ahead;
        bool causal;
    } want[] = {{"h6:2", 1, 0, false},   {"h6:2q1", 1, 0, false},  {"h6:2q3", 3, 0, false},   {"h6:2q1c", 1, 0, true},
                {"h6:2q3c", 3, 0, true}, {"h6:2q3c0", 3, 0, true}, {"h6:2q16c5", 16, 5, true}};
    cr_assert_eq(table.count, 7);
    for (int32_t x = 0; x < 7; x++) {
        const fd_case *c = &table.cases[x];
        char name[64];
        snprintf(name, sizeof name, "gaussian/fff/%s/d64/n7", want[x].name);
        cr_assert_str_eq(c->name, name);
        cr_assert(c->heads_q == 6 && c->heads_kv == 2 && c->q_len == want[x].q_len && c->causal == want[x].causal &&
                      c->ahead == want[x].ahead,
                  "%s", c->name);
    }
    fd_cases_free(&table);
}

Test(cases, a_range_is_a_sequence_of_each_length)
{
    fd_case_table table = read_good(HEAD ",gaussian,,fff,1:1,8,9+2..5+7..7,0,bshd,small,0,5\n");
    const int32_t want[] = {9, 2, 3, 4, 5, 7};
    const fd_case *c = &table.cases[0];
    cr_assert_str_eq(c->name, "gaussian/fff/h1:1/d8/n9+2..5+7..7");
    cr_assert(c->batch == 6 && c->kv_len == 9 && memcmp(c->kv_lens, want, sizeof want) == 0);
    fd_cases_free(&table);
}

/* What the table with one bad line must say, beside the file and line 3. */
Test(cases, bad_lines_are_refused)
{
    const struct {
        const char *line, *says;
    } bad[] = {
        {",gaussian,,fff,4:1,64,10x,0,bshd,small,0,1", "column kv_len: '10x'"},
        {",gaussian,,fff,4:1,64,-1,0,bshd,small,0,1", "column kv_len: '-1'"},
        {",gaussian,,fff,4:1,64,007,0,bshd,small,0,1", "column kv_len: '007'"},
        {",gaussian,,fff,4:1,64,2147483648,0,bshd,small,0,1", "column kv_len: '2147483648'"},
        {",gaussian,,fff,4:1,64,99999999999999999999999,0,bshd,small,0,1", "column kv_len"},
        {",gaussian,,fff,4:1,64,5+,0,bshd,small,0,1", "column kv_len: '5+'"},
        {",gaussian,,fff,4:1,64,0..319+1,0,bshd,small,0,1", "more than 320 sequences"},
        {",gaussian,,fff,4:1,64,1..2147483647,0,bshd,small,0,1", "more than 320 sequences"},
        {",gaussian,,fff,4:1,64,5..4,0,bshd,small,0,1", "column kv_len: '5..4'"},
        {",gaussian,,fff,4:1,64,5.6,0,bshd,small,0,1", "column kv_len: '5.6'"},
        {",gaussian,,fff,4:1,64,5..,0,bshd,small,0,1", "column kv_len: '5..'"},
        {",gaussian,,fff,4:1,64,5  6,0,bshd,small,0,1", "column kv_len: is empty"},
        {",gaussian,,fff,4:1,64,,0,bshd,small,0,1", "column kv_len: is empty"},
        {",gausian,,fff,4:1,64,5,0,bshd,small,0,1", "column family: unknown family 'gausian'"},
        {",,,fff,4:1,64,5,0,bshd,small,0,1", "column family: is empty"},
        {",gaussian-that-is-much-too-long,,fff,4:1,64,5,0,bshd,small,0,1", "longer than 23"},
        {",peaky,9,fff,4:1,64,5,0,bshd,small,0,1", "family peaky has no argument '9'"},
        {",attained,,fff,1:1,64,16,16,bshd,small,0,1", "attained needs head_dim 1"},
        {",gaussian,,ff,4:1,64,5,0,bshd,small,0,1", "column dtypes: 'ff'"},
        {",gaussian,,fxf,4:1,64,5,0,bshd,small,0,1", "column dtypes: 'fxf'"},
        {",gaussian,,fff,6:4,64,5,0,bshd,small,0,1", "heads_q 6 is not a multiple of heads_kv 4"},
        {",gaussian,,fff,6:0,64,5,0,bshd,small,0,1", "column heads: '6:0'"},
        {",gaussian,,fff,0:1,64,5,0,bshd,small,0,1", "column heads: '0:1'"},
        {",gaussian,,fff,6,64,5,0,bshd,small,0,1", "column heads: '6'"},
        {",gaussian,,fff,4:1q0,64,5,0,bshd,small,0,1", "column heads: '4:1q0'"},
        {",gaussian,,fff,4:1q,64,5,0,bshd,small,0,1", "column heads: '4:1q'"},
        {",gaussian,,fff,4:1c,64,5,0,bshd,small,0,1", "column heads: '4:1c'"},
        {",gaussian,,fff,4:1q2x,64,5,0,bshd,small,0,1", "column heads: '4:1q2x'"},
        {",gaussian,,fff,4:1q2c1x,64,5,0,bshd,small,0,1", "column heads: '4:1q2c1x'"},
        {",real,0,fff,12:12q2,32,347+347+347+347,0,bshd,small,0,1", "one query row"},
        {",gaussian,,fff,4:1,0,5,0,bshd,small,0,1", "column head_dim: '0'"},
        {",gaussian,,fff,4:1,64/,5,0,bshd,small,0,1", "column head_dim: '64/'"},
        {",gaussian,,fff,4:1,1025,5,0,bshd,small,0,1", "head_dim 1025 is above 1024"},
        {",gaussian,,fff,4:1,64,5,-1,bshd,small,0,1", "column split_size: '-1'"},
        {",gaussian,,fff,4:1,64,5,0,bsdh,small,0,1", "column layout: 'bsdh'"},
        {",gaussian,,fff,4:1,64,5,0,bshd,tiny,0,1", "column size: 'tiny'"},
        {",gaussian,,fff,4:1,64,5,0,bshd,small,2,1", "column plot: '2'"},
        {",gaussian,,fff,4:1,64,5,0,bshd,small,0,18446744073709551616", "column seed"},
        {",gaussian,,fff,4:1,64,5,0,bshd,small,0", "11 fields, not 12: is the line cut off?"},
        {",gaussian,,fff,4:1,64,5,0,bshd,small,0,1,2", "more than 12 fields"},
        {"x,gaussian,,fff bbb,4:1,64,5,0,bshd,small,0,1", "'x' names 2 cases"},
        {",gaussian,,fff,4:1,64,5 5,0,bshd,small,0,1", "'gaussian/fff/h4:1/d64/n5' is there already, from line 3"},
        {",gaussian,,fff,4:1,64,\"5\",0,bshd,small,0,1", "quote"},
        {"this-name-is-longer-than-a-name-can-be-because-it-has-a-hundred-characters-and-the-limit-is-ninety-five-x,"
         "gaussian,,fff,4:1,64,5,0,bshd,small,0,1",
         "longer than 95"},
    };
    for (size_t x = 0; x < sizeof bad / sizeof *bad; x++) {
        fd_case_table table;
        char text[1024], why[512] = "", place[4200];
        snprintf(text, sizeof text, HEAD "%s\n", bad[x].line);
        snprintf(place, sizeof place, "%s:3: ", path());
        cr_assert(read_text(text, strlen(text), &table, why, sizeof why) == FD_INVALID, "taken: %s", bad[x].line);
        cr_assert(strstr(why, bad[x].says) != NULL, "'%s' does not say '%s'", why, bad[x].says);
        cr_assert(strncmp(why, place, strlen(place)) == 0 && strchr(why, '\n') == NULL, "%s", why);
        cr_assert(table.cases == NULL && table.count == 0);
    }
}

Test(cases, bad_files_are_refused)
{
#define GOOD_LINE ",gaussian,,fff,4:1,64,5,0,bshd,small,0,1"
    const struct {
        const char *text, *says;
    } bad[] = {
        {"", ":1: the file is empty"},
        {"# fd-cases version 2\n" COLUMNS GOOD_LINE "\n", ":1: '# fd-cases version 2' is not '# fd-cases version 1'"},
        {COLUMNS GOOD_LINE "\n", ":1: 'name,family"},
        {VERSION GOOD_LINE "\n", ":2: the first line that is no comment must name the columns"},
        {VERSION, ":1: no case"},
        {HEAD, ":2: no case"},
        {HEAD GOOD_LINE, "no newline at the end"},
        {HEAD GOOD_LINE "\r\n", ":3: a NUL, carriage return"},
        {HEAD GOOD_LINE "\n\n" GOOD_LINE "\n",
         ":5: column name: 'gaussian/fff/h4:1/d64/n5' is there already, from line 3"},
    };
    fd_case_table table;
    char why[512];
    for (size_t x = 0; x < sizeof bad / sizeof *bad; x++) {
        cr_assert(read_text(bad[x].text, strlen(bad[x].text), &table, why, sizeof why) == FD_INVALID, "taken: %s",
                  bad[x].says);
        cr_assert(strstr(why, bad[x].says) != NULL, "'%s' does not say '%s'", why, bad[x].says);
    }
    cr_assert(read_text(HEAD GOOD_LINE "\0\n", strlen(HEAD GOOD_LINE) + 2, &table, why, sizeof why) == FD_INVALID);
    cr_assert(strstr(why, ":3: a NUL") != NULL, "%s", why);
    cr_assert(fd_cases_read("/nowhere/cases.csv", &table, why, sizeof why) == FD_INVALID);
    cr_assert(strstr(why, "/nowhere/cases.csv") != NULL, "%s", why);
}

Test(cases, products_are_limited_before_they_are_built)
{
    char text[4096] = HEAD, why[512] = "";
    fd_case_table table;
    strcat(text, ",gaussian,,fff bbb hhh");
    for (int column = 0; column < 3; column++) {
        strcat(text, ",");
        for (int x = 1; x <= 60; x++) {
            char item[24];
            snprintf(item, sizeof item, "%s%d%s", x > 1 ? " " : "", x, column == 0 ? ":1" : "");
            strcat(text, item);
        }
    }
    strcat(text, ",0,bshd,small,0,1\n");
    cr_assert(read_text(text, strlen(text), &table, why, sizeof why) == FD_INVALID);
    cr_assert(strstr(why, "the lists of this line make more than 20000 cases") != NULL, "%s", why);
}

Test(cases, the_table_keeps_its_promises)
{
    fd_case_table table;
    char why[512] = "", file[4096];
    const char *root = getenv("FD_DATA");
    snprintf(file, sizeof file, "%s/cases.csv", root != NULL ? root : "data");
    cr_assert(fd_cases_read(file, &table, why, sizeof why) == FD_OK, "%s", why);
    double seconds = 0.0;
    int plotted = 0;
    const fd_case *guide = NULL;
    for (int32_t x = 0; x < table.count; x++) {
        const fd_case *c = &table.cases[x];
        if (strcmp(c->name, "guide-16k") == 0) {
            guide = c;
        } else if (c->size == FD_SMALL) {
            for (int32_t b = 0; b < c->batch; b++) {
                seconds += 50e-9 * (double)c->kv_lens[b] * (double)(c->head_dim + c->head_dim_v) * (double)c->heads_q;
            }
        }
        plotted += c->plot && c->size == FD_SMALL;
    }
    cr_assert(guide != NULL && guide->kv_len == 16384 && guide->heads_q == 32 && guide->heads_kv == 32 &&
              guide->head_dim == 128 && guide->split_size == 1024 && guide->dtype_kv == FD_F32);
    cr_assert(seconds < 20.0, "the oracle needs about %g s for SIZE=small", seconds);
    cr_assert(plotted == 11 + 6, "%d points of the small plot", plotted);
    fd_cases_free(&table);
}

/* ---- Buffers and instances ---- */

Test(instance, guards_notice_one_byte)
{
    const size_t sizes[] = {0, 1, 255, 256, 1000};
    for (int s = 0; s < 5; s++) {
        fd_buffer x;
        cr_assert(fd_buffer_alloc(&x, sizes[s]) == FD_OK && x.bytes == sizes[s]);
        cr_assert((uintptr_t)x.data % 256 == 0);
        memset(x.data, 0xff, x.bytes);
        cr_assert(fd_buffer_intact(&x));
        unsigned char *const places[] = {x.data - FD_GUARD_BYTES, x.data - 1, x.data + x.bytes,
                                         x.data + x.bytes + FD_GUARD_BYTES - 1};
        for (int p = 0; p < 4; p++) {
            const unsigned char before = *places[p];
            *places[p] = (unsigned char)(before ^ 1u);
            cr_assert(!fd_buffer_intact(&x), "%zu bytes, place %d", sizes[s], p);
            *places[p] = before;
            cr_assert(fd_buffer_intact(&x));
        }
        fd_buffer_free(&x);
        fd_buffer_free(&x);
    }
    fd_buffer near;
    cr_assert(fd_buffer_alloc_past(&near, 100, 16) == FD_OK && (uintptr_t)near.data % 256 == 16);
    near.data[103] ^= 1u;
    cr_expect_eq(fd_buffer_first_change(&near), 103);
    near.data[103] ^= 1u;
    near.data[-3] ^= 1u;
    cr_expect_eq(fd_buffer_first_change(&near), -3);
    fd_buffer_free(&near);
    fd_buffer x;
    cr_assert(fd_buffer_alloc(&x, SIZE_MAX - 100) == FD_NO_MEMORY);
}

static fd_case ragged_case(const char *dtypes, int32_t layout)
{
    const int32_t dtype = dtypes[0] == 'f' ? FD_F32 : dtypes[0] == 'h' ? FD_F16 : FD_BF16;
    fd_case c = {.family = "gaussian",
                 .dtype_q = dtype,
                 .dtype_kv = dtype,
                 .dtype_o = dtype,
                 .batch = 3,
                 .heads_q = 6,
                 .heads_kv = 2,
                 .head_dim = 5,
                 .head_dim_v = 3,
                 .kv_lens = {9, 0, 14},
                 .kv_len = 14,
                 .split_size = 4,
                 .layout = layout,
                 .seed = 3};
    snprintf(c.name, sizeof c.name, "ragged %s %d", dtypes, layout);
    return c;
}

/* x is the poison, as its dtype holds it. */
static bool is_poison(float x, int32_t dtype, enum fd_poison poison)
{
    const float finite = dtype == FD_BF16 ? 9984.0f : 1e4f;
    return poison == FD_POISON_NAN ? isnan(x) : poison == FD_POISON_INF ? isinf(x) : x == finite;
}

/* Every element of k or v, and so every byte of its buffer: poison where it is no visible token, and nowhere else. */
static void check_tails(const fd_instance *x, const fd_tensor *kv, const fd_buffer *buffer, int32_t dim,
                        enum fd_poison poison)
{
    const fd_problem *p = &x->problem;
    const int64_t row = kv->stride[1] < kv->stride[2] ? kv->stride[1] : kv->stride[2]; /* with its padding */
    size_t elements = 0;
    for (int32_t b = 0; b < p->batch; b++) {
        for (int64_t j = 0; j < p->kv_capacity; j++) {
            for (int32_t h = 0; h < p->heads_kv; h++) {
                for (int64_t i = 0; i < row; i++, elements++) {
                    const float value = fd_load(kv, fd_kv_at(p, kv, b, j, h) + i);
                    cr_assert(is_poison(value, kv->dtype, poison) == (i >= dim || j >= x->c.kv_lens[b]),
                              "%s poison %d: b %d j %d h %d i %d is %g", x->c.name, (int)poison, b, (int)j, h, (int)i,
                              (double)value);
                }
            }
        }
    }
    cr_assert(elements * fd_dtype_bytes(kv->dtype) == buffer->bytes);
}

/* What the contract promises of addresses, and no more: q, k, v and o at no multiple of 32, the rest at none of 8. */
Test(instance, tensors_are_aligned_as_promised_and_no_better)
{
    for (int32_t batch = 1; batch <= 4; batch++) {
        fd_case c = {.name = "aligned",
                     .family = "gaussian",
                     .dtype_q = batch % 3,
                     .dtype_kv = batch % 3,
                     .dtype_o = batch % 3,
                     .batch = batch,
                     .heads_q = 4,
                     .heads_kv = 2,
                     .head_dim = 64,
                     .head_dim_v = 32,
                     .kv_lens = {9, 0, 7, 9},
                     .kv_len = 9,
                     .seed = 1};
        fd_instance x;
        char why[256];
        cr_assert_eq(fd_instance_create(&x, &c, why, sizeof why), FD_OK, "%s", why);
        const void *const wide[] = {x.problem.q.data, x.problem.k.data, x.problem.v.data, x.problem.o.data};
        const void *const narrow[] = {x.problem.lse.data, x.problem.kv_lens.data};
        for (size_t t = 0; t < sizeof wide / sizeof *wide; t++) {
            cr_expect_eq((uintptr_t)wide[t] % 32, FD_TENSOR_ALIGNMENT, "tensor %zu", t);
        }
        for (size_t t = 0; t < sizeof narrow / sizeof *narrow; t++) {
            cr_expect_eq((uintptr_t)narrow[t] % 8, 4, "tensor %zu of a batch of %d", t, (int)batch);
        }
        fd_instance_free(&x);
    }
}

Test(instance, poison_is_where_no_visible_token_is)
{
    const char *const triples[] = {"fff", "hhh", "bbb"};
    for (int t = 0; t < 6; t++) {
        const fd_case c = ragged_case(triples[t / 2], t % 2);
        fd_instance x;
        char why[512] = "";
        cr_assert(fd_instance_create(&x, &c, why, sizeof why) == FD_OK, "%s", why);
        const fd_problem *p = &x.problem;
        const uint64_t hash = fd_gen_hash(p);
        check_tails(&x, &p->k, &x.k, 5, FD_POISON_NAN); /* as created */
        for (int poison = 0; poison < FD_NUM_POISONS; poison++) {
            memset(x.o.data, 0, x.o.bytes);
            memset(x.lse.data, 0, x.lse.bytes);
            fd_instance_poison(&x, (enum fd_poison)poison);
            check_tails(&x, &p->k, &x.k, 5, (enum fd_poison)poison);
            check_tails(&x, &p->v, &x.v, 3, (enum fd_poison)poison);
            for (int64_t e = 0; e < (int64_t)(x.o.bytes / fd_dtype_bytes(c.dtype_o)); e++) {
                cr_assert(is_poison(fd_load(&p->o, e), c.dtype_o, (enum fd_poison)poison));
            }
            for (int64_t e = 0; e < (int64_t)(x.lse.bytes / sizeof(float)); e++) {
                cr_assert(is_poison(fd_load(&p->lse, e), FD_F32, (enum fd_poison)poison));
            }
            cr_assert(fd_gen_hash(p) == hash, "%s: poison %d touched a visible token", c.name, poison);
        }
        cr_assert(fd_buffer_intact(&x.q) && fd_buffer_intact(&x.k) && fd_buffer_intact(&x.v) &&
                  fd_buffer_intact(&x.o) && fd_buffer_intact(&x.lse) && fd_buffer_intact(&x.kv_lens));
        fd_instance_free(&x);
    }
}

Test(instance, poison_fill_reaches_the_last_byte_and_no_further)
{
    for (int poison = 0; poison < FD_NUM_POISONS; poison++) {
        for (size_t bytes = 0; bytes < 12; bytes++) {
            unsigned char x[16];
            memset(x, 0x11, sizeof x);
            fd_poison_fill(x, bytes, (enum fd_poison)poison);
            for (size_t i = bytes; i < sizeof x; i++) {
                cr_assert(x[i] == 0x11, "%zu bytes: byte %zu was written", bytes, i);
            }
            for (size_t i = 0; i + 4 <= bytes; i += 4) {
                float value;
                memcpy(&value, x + i, 4);
                cr_assert(is_poison(value, FD_F32, (enum fd_poison)poison));
            }
        }
    }
}

Test(instance, problem_says_what_the_case_says)
{
    char why[512] = "";
    for (int32_t layout = FD_LAYOUT_BSHD; layout <= FD_LAYOUT_BHSD; layout++) {
        const fd_case c = ragged_case("bbb", layout);
        fd_instance x;
        cr_assert(fd_instance_create(&x, &c, why, sizeof why) == FD_OK, "%s", why);
        const fd_problem *p = &x.problem;
        cr_assert(fd_check_problem(p, why, sizeof why) == FD_OK, "%s", why);
        cr_assert(p->features == fd_features(p) && (p->features & FD_LSE) != 0 && (p->features & FD_RAGGED) != 0);
        cr_assert(p->batch == 3 && p->heads_q == 6 && p->heads_kv == 2 && p->head_dim == 5 && p->head_dim_v == 3);
        cr_assert(p->kv_capacity == 19 && p->split_size_request == 4 && p->num_splits_request == 0);
        cr_assert(p->sm_scale == fd_gen_sm_scale(&c) && p->softcap == 0.0f && p->window_left == -1);
        for (int32_t b = 0; b < 3; b++) {
            cr_assert(fd_kv_len(p, b) == c.kv_lens[b] && p->kv_lens_host[b] == c.kv_lens[b]);
        }
        cr_assert(p->k.stride[1] == (layout == FD_LAYOUT_BSHD ? 10 : 5));
        cr_assert(p->k.stride[2] == (layout == FD_LAYOUT_BSHD ? 5 : 95));
        fd_instance_free(&x);
    }
}

Test(instance, impossible_cases_are_refused)
{
    fd_case c = ragged_case("fff", FD_LAYOUT_BSHD);
    fd_instance x;
    char why[512] = "";
    c.kv_lens[0] = 15;
    cr_assert(fd_instance_create(&x, &c, why, sizeof why) == FD_INVALID, "kv_lens above kv_len");
    c = ragged_case("fff", FD_LAYOUT_BSHD);
    c.heads_q = 5;
    cr_assert(fd_instance_create(&x, &c, why, sizeof why) == FD_INVALID, "heads that do not divide");
    c = ragged_case("fff", FD_LAYOUT_BSHD);
    c.heads_q = c.heads_kv = INT32_MAX; /* 2^67 bytes of k */
    c.kv_len = c.kv_lens[0] = INT32_MAX;
    cr_assert(fd_instance_create(&x, &c, why, sizeof why) == FD_INVALID);
    cr_assert(strncmp(why, "k [3, 2147483652, 2147483647, 5]", 32) == 0 && strchr(why, '\n') == NULL, "%s", why);
}
