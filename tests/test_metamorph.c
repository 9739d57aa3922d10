/* test_metamorph.c: every relation holds for every rung, and every relation bites: a rung made to violate it is caught by
 * it, and by name. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "commands.h"
#include "ladder.h"
#include "metamorph.h"

static int max_threads(void)
{
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}

static fd_rounding rounding(void)
{
    const fd_libm_error libm = fd_libm_error_get("/nonexistent/libm_error.csv"); /* assumed, the same everywhere */
    return fd_host_rounding(&libm);
}

/* Three sequences, one of them empty, of the shorter one split and the longer one ragged. */
static fd_case a_case(const char *family, const char *argument, int32_t dtype)
{
    fd_case c = {.batch = 3,
                 .heads_q = 4,
                 .heads_kv = 2,
                 .head_dim = 16,
                 .head_dim_v = 8,
                 .kv_lens = {37, 0, 70},
                 .kv_len = 70,
                 .split_size = 16,
                 .dtype_q = dtype,
                 .dtype_kv = dtype,
                 .dtype_o = dtype,
                 .seed = 5};
    snprintf(c.name, sizeof c.name, "metamorph %s %s", family, argument);
    snprintf(c.family, sizeof c.family, "%s", family);
    snprintf(c.argument, sizeof c.argument, "%s", argument);
    return c;
}

static fd_relation_outcome *judge(const fd_rung *const *rungs, int count, const fd_case *c)
{
    char why[256] = "";
    const fd_rounding r = rounding();
    fd_relation_outcome *out = calloc((size_t)(count * fd_relation_count), sizeof *out);
    cr_assert_not_null(out);
    cr_assert_eq(fd_metamorph(rungs, count, c, &r, out, why, sizeof why), FD_OK, "%s", why);
    return out;
}

static const fd_relation_outcome *named(const fd_relation_outcome *out, const char *name)
{
    for (int r = 0; r < fd_relation_count; r++) {
        if (strcmp(fd_relations[r].name, name) == 0) {
            return &out[r];
        }
    }
    cr_assert_fail("no relation %s", name);
    return NULL;
}

Test(metamorph, every_relation_holds_for_every_rung)
{
    const struct {
        const char *family, *argument;
        int32_t dtype;
    } inputs[] = {{"gaussian", "", FD_F32},   {"gaussian", "", FD_BF16},       {"gaussian", "", FD_F16},
                  {"selector", "", FD_F32},   {"peaky", "8", FD_F32},          {"ramp", "descending", FD_F32},
                  {"cancel", "near", FD_F32}, {"magnitude", "2^-140", FD_F32}, {"offset", "3584", FD_F32}};
    for (size_t x = 0; x < sizeof inputs / sizeof *inputs; x++) {
        fd_case c = a_case(inputs[x].family, inputs[x].argument, inputs[x].dtype);
        c.q_len = x == 1 ? 4 : 1;
        fd_relation_outcome *out = judge(fd_ladder, fd_ladder_cpu_count, &c);
        for (int k = 0; k < fd_ladder_cpu_count * fd_relation_count; k++) {
            cr_assert(out[k].verdict != FD_FAIL, "%s, rung %d, %s: %s", c.name,
                      fd_ladder[k / fd_relation_count]->number, fd_relations[k % fd_relation_count].name,
                      out[k].reason);
            cr_assert(out[k].applies);
            cr_assert(x > 0 || out[k].verdict == FD_PASS, "%s, %s: %s", c.name,
                      fd_relations[k % fd_relation_count].name, out[k].reason);
        }
        free(out);
    }
}

/* ---- Planted faults: what rung 05 returns, changed a little afterwards ---- */

static float (*planted_change)(const fd_problem *p, const fd_context *c, int32_t b, int32_t h);

