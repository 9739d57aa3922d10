/* test_mirror.c: a rung that takes device memory only, on a device that is host memory at other addresses: all that is
 * checked on the host is checked there too. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"
#include "execute.h"
#include "ladder.h"
#include "mirror.h"

/* ---- The device ---- */

#define MAX_ALLOCATIONS 32

static struct {
    unsigned char *data;
    size_t bytes;
} allocations[MAX_ALLOCATIONS];
static int live, until_failure; /* allocations that still succeed; < 0: all */
static const char *fault;       /* what run() reports instead of running; NULL: nothing */

static bool there(const void *at)
{
    for (int k = 0; k < MAX_ALLOCATIONS; k++) {
        const uintptr_t base = (uintptr_t)allocations[k].data, x = (uintptr_t)at;
        if (base != 0 && x >= base && x < base + allocations[k].bytes) {
            return true;
        }
    }
    return false;
}

static fd_status fake_alloc(void **data, size_t bytes, char *why, size_t n)
{
    int k = 0;
    *data = NULL;
    if (until_failure-- == 0) {
        snprintf(why, n, "the fake device is full");
        return FD_NO_MEMORY;
    }
    while (allocations[k].data != NULL) {
        k++;
    }
    *data = aligned_alloc(256, (bytes + 255) / 256 * 256);
    allocations[k].data = (unsigned char *)*data;
    allocations[k].bytes = bytes;
    live++;
    return FD_OK;
}

static void fake_release(void *data)
{
    for (int k = 0; k < MAX_ALLOCATIONS; k++) {
        if (allocations[k].data == data) {
            allocations[k].data = NULL;
            free(data);
            live--;
        }
    }
}

static fd_status fake_copy(void *to, const void *from, size_t bytes, char *why, size_t n)
{
    (void)why, (void)n;
    memcpy(to, from, bytes);
    return FD_OK;
}

static fd_status fake_run(const fd_rung *rung, const fd_problem *problem, const fd_context *context, char *why,
                          size_t n)
{
    if (fault != NULL) {
        snprintf(why, n, "%s", fault);
        return FD_DEVICE_ERROR;
    }
    return rung->run(problem, context);
}

static const fd_device fake = {.where = "fake",
                               .name = "host memory elsewhere",
                               .machine = {.size = sizeof(fd_machine), .space = FD_DEVICE, .num_units = 7},
                               .alloc = fake_alloc,
                               .release = fake_release,
                               .write = fake_copy,
                               .read = fake_copy,
                               .run = fake_run};

/* ---- The rung: 05, which would only run on a device, with a fault planted ---- */

enum fault { NONE, INPUT_WRITTEN, GUARD_OF_INPUT, PLAN_WRITTEN, BEFORE_WORKSPACE, PADDING_OF_O, BEHIND_LSE, TAIL_READ };
static enum fault planted;
static int32_t planned_for; /* num_units of the machine it planned for */

static fd_status planted_run(const fd_problem *p, const fd_context *c)
{
    cr_assert(there(p->q.data) && there(p->k.data) && there(p->v.data) && there(p->o.data));
    cr_assert(there(p->kv_lens.data) && !there(p->kv_lens_host) && (p->lse.data == NULL || there(p->lse.data)));
    cr_assert(there(c->workspace) && there(c->plan_device) && !there(c->plan));
    cr_assert(memcmp(c->plan, c->plan_device, c->plan->size) == 0);
    cr_assert(p->k.space == FD_DEVICE && (uintptr_t)c->workspace % 256 == 0);
    const fd_status status = fd_ladder_find(5)->run(p, c);
    switch (planted) {
    case INPUT_WRITTEN:
        ((float *)p->k.data)[3] += 1.0f;
        break;
    case GUARD_OF_INPUT:
        ((float *)p->q.data)[-1] = 0.0f;
        break;
    case PLAN_WRITTEN:
        ((fd_plan *)(uintptr_t)c->plan_device)->tile++;
        break;
    case BEFORE_WORKSPACE:
        ((float *)c->workspace)[-1] = 0.0f;
        break;
    case PADDING_OF_O:
        ((float *)p->o.data)[p->head_dim_v] = 0.0f;
        break;
    case BEHIND_LSE:
        if (p->lse.data != NULL) {
            ((float *)p->lse.data)[p->lse.stride[0] * p->batch] = 0.0f;
        }
        break;
    case TAIL_READ:
        ((float *)p->o.data)[0] += ((float *)p->k.data)[fd_kv_at(p, &p->k, 0, fd_kv_len(p, 0), 0)];
        break;
    default:
        break;
    }
    return status;
}

