/* test_gen.h: a small case of any family, for the generator's two suites. */
#ifndef FD_TEST_GEN_H
#define FD_TEST_GEN_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "gen.h"
#include "instance.h"

static inline int32_t dtype_of(char letter)
{
    return letter == 'f' ? FD_F32 : letter == 'h' ? FD_F16 : FD_BF16;
}

/* One small instance of each family: three sequences, one of them empty, and two query heads a KV head. */
static inline fd_case standard_case(const char *family, const char *argument, const char *dtypes)
{
    fd_case c = {.batch = 3, .heads_q = 4, .heads_kv = 2, .head_dim = 8, .head_dim_v = 6, .split_size = 16, .seed = 42};
    const int32_t kv_lens[] = {37, 0, 64};
    memcpy(c.kv_lens, kv_lens, sizeof kv_lens);
    if (strcmp(family, "attained") == 0 || strcmp(family, "counterexample") == 0) {
        c.heads_q = c.heads_kv = c.head_dim = c.head_dim_v = 1;
    }
    if (strcmp(family, "counterexample") == 0) {
        c.head_dim = strcmp(argument, "lse") == 0 ? 2 : 1;
        for (int b = 0; b < c.batch; b++) {
            c.kv_lens[b] = strcmp(argument, "alpha-l") == 0 ? 6 : 2;
        }
    }
    if (strcmp(family, "real") == 0) {
        c.batch = 4;
        c.heads_q = c.heads_kv = 12;
        c.head_dim = c.head_dim_v = 32;
        for (int b = 0; b < 4; b++) {
            c.kv_lens[b] = 347;
        }
    }
    for (int b = 0; b < c.batch; b++) {
        c.kv_len = c.kv_lens[b] > c.kv_len ? c.kv_lens[b] : c.kv_len;
    }
    snprintf(c.name, sizeof c.name, "golden %s:%s %s", family, argument, dtypes);
    snprintf(c.family, sizeof c.family, "%s", family);
    snprintf(c.argument, sizeof c.argument, "%s", argument);
    c.dtype_q = dtype_of(dtypes[0]);
    c.dtype_kv = dtype_of(dtypes[1]);
    c.dtype_o = dtype_of(dtypes[2]);
    return c;
}

static inline fd_instance create(const fd_case *c)
{
    fd_instance x;
    char why[512] = "";
    cr_assert(fd_instance_create(&x, c, why, sizeof why) == FD_OK, "%s: %s", c->name, why);
    return x;
}

static const char *const triples[] = {"fff", "hhh", "bbb", "fbf"};

#endif /* FD_TEST_GEN_H */