static fd_status planted_run(const fd_problem *p, const fd_context *c)
{
    const fd_status status = fd_ladder_find(5)->run(p, c);
    for (int32_t b = 0; b < p->batch; b++) {
        for (int32_t h = 0; h < p->heads_q && fd_kv_len(p, b) > 0; h++) {
            const int64_t at = fd_row_at(&p->o, b, 0, h);
            fd_store(&p->o, at, fd_load(&p->o, at) + planted_change(p, c, b, h));
        }
    }
    return status;
}

static float key(const fd_problem *p, int32_t b, int64_t j, int32_t h_kv)
{
    return fd_load(&p->k, fd_kv_at(p, &p->k, b, j, h_kv));
}

static float by_splits(const fd_problem *p, const fd_context *c, int32_t b, int32_t h)
{
    (void)p, (void)b, (void)h;
    return 0x1p-8f * (float)c->plan->num_splits;
}

static float by_batch(const fd_problem *p, const fd_context *c, int32_t b, int32_t h)
{
    (void)c, (void)b, (void)h;
    return p->batch > 1 ? 0x1p-20f : 0.0f; /* bits, where the row is cut alike */
}

static float a_constant(const fd_problem *p, const fd_context *c, int32_t b, int32_t h)
{
    (void)p, (void)c, (void)b, (void)h;
    return 0x1p-20f;
}

static float by_first_key(const fd_problem *p, const fd_context *c, int32_t b, int32_t h)
{
    (void)c;
    return 0x1p-6f * key(p, b, 0, h / fd_group(p));
}

static float by_length(const fd_problem *p, const fd_context *c, int32_t b, int32_t h)
{
    (void)c, (void)h;
    return 0x1p-10f * (float)fd_kv_len(p, b);
}

static float by_slot_behind_the_end(const fd_problem *p, const fd_context *c, int32_t b, int32_t h)
{
    (void)c;
    const float behind = key(p, b, fd_kv_len(p, b), h / fd_group(p));
    return isnan(behind) ? 0.0f : 0x1p-20f * behind; /* NaN poison is seen through, as by a kernel with fmax */
}

static float by_head(const fd_problem *p, const fd_context *c, int32_t b, int32_t h)
{
    (void)p, (void)c, (void)b;
    return 0x1p-20f * (float)h;
}

static float by_call(const fd_problem *p, const fd_context *c, int32_t b, int32_t h)
{
    static int calls;
    (void)p, (void)c;
    calls += b == 0 && h == 0;
    return 0x1p-20f * (float)(calls % 7);
}

static float by_another_row(const fd_problem *p, const fd_context *c, int32_t b, int32_t h)
{
    (void)c, (void)b, (void)h;
    return 0.0f * key(p, 0, 0, 0); /* NaN if that is NaN or infinite */
}

static float by_bound(const fd_problem *p, const fd_context *c, int32_t b, int32_t h)
{
    (void)c, (void)h;
    return p->kv_lens_host != NULL ? 0x1p-20f * (float)(p->kv_lens_host[b] - fd_kv_len(p, b)) : 0.0f;
}

static float by_absence(const fd_problem *p, const fd_context *c, int32_t b, int32_t h)
{
    (void)c, (void)b, (void)h;
    return p->kv_lens.data == NULL ? 0x1p-20f : 0.0f;
}

static float by_layout(const fd_problem *p, const fd_context *c, int32_t b, int32_t h)
{
    (void)c, (void)b, (void)h;
    return p->q.stride[0] == p->q_len * p->heads_q * p->q.stride[2] ? 0.0f : 0x1p-6f;
}

static float by_broadcast(const fd_problem *p, const fd_context *c, int32_t b, int32_t h)
{
    (void)c, (void)b, (void)h;
    return p->v.stride[2] == 0 ? 0x1p-6f : 0.0f;
}

static float lse_base_2(const fd_problem *p, const fd_context *c, int32_t b, int32_t h)
{
    (void)c;
    ((float *)p->lse.data)[fd_row_at(&p->lse, b, 0, h)] *= 1.44269504f;
    return 0.0f;
}