static fd_status planted_plan(const fd_problem *p, const fd_machine *machine, fd_plan *plan)
{
    planned_for = machine->num_units;
    return fd_ladder_find(5)->plan(p, machine, plan);
}

static fd_outcome judge_planted(void)
{
    fd_caps caps = *fd_ladder_find(5)->caps;
    fd_rung rung = *fd_ladder_find(5);
    caps.spaces = 1u << FD_DEVICE;
    rung.caps = &caps;
    rung.run = planted_run;
    rung.plan = planted_plan;
    const fd_rung *rungs[1] = {&rung};
    const fd_case c = {.name = "mirror",
                       .family = "gaussian",
                       .batch = 2,
                       .heads_q = 4,
                       .heads_kv = 2,
                       .head_dim = 16,
                       .head_dim_v = 8,
                       .kv_len = 40,
                       .kv_lens = {40, 9},
                       .split_size = 16,
                       .seed = 1};
    const fd_libm_error libm = fd_libm_error_get("/nonexistent/libm_error.csv"); /* assumed */
    const fd_rounding rounding = fd_host_rounding(&libm);
    fd_instance x;
    fd_outcome out;
    char why[200] = "";
    fd_use_device(&fake);
    cr_assert_eq(fd_instance_create(&x, &c, why, sizeof why), FD_OK, "%s", why);
    cr_assert_str_eq(fd_where(&rung), "fake");
    cr_assert_eq(fd_judge(&x, rungs, 1, &rounding, &out, why, sizeof why), FD_OK, "%s", why);
    fd_outcomes_free(&out, 1);
    fd_instance_free(&x);
    fd_use_device(NULL);
    cr_assert_eq(live, 0, "%d allocations were not released", live);
    return out;
}

static void expect(const fd_outcome *out, const char *reason)
{
    cr_assert_eq(out->verdict, FD_FAIL, "passed, instead of: %s", reason);
    cr_assert_eq(out->tier, FD_TIER_EXACT);
    cr_assert(strstr(out->reason, reason) != NULL, "'%s' does not say '%s'", out->reason, reason);
}

Test(mirror, a_right_rung_passes_and_plans_for_the_device)
{
    until_failure = -1;
    const fd_outcome out = judge_planted();
    cr_assert_eq(out.verdict, FD_PASS, "%s", out.reason);
    cr_assert_eq(planned_for, 7);
    cr_assert_eq(out.num_splits, 3);
}

Test(mirror, what_a_kernel_writes_elsewhere_is_seen)
{
    static const struct {
        enum fault planted;
        const char *reason;
    } faults[] = {{INPUT_WRITTEN, "wrote to its inputs"},
                  {GUARD_OF_INPUT, "wrote to its inputs"},
                  {PLAN_WRITTEN, "changed its plan"},
                  {BEFORE_WORKSPACE, "wrote outside its workspace"},
                  {PADDING_OF_O, "wrote outside the rows of o and lse"},
                  {BEHIND_LSE, "wrote outside the rows of o and lse"},
                  {TAIL_READ, "bits change when bytes that are no visible token turn from NaN to"}};
    until_failure = -1;
    for (size_t x = 0; x < sizeof faults / sizeof *faults; x++) {
        planted = faults[x].planted;
        const fd_outcome out = judge_planted();
        expect(&out, faults[x].reason);
    }
}

Test(mirror, a_fault_of_the_device_is_a_failed_verdict)
{
    until_failure = -1;
    fault = "fd_k_attend: block 3, thread 7, line 41: a load from address 0";
    const fd_outcome out = judge_planted();
    expect(&out, fault);
}

