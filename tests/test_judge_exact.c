/* test_judge_exact.c: tier 1 against faults that need no tolerance, planted into answers that are right. */
#include "test_judge.h"

static void write_past_o(const fd_problem *p, const fd_context *c)
{
    (void)c;
    element(p, p->heads_q - 1, p->head_dim_v)[0] = 1.0f;
}

static void read_past_the_end(const fd_problem *p, const fd_context *c)
{
    (void)c;
    float v[FD_HEAD_DIM_MAX];
    fd_load_v(p, 0, fd_kv_len(p, 0), 0, v);
    if (isinf(v[0])) {
        *element(p, 0, 0) += 1.0f;
    }
}

static size_t one_float_more(const fd_problem *p, const fd_plan *plan)
{
    return fd_ladder_find(5)->workspace(p, plan) + sizeof(float);
}

static void trust_old_workspace(const fd_problem *p, const fd_context *c)
{
    float old; /* behind what rung 05 uses: nobody writes it */
    memcpy(&old, (const char *)c->workspace + fd_ladder_find(5)->workspace(p, c->plan), sizeof old);
    *element(p, 0, 0) += isinf(old) ? 1.0f : 0.0f;
}

static void need_lse(const fd_problem *p, const fd_context *c)
{
    (void)c;
    if (p->lse.data == NULL) {
        *element(p, 0, 0) = 0.0f;
    }
}

static void change_plan(const fd_problem *p, const fd_context *c)
{
    (void)p;
    memcpy((char *)(uintptr_t)c->plan + offsetof(fd_plan, reserved), &(int32_t){1}, 4);
}

static void change_inputs(const fd_problem *p, const fd_context *c)
{
    (void)c;
    *(int32_t *)p->kv_lens.data = 0;
}

static void write_between_rows(const fd_problem *p, const fd_context *c)
{
    (void)c;
    *element(p, 0, p->head_dim_v) = 0.0f;
}

static void write_before_k(const fd_problem *p, const fd_context *c)
{
    (void)c;
    ((unsigned char *)p->k.data)[-1] = 0;
}

static fd_status no_plan(const fd_problem *p, const fd_machine *machine, fd_plan *plan)
{
    (void)p, (void)machine, (void)plan;
    return FD_INVALID;
}

Test(judge_exact, a_plan_that_fails_is_a_verdict)
{
    const fd_case c = a_case("gaussian", "", 100);
    fd_rung rung = *fd_ladder_find(5);
    rung.plan = no_plan;
    expect(&rung, &c, FD_FAIL, FD_TIER_EXACT, "plan() returned");
}

static int calls;

static void count_calls(const fd_problem *p, const fd_context *c)
{
    (void)c;
    *element(p, 1, 1) += (float)calls++ * 0x1p-20f;
}

Test(judge_exact, faults_that_need_no_tolerance_are_exact)
{
    const fd_case c = a_case("gaussian", "", 100);
    const struct {
        void (*after)(const fd_problem *p, const fd_context *c);
        const char *said;
    } faults[] = {{write_past_o, "wrote outside the rows of o"},
                  {read_past_the_end, "no visible token"},
                  {need_lse, "when lse is not wanted"},
                  {change_plan, "changed its plan"},
                  {count_calls, "the same call again has other bits"},
                  {change_inputs, "wrote to its inputs"},
                  {write_before_k, "wrote to its inputs"},
                  {write_between_rows, "wrote outside the rows"}};
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++) {
        const fd_rung rung = planted(faults[k].after);
        expect(&rung, &c, FD_FAIL, FD_TIER_EXACT, faults[k].said);
    }
}

Test(judge_exact, stale_workspace_must_not_show)
{
    const fd_case c = a_case("gaussian", "", 100);
    fd_rung rung = planted(trust_old_workspace);
    rung.workspace = one_float_more;
    expect(&rung, &c, FD_FAIL, FD_TIER_EXACT, "to infinity: the workspace as run() finds it");
}

/* An element that is no visible token, on its way into the answer: as a bit, since NaN would hide a second one. */
static void leak(const fd_problem *p, const fd_tensor *x, int64_t at)
{
    *element(p, 0, 0) += isnan(fd_load(x, at)) ? 0x1p-3f : 0.0f;
}

static fd_status leaking_run(const fd_problem *p, const fd_context *c)
{
    const bool old_o = isnan(*element(p, 3, 2));
    const fd_status status = fd_ladder_find(5)->run(p, c);
    if (strchr("qa", plant.i) != NULL) {
        leak(p, &p->q, p->head_dim);
    }
    if (strchr("ka", plant.i) != NULL) {
        leak(p, &p->k, fd_kv_at(p, &p->k, 0, p->kv_capacity - 1, 0));
    }
    if (strchr("va", plant.i) != NULL) {
        leak(p, &p->v, fd_kv_at(p, &p->v, 0, 0, 0) + p->head_dim_v);
    }
    if (strchr("oa", plant.i) != NULL && old_o) {
        *element(p, 0, 0) += 0x1p-3f;
    }
    return status;
}

Test(judge_exact, the_bytes_that_matter_are_named)
{
    static const struct {
        char which;
        const char *said;
    } leaks[] = {{'q', "to infinity: q between its rows"},
                 {'k', "to infinity: k behind kv_lens or between its rows"},
                 {'v', "to infinity: v behind kv_lens or between its rows"},
                 {'o', "to infinity: o and lse as run() finds them"},
                 {'a',
                  "to infinity: q between its rows, k behind kv_lens or between its rows, v behind kv_lens or between "
                  "its rows, o and lse as run() finds them"}};
    const fd_case c = a_case("gaussian", "", 100);
    fd_rung rung = *fd_ladder_find(5);
    rung.run = leaking_run;
    for (size_t k = 0; k < sizeof leaks / sizeof *leaks; k++) {
        fd_instance x;
        plant.i = leaks[k].which;
        fd_outcome out = judge(&rung, &c, &x);
        const char *from = strstr(out.reason, "to infinity");
        cr_assert(out.verdict == FD_FAIL && from != NULL, "%s", out.reason);
        cr_assert_str_eq(from, leaks[k].said);
        finish(&out, &x);
    }
}

/* Exact answers see an error that the bound would allow. */
static void half_a_unit(const fd_problem *p, const fd_context *c)
{
    (void)c;
    *element(p, 2, 5) = nextafterf(*element(p, 2, 5), INFINITY);
}

Test(judge_exact, a_known_answer_is_compared_bit_for_bit)
{
    fd_case c = a_case("selector", "", 129);
    const fd_rung rung = planted(half_a_unit);
    expect(fd_ladder_find(5), &c, FD_PASS, FD_TIER_NONE, "");
    expect(&rung, &c, FD_FAIL, FD_TIER_EXACT, "exact answer");
}

static void one_instead_of_zero(const fd_problem *p, const fd_context *c)
{
    (void)c;
    if (fd_kv_len(p, 0) == 0) {
        *element(p, 0, 3) = 1e-30f;
    }
}

Test(judge_exact, an_empty_cache_has_one_right_answer)
{
    const fd_case c = a_case("gaussian", "", 0);
    expect(fd_ladder_find(5), &c, FD_PASS, FD_TIER_NONE, "");
    const fd_rung rung = planted(one_instead_of_zero);
    expect(&rung, &c, FD_FAIL, FD_TIER_EXACT, "not 0");
}
