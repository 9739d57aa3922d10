/* huge_cases.c: see huge_cases.h. Names are those of cases: family, dtypes, heads, head_dim, kv_lens, split_size. */
#include "huge_cases.h"

#define SMALL                                                                                                          \
    .batch = 3, .heads_q = 6, .heads_kv = 3, .head_dim = 64, .head_dim_v = 64, .kv_len = 70, .kv_lens = {70, 1, 33}
#define SPLIT                                                                                                          \
    .batch = 2, .heads_q = 8, .heads_kv = 2, .head_dim = 128, .head_dim_v = 128, .kv_len = 1100, .kv_lens = {1100, 257}

const fd_case fd_huge_cases[] = {
    {.name = "selector/fff/h6:3/d64/n70+1+33", .family = "selector", SMALL, .seed = 1},
    {.name = "gaussian/fff/h6:3/d64/n70+1+33", .family = "gaussian", SMALL, .seed = 2},
    {.name = "gaussian/bbf/h6:3/d64/n70+1+33",
     .family = "gaussian",
     .dtype_q = FD_BF16,
     .dtype_kv = FD_BF16,
     SMALL,
     .seed = 3},
    {.name = "gaussian/hhf/h8:2/d128/n1100+257/s128", /* many splits: another way to combine them */
     .family = "gaussian",
     .dtype_q = FD_F16,
     .dtype_kv = FD_F16,
     SPLIT,
     .split_size = 128,
     .seed = 4},
    {.name = "gaussian/bbf/h2:2/d128/n5+4", /* so few keys that a few steps from one to the next pass 32 bits, too */
     .family = "gaussian",
     .dtype_q = FD_BF16,
     .dtype_kv = FD_BF16,
     .batch = 2,
     .heads_q = 2,
     .heads_kv = 2,
     .head_dim = 128,
     .head_dim_v = 128,
     .kv_len = 5,
     .kv_lens = {5, 4},
     .seed = 6},
    {.name = "gaussian/fff/h6:3/d64/n70+1+33/q3/causal",
     .family = "gaussian",
     SMALL,
     .q_len = 3,
     .causal = true,
     .seed = 5},
};
const int fd_huge_case_count = (int)(sizeof fd_huge_cases / sizeof *fd_huge_cases);

/* 2^24 keys of 128 dims are 2^31 elements. States: 33000 / 64 splits, 65528 heads, 128 dims; logits of rung 20: 33000 a head. */
const fd_huge_dense_shape fd_huge_denses[] = {
    {.name = "cache: bf16, 16778216 keys",
     .keys = ((int64_t)1 << 24) + 1000,
     .heads_q = 8,
     .head_dim = 128,
     .dtype = FD_BF16},
    {.name = "states: bf16, 65528 heads, splits of 64",
     .keys = 33000,
     .split_size = 64,
     .heads_q = 65528,
     .head_dim = 128,
     .dtype = FD_BF16},
};
const int fd_huge_dense_count = (int)(sizeof fd_huge_denses / sizeof *fd_huge_denses);

bool fd_huge_has_axis(const fd_case *c, enum fd_huge_axis axis)
{
    return axis == FD_HUGE_ROWS ? c->q_len > 1 : c->q_len < 2;
}