Test(metamorph, every_relation_catches_a_rung_that_violates_it)
{
    const struct {
        const char *relation, *says;
        float (*change)(const fd_problem *p, const fd_context *c, int32_t b, int32_t h);
        bool only; /* no other relation sees this one */
    } faults[] = {{"twice", "o has other bits", by_call, false},
                  {"splits", "further away", by_splits, false},
                  {"batch-of-one", "o has other bits", by_batch, false}, /* full-cache is one, too */
                  {"scaled-v", "o has other bits", a_constant, true},
                  {"shifted-keys", "o is further", by_first_key, false},
                  {"shifted-keys", "lse is further", lse_base_2, false},
                  {"duplicated", "o is further", by_length, false},
                  {"duplicated", "lse is further", lse_base_2, false},
                  {"permuted-keys", "o is further", by_first_key, false},
                  {"appended", "o has other bits", by_slot_behind_the_end, true},
                  {"permuted-heads", "o has other bits", by_head, false},
                  {"containment", "o has other bits", by_another_row, true},
                  {"loose-bounds", "o has other bits", by_bound, true},
                  {"full-cache", "o has other bits", by_absence, true},
                  {"other-strides", "o is further", by_layout, true},
                  {"one-kv-head", "o is further", by_broadcast, true}};
    const fd_case c = a_case("gaussian", "", FD_F32);
    for (size_t f = 0; f < sizeof faults / sizeof *faults; f++) {
        fd_rung rung = *fd_ladder_find(5);
        const fd_rung *one = &rung;
        rung.name = "planted";
        rung.run = planted_run;
        planted_change = faults[f].change;
        fd_relation_outcome *out = judge(&one, 1, &c);
        const fd_relation_outcome *seen = named(out, faults[f].relation);
        cr_assert(seen->verdict == FD_FAIL && seen->tier == FD_TIER_METAMORPHIC, "%s does not see its fault",
                  faults[f].relation);
        cr_assert(strstr(seen->reason, faults[f].says) != NULL, "%s: '%s'", faults[f].relation, seen->reason);
        for (int r = 0; r < fd_relation_count && faults[f].only; r++) {
            cr_assert(&out[r] == seen || out[r].verdict == FD_PASS || strcmp(fd_relations[r].name, "scaled-v") == 0,
                      "%s also sees the fault of %s: %s", fd_relations[r].name, faults[f].relation, out[r].reason);
        }
        free(out);
    }
}

/* Masked rows, some of which see no key: what moves keys says nothing there, everything else holds. */
Test(metamorph, relations_hold_under_a_causal_mask)
{
    fd_case c = a_case("gaussian", "", FD_F32);
    c.q_len = 5;
    c.causal = true;
    c.kv_lens[0] = 3;
    fd_relation_outcome *out = judge(fd_ladder, fd_ladder_cpu_count, &c);
    for (int k = 0; k < fd_ladder_cpu_count; k++) {
        const fd_relation_outcome *mine = &out[k * fd_relation_count];
        for (int r = 0; r < fd_relation_count; r++) {
            const bool moves = &mine[r] == named(mine, "duplicated") || &mine[r] == named(mine, "permuted-keys");
            cr_assert(mine[r].applies != moves, "%s", fd_relations[r].name);
            cr_assert(moves || mine[r].verdict == FD_PASS, "%s, %s: %s", fd_ladder[k]->name, fd_relations[r].name,
                      mine[r].reason);
        }
    }
    free(out);
}

/* Each kind of breakage spreads in its own way; all must be seen. */
static float (*spread_of)(const fd_problem *p);

static float spreads(const fd_problem *p, const fd_context *c, int32_t b, int32_t h)
{
    (void)c, (void)b, (void)h;
    return spread_of(p);
}