/* Whichever allocation fails: said, and nothing is left behind. */
Test(mirror, a_full_device_is_no_verdict)
{
    fd_caps caps = {.size = sizeof caps, .spaces = 1u << FD_DEVICE};
    const fd_rung rung = {.size = sizeof rung, .abi = FD_ABI, .name = "never run", .caps = &caps};
    fd_buffer buffers[6];
    for (size_t k = 0; k < 6; k++) {
        cr_assert_eq(fd_buffer_alloc(&buffers[k], 64), FD_OK);
    }
    const fd_memory memory = {.inputs = {&buffers[0], &buffers[1], &buffers[2]},
                              .num_inputs = 3,
                              .o = &buffers[3],
                              .lse = &buffers[4],
                              .workspace = &buffers[5]};
    const fd_problem problem = {.size = sizeof problem};
    const fd_plan plan = {.size = sizeof plan, .num_splits = 1, .split_size = 1};
    for (int k = 0; k < 7; k++) {
        char why[200] = "";
        until_failure = k;
        cr_assert_eq(fd_run_mirrored(&fake, &rung, &problem, &plan, &memory, why, sizeof why), FD_NO_MEMORY);
        cr_assert_str_eq(why, "the fake device is full");
        cr_assert_eq(live, 0);
    }
    for (size_t k = 0; k < 6; k++) {
        fd_buffer_free(&buffers[k]);
    }
}

Test(mirror, a_tensor_outside_the_buffers_is_refused)
{
    fd_buffer buffers[4];
    char why[200] = "";
    float elsewhere[4] = {0.0f};
    fd_caps caps = {.size = sizeof caps, .spaces = 1u << FD_DEVICE};
    const fd_rung rung = {.size = sizeof rung, .abi = FD_ABI, .name = "never run", .caps = &caps};
    for (size_t k = 0; k < 4; k++) {
        cr_assert_eq(fd_buffer_alloc(&buffers[k], 64), FD_OK);
    }
    const fd_memory memory = {
        .inputs = {&buffers[0]}, .num_inputs = 1, .o = &buffers[1], .lse = &buffers[2], .workspace = &buffers[3]};
    const fd_problem problem = {.size = sizeof problem, .sinks = {.data = elsewhere}};
    until_failure = -1;
    cr_assert_eq(fd_run_mirrored(&fake, &rung, &problem, NULL, &memory, why, sizeof why), FD_INVALID);
    cr_assert(strstr(why, "none of the buffers") != NULL, "%s", why);
    for (size_t k = 0; k < 4; k++) {
        fd_buffer_free(&buffers[k]);
    }
}

Test(mirror, the_emulator_refuses_what_would_take_minutes)
{
    fd_caps caps = *fd_ladder_find(5)->caps;
    fd_rung rung = *fd_ladder_find(5);
    fd_device emulator = fake;
    char why[200] = "";
    caps.spaces = 1u << FD_DEVICE;
    rung.caps = &caps;
    emulator.where = "emu";
    float x[4] = {0.0f};
    const fd_tensor row = {.data = x, .stride = {0, 0, 0, 1}}; /* every row the same one */
    fd_problem p = {.size = sizeof p,
                    .batch = 1,
                    .heads_q = 32,
                    .heads_kv = 32,
                    .q_len = 1,
                    .head_dim = 4,
                    .head_dim_v = 4,
                    .kv_capacity = 1 << 17,
                    .q = row,
                    .k = row,
                    .v = row,
                    .o = {.data = x, .stride = {128, 128, 4, 1}},
                    .sm_scale = 1.0f,
                    .window_left = -1,
                    .window_right = -1};
    fd_use_device(&emulator);
    cr_assert_eq(fd_supports_here(&rung, &p, why, sizeof why), FD_OK, "%s", why);
    p.kv_capacity++;
    cr_assert_eq(fd_supports_here(&rung, &p, why, sizeof why), FD_UNSUPPORTED);
    cr_assert(strstr(why, "too long for the emulator") != NULL, "%s", why);
    fd_limit_emulation(0);
    cr_assert_eq(fd_supports_here(&rung, &p, why, sizeof why), FD_OK);
    fd_limit_emulation(FD_EMULATED_MAX);
    fd_use_device(&fake);
    cr_assert_eq(fd_supports_here(&rung, &p, why, sizeof why), FD_OK, "a GPU takes it: %s", why);
    fd_use_device(NULL);
}
