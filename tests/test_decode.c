/* test_decode.c: the decode loop notices one wrong bit, a state that outlives a call, and a plan that its rung should not
 * depend on. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "commands.h"
#include "decode.h"
#include "execute.h"
#include "ladder.h"
#include "plan.h"

static const fd_decode_shape shape = {4, 2, 16, FD_F32, FD_F16, FD_F32, 40};
static const fd_decode_shape bf16_shape = {4, 2, 16, FD_BF16, FD_BF16, FD_BF16, 40}; /* for tensor cores */

static fd_decode begin(const fd_decode_shape *s, int tokens)
{
    char why[256];
    fd_decode d;
    cr_assert_eq(fd_decode_create(&d, s, why, sizeof why), FD_OK, "%s", why);
    for (int i = 0; i < tokens; i++) {
        fd_decode_append(&d, fd_decode_text(1, i));
    }
    return d;
}

static fd_decode_check check_of(fd_decode *d, const fd_rung *rung, int64_t keys)
{
    char why[256];
    double ns;
    fd_decode_check check;
    const fd_libm_error libm = fd_libm_error_get(NULL);
    const fd_rounding rounding = fd_host_rounding(&libm);
    cr_assert_eq(fd_decode_use(d, rung, 2, keys, why, sizeof why), FD_OK, "%s", why);
    cr_assert_eq(fd_decode_attend(d, &ns, why, sizeof why), FD_OK, "%s", why);
    cr_assert_eq(fd_decode_recheck(d, 2, 1, &rounding, &check, why, sizeof why), FD_OK, "%s", why);
    return check;
}

Test(decode, slots_without_a_token_hold_nan)
{
    fd_decode d = begin(&shape, 7);
    const int64_t row = d.problem.k.stride[1];
    cr_assert_eq(fd_kv_len(&d.problem, 0), 7);
    cr_assert_eq(fd_decode_bytes(&d), 2 * 7 * 2 * 16 * 2);
    for (int64_t i = 0; i < 40 * row; i++) {
        cr_assert_eq(isnan(fd_load(&d.problem.k, i)) != 0, i >= 7 * row, "k, element %lld", (long long)i);
        cr_assert_eq(isnan(fd_load(&d.problem.v, i)) != 0, i >= 7 * row, "v, element %lld", (long long)i);
    }
    fd_decode_free(&d);
}

Test(decode, every_bit_of_o_and_lse_decides_what_comes_next)
{
    fd_decode d = begin(&shape, 3);
    memset(d.o.data, 0, d.o.bytes);
    memset(d.lse.data, 0, d.lse.bytes);
    const uint64_t next = fd_decode_next(&d);
    const fd_buffer *const results[] = {&d.o, &d.lse};
    for (int k = 0; k < 2; k++) {
        for (size_t bit = 0; bit < 8 * results[k]->bytes; bit++) {
            results[k]->data[bit / 8] ^= (unsigned char)(1 << bit % 8);
            cr_assert_neq(fd_decode_next(&d), next, "bit %zu of %s", bit, k == 0 ? "o" : "lse");
            results[k]->data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
    }
    fd_decode_free(&d);
}

Test(decode, a_plan_for_the_longest_cache_serves_every_step)
{
    for (int i = 0; i < fd_ladder_count; i++) {
        char why[256];
        fd_decode d = begin(&shape, 29);
        if (fd_supports_here(fd_ladder[i], &d.problem, why, sizeof why) != FD_OK) {
            fd_decode_free(&d);
            d = begin(&bf16_shape, 29);
        }
        const fd_decode_check check = check_of(&d, fd_ladder[i], shape.kv_capacity);
        cr_expect(check.same, "%s", fd_ladder[i]->name);
        cr_expect(check.same_planned || !check.claimed, "%s", fd_ladder[i]->name);
        cr_expect_leq(check.ratio, 1.0, "%s", fd_ladder[i]->name);
        fd_decode_free(&d);
    }
}

/* A rung that remembers how often it was called. */
static fd_status forgetless(const fd_problem *p, const fd_context *context)
{
    static int calls;
    const fd_status status = fd_ladder[0]->run(p, context);
    float *o = (float *)p->o.data;
    *o = calls++ == 0 ? *o : nextafterf(*o, INFINITY);
    return status;
}

Test(decode, a_state_that_outlives_a_call_is_found)
{
    fd_decode d = begin(&shape, 20);
    fd_rung rung = *fd_ladder[0];
    rung.run = forgetless;
    cr_assert_not(check_of(&d, &rung, shape.kv_capacity).same);
    fd_decode_free(&d);
}

/* Splits that follow the longest cache, by a rung which claims that they do not matter. */
static fd_status four_splits(const fd_problem *p, const fd_machine *machine, fd_plan *plan)
{
    fd_problem asks = *p;
    asks.num_splits_request = 4;
    return fd_ladder_find(5)->plan(&asks, machine, plan);
}

Test(decode, bits_that_follow_the_plan_are_found_if_the_rung_denies_it)
{
    fd_decode d = begin(&shape, 20);
    fd_rung rung = *fd_ladder_find(5);
    rung.plan = four_splits;
    const fd_decode_check check = check_of(&d, &rung, shape.kv_capacity);
    cr_assert(check.same && check.claimed && !check.same_planned);
    cr_assert_leq(check.ratio, 1.0);
    fd_decode_free(&d);
}

static fd_status one_percent_off(const fd_problem *p, const fd_context *context)
{
    fd_problem other = *p;
    other.sm_scale *= 1.01f;
    return fd_ladder[0]->run(&other, context);
}

Test(decode, a_wrong_rung_is_above_its_bound)
{
    fd_decode d = begin(&shape, 20);
    fd_rung rung = *fd_ladder[0];
    rung.run = one_percent_off;
    const fd_decode_check check = check_of(&d, &rung, shape.kv_capacity);
    cr_assert(check.same && check.same_planned && !(check.ratio <= 1.0));
    fd_decode_free(&d);
}

Test(decode, what_does_not_fit_is_refused_by_name)
{
    char why[256];
    fd_decode d;
    fd_decode_shape s = shape;
    s.kv_capacity = (int64_t)INT32_MAX + 1;
    cr_assert_eq(fd_decode_create(&d, &s, why, sizeof why), FD_INVALID);
    s.kv_capacity = INT32_MAX;
    s.heads_q = s.heads_kv = 65536;
    cr_assert_eq(fd_decode_create(&d, &s, why, sizeof why), FD_NO_MEMORY);
    cr_assert_not_null(strstr(why, "fewer steps"));
}