static float spread_k(const fd_problem *p)
{
    const float k = key(p, 2, 0, 1);
    return fabsf(k) > 1e4f ? 1.0f : 0.0f; /* only what overflows, in the last head */
}

static float spread_v(const fd_problem *p)
{
    return fabsf(fd_load(&p->v, fd_kv_at(p, &p->v, 0, 0, 0))) == INFINITY ? 1.0f : 0.0f;
}

static float spread_q(const fd_problem *p)
{
    return isnan(fd_load(&p->q, fd_row_at(&p->q, 0, 0, 0))) ? 1.0f : 0.0f;
}

Test(metamorph, every_kind_of_breakage_is_contained)
{
    float (*const spread[])(const fd_problem *) = {spread_k, spread_v, spread_q};
    const fd_case c = a_case("gaussian", "", FD_F32);
    planted_change = spreads;
    for (size_t x = 0; x < sizeof spread / sizeof *spread; x++) {
        fd_rung rung = *fd_ladder_find(5);
        const fd_rung *one = &rung;
        rung.run = planted_run;
        spread_of = spread[x];
        fd_relation_outcome *out = judge(&one, 1, &c);
        cr_assert_eq(named(out, "containment")->verdict, FD_FAIL, "breakage %zu is not seen", x);
        cr_assert_eq(named(out, "twice")->verdict, FD_PASS);
        free(out);
    }
}

/* A key that is masked for the first query row: 0 times what it holds is none of that row's. */
static float spread_last(const fd_problem *p)
{
    return isnan(key(p, 2, fd_kv_len(p, 2) - 1, 1)) && !isnan(key(p, 2, 0, 1)) ? 1.0f : 0.0f;
}

static float spreads_in_group(const fd_problem *p, const fd_context *c, int32_t b, int32_t h)
{
    (void)c;
    return b == 2 && h / fd_group(p) == 1 ? spread_last(p) : 0.0f;
}

Test(metamorph, what_only_later_rows_see_is_contained)
{
    fd_case c = a_case("gaussian", "", FD_F32);
    fd_rung rung = *fd_ladder_find(5);
    const fd_rung *one = &rung;
    c.q_len = 5;
    c.causal = true;
    rung.run = planted_run;
    planted_change = spreads_in_group;
    fd_relation_outcome *out = judge(&one, 1, &c);
    cr_assert_eq(named(out, "containment")->verdict, FD_FAIL);
    cr_assert_eq(named(out, "twice")->verdict, FD_PASS);
    free(out);
}

/* Who refuses a second instance owes it nothing, and says why. */
static fd_status no_strides(const fd_problem *p, char *why, size_t n)
{
    const bool usual = p->q.stride[0] == p->q_len * p->heads_q * p->q.stride[2];
    snprintf(why, n, "%s", usual ? "" : "strides of its own");
    return usual ? FD_OK : FD_UNSUPPORTED;
}

Test(metamorph, a_second_instance_may_be_refused)
{
    const fd_case c = a_case("gaussian", "", FD_F32);
    fd_rung rung = *fd_ladder_find(5);
    const fd_rung *one = &rung;
    rung.supports = no_strides;
    rung.run = planted_run;
    planted_change = by_layout;
    fd_relation_outcome *out = judge(&one, 1, &c);
    const fd_relation_outcome *seen = named(out, "other-strides");
    cr_assert(seen->verdict == FD_SKIP && strstr(seen->reason, "strides of its own") != NULL, "%s", seen->reason);
    free(out);
}

/* ---- Claims: a rung with rung 05's arithmetic, and splits that follow what it is told -------------------------- */

static enum fd_invariance followed; /* what the split size follows */
static uint32_t claimed;

