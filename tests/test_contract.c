/* test_contract.c: what fd.h promises about problems and descriptors: bad ones are refused, in one line that names the
 * fault, before anything is allocated or run. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "execute.h"
#include "instance.h"
#include "ladder.h"

static float floats[64]; /* what tensors of refused problems point to; never read */
static int32_t ints[16];

static fd_tensor dense(void *data, int64_t a, int64_t b, int64_t c)
{
    return (fd_tensor){.data = data, .stride = {a * b * c, b * c, c, 1}, .dtype = FD_F32};
}

/* batch 2, heads 4:2, head_dim 8, 16 slots: a problem that every rung takes, in fp32 or in bf16. */
static fd_problem plain(void)
{
    fd_problem p = {.size = sizeof p,
                    .batch = 2,
                    .heads_q = 4,
                    .heads_kv = 2,
                    .q_len = 1,
                    .head_dim = 8,
                    .head_dim_v = 8,
                    .kv_capacity = 16,
                    .sm_scale = 0.25f,
                    .window_left = -1,
                    .window_right = -1};
    p.q = dense(floats, 1, 4, 8);
    p.k = p.v = dense(floats, 16, 2, 8);
    p.o = dense(floats, 1, 4, 8);
    p.lse = (fd_tensor){.data = floats, .stride = {4, 4, 1, 1}, .dtype = FD_F32};
    p.features = fd_features(&p);
    return p;
}

static void expect(const fd_problem *p, fd_status status, const char *said)
{
    char why[200] = "";
    const fd_status got = fd_check_problem(p, why, sizeof why);
    cr_assert_eq(got, status, "expected %s, got %s: %s", fd_status_name(status), fd_status_name(got), why);
    cr_assert(strstr(why, said) != NULL, "'%s' does not say '%s'", why, said);
    cr_assert(strchr(why, '\n') == NULL);
}

Test(contract, a_plain_problem_is_taken_by_every_rung)
{
    char why[200];
    for (int k = 0; k < fd_ladder_count; k++) {
        fd_problem p = plain();
        if (fd_ladder[k]->caps != NULL && (fd_ladder[k]->caps->dtypes_kv & 1u << FD_F32) == 0) {
            p.q.dtype = p.k.dtype = p.v.dtype = FD_BF16; /* rungs on tensor cores say that they take 16 bits only */
        }
        cr_assert_eq(fd_supports_here(fd_ladder[k], &p, why, sizeof why), FD_OK, "%s", why);
    }
}

Test(contract, sizes_that_contradict_are_named)
{
    fd_problem p = plain();
    p.size = 8;
    expect(&p, FD_INVALID, "sizeof(fd_problem)");
    p = plain();
    p.heads_kv = 3;
    expect(&p, FD_INVALID, "multiple of heads_kv");
    p = plain();
    p.head_dim = 0;
    expect(&p, FD_INVALID, "head_dim");
    p = plain();
    p.batch = -1;
    expect(&p, FD_INVALID, "batch");
    p = plain();
    p.kv_capacity = (int64_t)1 << 31;
    expect(&p, FD_INVALID, "kv_capacity");
    p = plain();
    p.sm_scale = NAN;
    expect(&p, FD_INVALID, "sm_scale");
    p = plain();
    p.num_splits_request = 2;
    p.split_size_request = 2;
    expect(&p, FD_INVALID, "both set");
    p = plain();
    p.features |= FD_SOFTCAP;
    expect(&p, FD_INVALID, "fd_features()");
}

Test(contract, offsets_beyond_64_bits_are_refused_before_anything_is_touched)
{
    fd_problem p = plain();
    p.kv_capacity = INT32_MAX;
    p.k.stride[1] = INT64_MAX / 4;
    expect(&p, FD_INVALID, "k does not fit");
    p = plain();
    p.v.stride[0] = INT64_MAX / 2; /* times one batch step, then times four bytes */
    expect(&p, FD_INVALID, "v does not fit");
    p = plain();
    p.o.stride[2] = INT64_MAX;
    expect(&p, FD_INVALID, "o does not fit");
}

Test(contract, strides_repeat_inputs_and_never_outputs)
{
    fd_problem p = plain();
    p.k.stride[0] = p.v.stride[2] = p.q.stride[0] = 0;
    expect(&p, FD_OK, "");
    p.o.stride[2] = 0;
    expect(&p, FD_INVALID, "o has stride[2] = 0");
    p = plain();
    p.lse.stride[0] = 0;
    expect(&p, FD_INVALID, "lse has stride[0] = 0");
    p = plain();
    p.k.stride[3] = -1;
    expect(&p, FD_INVALID, "negative");
}

