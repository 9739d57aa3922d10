/* rules_inputs.c: which inputs. */
#include "rules_inputs.h"

#include <stdio.h>
#include <string.h>

/* N(0, 1), dense, equal lengths that are powers of two: the common core of the suites that the rules come from (some
 * of them draw other lengths as well). Two sequences, four query heads on two KV heads, four splits. */
static const struct {
    int32_t kv_len, head_dim, split_size;
} gaussian[] = {{1024, 128, 256}, {4096, 64, 1024}};

/* Cases of data/cases.csv: a %s stands for the dtypes, fff and then bbb. */
static const char *const directed[] = {
    "selector/fff/h8:8/d64/n1025/s100",         /* the answer is one key, at an end of a split */
    "selector/bbb/h14:7/d40/n1025/s100/bhsd",   /* the same, in 16 bit */
    "selector/%s/h16:8/d8/n300+0+1+17+299/s64", /* the same, ragged, with an empty sequence */
    "flat-integer/%s/h6:2/d40/n64+0+256+1/s32/bhsd",
    "ragged-spike/%s/h4:2/d64/n1031/s256", /* the answer is in a last split of seven keys */
    "ragged-spike/%s/h6:2/d40/n503/s100",
    "negative:-120/%s/h4:1/d64/n1025/s256",
    "negative:-120/%s/h4:1/d64/n65+1/s64", /* with an empty split */
    "negative:-46000/%s/h4:1/d8/n1025/s64",
    "peaky:8/%s/h4:1/d64/n1025/s256",
    "gaussian/%s/h4:1/d64/n1000+0+17/s256",
    "gaussian/fff/h6:2/d40/n5+0+0+300+0+64+65+1/s64/bhsd",
    "gaussian/fff/h6:2/d64/n257/s1", /* more splits than fit anywhere */
    "gaussian/%s/h4:1/d64/n0",
    "real:5/%s/h12:12/d32/n347+347+347+347/s100",
};

const char *fd_inputs_name(int32_t inputs)
{
    return inputs == FD_INPUTS_GAUSSIAN ? "gaussian" : "directed";
}

static fd_case gaussian_case(int32_t kv_len, int32_t head_dim, int32_t split_size, int32_t dtype)
{
    static const char letters[] = "fhb";
    fd_case c = {.family = "gaussian",
                 .dtype_q = dtype,
                 .dtype_kv = dtype,
                 .dtype_o = dtype,
                 .batch = 2,
                 .heads_q = 4,
                 .heads_kv = 2,
                 .head_dim = head_dim,
                 .head_dim_v = head_dim,
                 .kv_lens = {kv_len, kv_len},
                 .kv_len = kv_len,
                 .split_size = split_size,
                 .seed = 2024};
    snprintf(c.name, sizeof c.name, "killtable gaussian %c n%d", letters[dtype], kv_len);
    return c;
}

static const fd_case *find(const fd_case_table *table, const char *name)
{
    for (int32_t i = 0; i < table->count; i++) {
        if (strcmp(table->cases[i].name, name) == 0) {
            return &table->cases[i];
        }
    }
    return NULL;
}

/* The name with its first "%s", if any, replaced. */
static void with_dtypes(const char *pattern, const char *dtypes, char *name, size_t n)
{
    const char *at = strstr(pattern, "%s");
    if (at == NULL) {
        snprintf(name, n, "%s", pattern);
    } else {
        snprintf(name, n, "%.*s%s%s", (int)(at - pattern), pattern, dtypes, at + 2);
    }
}

fd_status fd_rule_cases(const fd_case_table *table, fd_rule_case *cases, int most, int *count, char *why, size_t n)
{
    static const char *const dtypes[] = {"fff", "bbb"};
    *count = 0;
    for (size_t x = 0; x < sizeof gaussian / sizeof *gaussian; x++) {
        for (int32_t dtype = FD_F32; dtype <= FD_BF16 && *count < most; dtype++) {
            if (x > 0 && dtype == FD_F16) {
                continue; /* once is enough: only one rule is made for fp16 */
            }
            cases[(*count)++] =
                (fd_rule_case){gaussian_case(gaussian[x].kv_len, gaussian[x].head_dim, gaussian[x].split_size, dtype),
                               FD_INPUTS_GAUSSIAN};
        }
    }
    for (size_t x = 0; x < sizeof directed / sizeof *directed; x++) {
        const size_t ways = strstr(directed[x], "%s") == NULL ? 1 : 2;
        for (size_t d = 0; d < ways && *count < most; d++) {
            char name[sizeof cases->c.name];
            with_dtypes(directed[x], dtypes[d], name, sizeof name);
            const fd_case *c = find(table, name);
            if (c == NULL) {
                snprintf(why, n, "no case '%s' in the case table; tests/rules_inputs.c names it", name);
                return FD_INVALID;
            }
            cases[(*count)++] = (fd_rule_case){*c, FD_INPUTS_DIRECTED};
        }
    }
    return FD_OK;
}