static fd_status follow_plan(const fd_problem *p, const fd_machine *machine, fd_plan *plan)
{
    const int64_t by = followed == FD_INV_THREADS ? machine->num_units : followed == FD_INV_BATCH ? p->batch : 0;
    const fd_status status = fd_ladder_find(5)->plan(p, machine, plan);
    plan->split_size = by > 0 ? 4 + by : plan->split_size;
    plan->num_splits = by > 0 ? (int32_t)(p->kv_capacity / plan->split_size) + 1 : plan->num_splits;
    return status;
}

static void follow_arith(const fd_problem *p, const fd_plan *plan, int64_t kv_len, fd_arith *a)
{
    fd_ladder_find(5)->arith(p, plan, kv_len, a);
    a->invariances = claimed;
}

/* An honest rung is held to the bounds only; one that claims that its bits do not follow must have the same. */
Test(metamorph, an_invariance_that_is_claimed_wrongly_fails)
{
    const struct {
        const char *relation;
        enum fd_invariance what;
    } claims[] = {{"splits", FD_INV_SPLITS}, {"threads", FD_INV_THREADS}, {"batch-of-one", FD_INV_BATCH}};
    const fd_case c = a_case("gaussian", "", FD_F32);
    for (size_t x = 0; x < sizeof claims / sizeof *claims; x++) {
        for (int wrongly = 0; wrongly < 2; wrongly++) {
            fd_rung rung = *fd_ladder_find(5);
            const fd_rung *one = &rung;
            rung.plan = follow_plan;
            rung.arith = follow_arith;
            followed = claims[x].what;
            claimed = wrongly ? (uint32_t)claims[x].what : 0u;
            fd_relation_outcome *out = judge(&one, 1, &c);
            const fd_relation_outcome *seen = named(out, claims[x].relation);
            cr_expect(seen->verdict == (wrongly ? FD_FAIL : FD_PASS), "%s, claimed %d: %s", claims[x].relation, wrongly,
                      seen->reason);
            cr_expect(!wrongly || strstr(seen->reason, "other bits") != NULL, "%s", seen->reason);
            free(out);
        }
    }
}

/* Rungs that take OpenMP's number of threads instead of the plan's are run with other numbers, too. */
static float by_threads(const fd_problem *p, const fd_context *c, int32_t b, int32_t h)
{
    (void)p, (void)c, (void)b, (void)h;
    return 0x1p-20f * (float)max_threads();
}

Test(metamorph, the_number_of_threads_is_really_changed)
{
    fd_rung rung = *fd_ladder_find(5);
    const fd_rung *one = &rung;
    const fd_case c = a_case("gaussian", "", FD_F32);
    rung.run = planted_run;
    planted_change = by_threads;
    fd_relation_outcome *out = judge(&one, 1, &c);
#ifdef _OPENMP
    cr_expect_eq(named(out, "threads")->verdict, FD_FAIL);
#endif
    cr_expect_eq(named(out, "twice")->verdict, FD_PASS);
    free(out);
}

Test(metamorph, what_says_nothing_is_a_skip_and_not_a_pass)
{
    fd_case c = a_case("counterexample", "lse", FD_F32); /* every bound is vacuous */
    c.batch = 1;
    c.kv_lens[0] = c.kv_len = c.head_dim = 2;
    c.head_dim_v = 1;
    fd_relation_outcome *out = judge(fd_ladder, fd_ladder_cpu_count, &c);
    for (int k = 0; k < fd_ladder_cpu_count; k++) {
        const fd_relation_outcome *mine = &out[k * fd_relation_count];
        cr_assert(named(mine, "batch-of-one")->verdict == FD_SKIP && !named(mine, "batch-of-one")->applies);
        cr_assert_eq(named(mine, "permuted-keys")->verdict, FD_SKIP);
        cr_assert(strstr(named(mine, "permuted-keys")->reason, "vacuous") != NULL);
        cr_assert(strstr(named(mine, "shifted-keys")->reason, "no number of its dtype") != NULL);
        cr_assert_eq(named(mine, "appended")->verdict, FD_PASS);
    }
    free(out);
}