Test(contract, missing_or_mistyped_tensors_are_named)
{
    fd_problem p = plain();
    p.v.data = NULL;
    expect(&p, FD_INVALID, "v is missing");
    p = plain();
    p.lse.data = NULL; /* allowed: not wanted */
    p.features = fd_features(&p);
    expect(&p, FD_OK, "");
    p = plain();
    p.lse.dtype = FD_BF16;
    expect(&p, FD_INVALID, "lse has dtype bf16");
    p = plain();
    p.q.dtype = 77;
    expect(&p, FD_INVALID, "q has dtype");
}

Test(contract, kv_lens_outside_the_cache_are_refused)
{
    fd_problem p = plain();
    p.kv_lens = (fd_tensor){.data = ints, .stride = {1, 0, 0, 0}, .dtype = FD_I32};
    p.features = fd_features(&p);
    ints[0] = 16;
    ints[1] = 17;
    expect(&p, FD_INVALID, "kv_lens[1] = 17");
    ints[1] = -1;
    expect(&p, FD_INVALID, "kv_lens[1] = -1");
    ints[1] = 0;
    expect(&p, FD_OK, "");
    p.kv_lens_host = (const int32_t[]){3, 99};
    expect(&p, FD_INVALID, "kv_lens_host[1] = 99");
}

static void refused(const fd_problem *p, const char *feature)
{
    char why[200];
    for (int k = 0; k < fd_ladder_cpu_count; k++) {
        cr_assert_eq(fd_supports(fd_ladder[k], p, why, sizeof why), FD_UNSUPPORTED, "%s takes %s", fd_ladder[k]->name,
                     feature);
        cr_assert(strstr(why, feature) != NULL, "'%s' does not name '%s'", why, feature);
        cr_assert(strstr(why, fd_ladder[k]->name) != NULL);
    }
}

Test(contract, features_that_no_rung_takes_are_refused_by_name)
{
    fd_problem p = plain();
    p.window_left = 4;
    p.features = fd_features(&p);
    refused(&p, "window_left 4");
    p = plain();
    p.page_size = 4;
    p.num_pages = 8;
    p.page_table = (fd_tensor){.data = ints, .stride = {4, 1, 0, 0}, .dtype = FD_I32};
    p.features = fd_features(&p);
    refused(&p, "paged cache");
    p = plain();
    p.window_left = 3;
    p.features = fd_features(&p);
    refused(&p, "window");
    p = plain();
    p.softcap = 30.0f;
    p.features = fd_features(&p);
    refused(&p, "softcap");
    p = plain();
    p.sinks = (fd_tensor){.data = floats, .stride = {1, 0, 0, 0}, .dtype = FD_F32};
    p.features = fd_features(&p);
    refused(&p, "sinks");
    p = plain();
    p.k_scale = (fd_tensor){.data = floats, .stride = {0, 0, 0, 0}, .dtype = FD_F32};
    p.features = fd_features(&p);
    refused(&p, "k_scale");
    p = plain();
    p.kv_start = 4096;
    p.features = fd_features(&p);
    refused(&p, "shard");
    p = plain();
    p.k.dtype = FD_F8E4M3;
    refused(&p, "k of dtype fp8 e4m3");
    p = plain();
    p.v.space = FD_DEVICE;
    refused(&p, "v in device memory");
    p = plain();
    p.head_dim = 2000;
    p.q = dense(floats, 1, 4, 2000);
    p.k = dense(floats, 16, 2, 2000);
    p.features = fd_features(&p);
    refused(&p, "head_dim 2000");
}

Test(contract, descriptors_are_complete_and_parents_come_first)
{
    for (int k = 0; k < fd_ladder_count; k++) {
        const fd_rung *r = fd_ladder[k];
        cr_assert_eq(r->size, sizeof(fd_rung));
        cr_assert_eq(r->abi, FD_ABI);
        cr_assert(r->name != NULL && r->idea != NULL && r->caps != NULL && r->run != NULL);
        cr_assert(k == 0 || r->number > fd_ladder[k - 1]->number);
        cr_assert(r->parent == 0 || (r->parent < r->number && fd_ladder_find(r->parent) != NULL));
        cr_assert((r->plan == NULL) == (r->plan_bytes == NULL));
    }
}

Test(contract, split_requests_are_honoured)
{
    const fd_rung *split = fd_ladder_find(5);
    fd_problem p = plain();
    char why[200];
    fd_plan *plan;
    p.split_size_request = 5;
    cr_assert_eq(fd_plan_for(split, &p, &plan, why, sizeof why), FD_OK, "%s", why);
    cr_assert(plan->num_splits == 4 && plan->split_size == 5);
    free(plan);
    p.split_size_request = 0;
    p.num_splits_request = 3;
    cr_assert_eq(fd_plan_for(split, &p, &plan, why, sizeof why), FD_OK);
    cr_assert(plan->num_splits == 3 && plan->split_size == 6);
    free(plan);
    p.num_splits_request = 100; /* more splits than keys: the rest is empty */
    cr_assert_eq(fd_plan_for(split, &p, &plan, why, sizeof why), FD_OK);
    cr_assert(plan->num_splits == 100 && plan->split_size == 1);
    free(plan);
}

/* Where one token more or less in the planner shows: answers stay right, and no case can tell. */
Test(contract, split_requests_are_honoured_at_their_edges)
{
    const fd_rung *split = fd_ladder_find(5);
    fd_problem p = plain();
    const int64_t keys = p.kv_capacity;
    const struct {
        int32_t num_splits;
        int64_t split_size;
        int32_t want_splits;
        int64_t want_size;
    } asked[] = {
        {0, 1, (int32_t)keys, 1}, {0, keys, 1, keys}, {0, keys + 1, 1, keys}, {(int32_t)keys, 0, (int32_t)keys, 1}};
    char why[200];
    fd_plan *plan;
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        p.num_splits_request = asked[i].num_splits;
        p.split_size_request = asked[i].split_size;
        cr_assert_eq(fd_plan_for(split, &p, &plan, why, sizeof why), FD_OK, "%s", why);
        cr_assert(plan->num_splits == asked[i].want_splits && plan->split_size == asked[i].want_size);
        free(plan);
    }
    p.num_splits_request = 0;
    p.split_size_request = 1;
    p.kv_capacity = INT32_MAX; /* the most splits that an int32_t counts */
    cr_assert_eq(fd_plan_for(split, &p, &plan, why, sizeof why), FD_OK, "%s", why);
    cr_assert_eq(plan->num_splits, INT32_MAX);
    free(plan);
    p.kv_capacity = (INT64_C(1) << 32) + 1; /* 1 in 32 bits */
    cr_assert_eq(fd_plan_for(split, &p, &plan, why, sizeof why), FD_INVALID);
}

static fd_case ragged_case(void)
{
    fd_case c = {.name = "contract",
                 .family = "gaussian",
                 .batch = 2,
                 .heads_q = 4,
                 .heads_kv = 2,
                 .head_dim = 8,
                 .head_dim_v = 8,
                 .kv_lens = {300, 120},
                 .kv_len = 300,
                 .split_size = 64,
                 .seed = 7};
    return c;
}

/* A captured graph replays a plan while the cache is shorter than planned for: the same bits as for a plan of its own
 * length, because the split size is fixed and the further splits are empty. */
Test(contract, a_plan_stays_valid_for_shorter_caches)
{
    const fd_rung *split = fd_ladder_find(5);
    fd_instance x;
    char why[200];
    const fd_case c = ragged_case();
    cr_assert_eq(fd_instance_create(&x, &c, why, sizeof why), FD_OK, "%s", why);
    fd_plan *longer, *own;
    float o[2][64], lse[2][8];
    cr_assert_eq(fd_plan_for(split, &x.problem, &longer, why, sizeof why), FD_OK);
    int32_t *lens = x.problem.kv_lens.data;
    const int32_t shorter[2] = {65, 0};
    memcpy(lens, shorter, sizeof shorter);
    x.problem.kv_lens_host = shorter;
    cr_assert_eq(fd_plan_for(split, &x.problem, &own, why, sizeof why), FD_OK);
    cr_assert(own->num_splits < longer->num_splits);
    cr_assert_eq(fd_execute(split, longer, &x, true, FD_POISON_NAN, o[0], lse[0], why, sizeof why), FD_OK, "%s", why);
    cr_assert_eq(fd_execute(split, own, &x, true, FD_POISON_NAN, o[1], lse[1], why, sizeof why), FD_OK, "%s", why);
    cr_assert_eq(memcmp(o[0], o[1], sizeof o[0]), 0);
    cr_assert_eq(memcmp(lse[0], lse[1], sizeof lse[0]), 0);
    for (int i = 32; i < 64; i++) {
        cr_assert(o[0][i] == 0.0f); /* the second sequence has no key */
    }
    cr_assert(lse[0][4] == -INFINITY);
    free(longer);
    free(own);
    fd_instance_free(&x);
}

Test(contract, an_allocation_that_cannot_be_had_is_a_status)
{
    fd_buffer buffer;
    cr_assert_eq(fd_buffer_alloc(&buffer, SIZE_MAX / 2), FD_NO_MEMORY);
    fd_instance x;
    char why[200] = "";
    fd_case c = ragged_case();
    c.batch = 1;
    c.heads_q = c.heads_kv = 1 << 20;
    c.head_dim = c.head_dim_v = 1 << 20;
    c.kv_lens[0] = c.kv_len = INT32_MAX - 8;
    const fd_status status = fd_instance_create(&x, &c, why, sizeof why);
    cr_assert(status == FD_INVALID || status == FD_NO_MEMORY);
    cr_assert(strlen(why) > 10 && strchr(why, '\n') == NULL, "'%s'", why);
}
