/* Offsets past 2^31 elements and 2^32 bytes: every rung has them right, and one that does not is seen. */
#define _DEFAULT_SOURCE /* setrlimit */

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>

#include "execute.h"
#include "huge_cases.h"
#include "ladder.h"
#include "row.h"

static void expect_pass(const fd_rung *rung)
{
    char why[256] = "";
    int passed = 0;
    for (int i = 0; i < fd_huge_case_count * FD_HUGE_AXES; i++) {
        const fd_case *c = &fd_huge_cases[i / FD_HUGE_AXES];
        const enum fd_huge_axis axis = (enum fd_huge_axis)(i % FD_HUGE_AXES);
        fd_huge_outcome out;
        if (!fd_huge_has_axis(c, axis)) {
            continue;
        }
        cr_assert_eq(fd_huge_far(rung, c, axis, &out, why, sizeof why), FD_OK, "%s", why);
        cr_expect_neq(out.verdict, FD_FAIL, "rung %d, far %s, %s: %s", rung->number, fd_huge_axis_names[axis], c->name,
                      out.reason);
        cr_expect(out.verdict != FD_PASS || out.elements > (int64_t)1 << 32);
        passed += out.verdict == FD_PASS;
    }
    cr_expect_geq(passed, 6, "rung %d took %d of the problems only", rung->number, passed);
}

Test(huge, every_cpu_rung_addresses_past_32_bits)
{
    for (int k = 0; k < fd_ladder_count; k++) {
        if (fd_runs_on_host(fd_ladder[k])) {
            expect_pass(fd_ladder[k]);
        }
    }
}

Test(huge, every_cuda_rung_addresses_past_32_bits_on_the_emulator)
{
    char why[256];
    for (int k = 0; k < fd_ladder_count; k++) {
        if (!fd_runs_on_host(fd_ladder[k]) && fd_device_for(fd_ladder[k], why, sizeof why) != NULL) {
            expect_pass(fd_ladder[k]);
        }
    }
}

/* ---- A naive rung whose offsets into one tensor are cut ---- */

enum cut { WHOLE, SIGNED_ELEMENTS, UNSIGNED_ELEMENTS, SIGNED_BYTES, UNSIGNED_BYTES, NUM_CUTS };
enum { OF_Q, OF_K, OF_V, OF_O, OF_LSE, OF_KV_LENS, NUM_TENSORS };
static enum cut cut;
static int of;

static fd_tensor moved(const fd_tensor *x, int tensor, int64_t offset)
{
    const int64_t bytes = (int64_t)fd_dtype_bytes(x->dtype);
    int64_t at = offset * bytes;
    if (tensor == of) {
        switch (cut) {
        case SIGNED_ELEMENTS:
            at = (int32_t)(uint32_t)(uint64_t)offset * bytes;
            break;
        case UNSIGNED_ELEMENTS:
            at = (uint32_t)(uint64_t)offset * bytes;
            break;
        case SIGNED_BYTES:
            at = (int32_t)(uint32_t)(uint64_t)at;
            break;
        case UNSIGNED_BYTES:
            at = (uint32_t)(uint64_t)at;
            break;
        default:
            break;
        }
    }
    fd_tensor one = *x;
    one.data = (unsigned char *)x->data + at;
    return one;
}

static float load(const fd_tensor *x, int tensor, int64_t offset)
{
    const fd_tensor one = moved(x, tensor, offset);
    return fd_load(&one, 0);
}

static void attend(const fd_problem *p, int32_t b, int32_t t, int32_t h)
{
    const int32_t h_kv = h / fd_group(p);
    const fd_tensor one = moved(&p->kv_lens, OF_KV_LENS, b * p->kv_lens.stride[0]);
    fd_problem row = *p;
    row.kv_lens.data = one.data;
    row.kv_lens.stride[0] = 0;
    const int64_t end = fd_visible_end(&row, b, t);
    float o[64] = {0.0f}, m = -INFINITY, l = 0.0f;
    for (int64_t j = 0; j < end; j++) {
        float dot = 0.0f;
        for (int32_t i = 0; i < p->head_dim; i++) {
            dot += load(&p->q, OF_Q, fd_row_at(&p->q, b, t, h) + i * p->q.stride[3]) *
                   load(&p->k, OF_K, fd_kv_at(p, &p->k, b, j, h_kv) + i * p->k.stride[3]);
        }
        const float s = p->sm_scale * dot, m_new = fmaxf(m, s), rescale = expf(m - m_new), weight = expf(s - m_new);
        m = m_new;
        l = l * rescale + weight;
        for (int32_t i = 0; i < p->head_dim_v; i++) {
            o[i] = o[i] * rescale + weight * load(&p->v, OF_V, fd_kv_at(p, &p->v, b, j, h_kv) + i * p->v.stride[3]);
        }
    }
    for (int32_t i = 0; i < p->head_dim_v; i++) {
        const fd_tensor to = moved(&p->o, OF_O, fd_row_at(&p->o, b, t, h) + i * p->o.stride[3]);
        fd_store(&to, 0, end > 0 ? o[i] / l : 0.0f);
    }
    const fd_tensor to = moved(&p->lse, OF_LSE, fd_row_at(&p->lse, b, t, h));
    fd_store(&to, 0, end > 0 ? m + logf(l) : -INFINITY);
}

static fd_status run(const fd_problem *p, const fd_context *c)
{
    (void)c;
    for (int64_t r = 0; r < fd_row_count(p); r++) {
        int32_t b, t, h;
        fd_row_of_index(p, r, &b, &t, &h);
        attend(p, b, t, h);
    }
    return FD_OK;
}

static fd_huge_outcome cut_rung(enum cut how, int tensor, int32_t case_index, enum fd_huge_axis axis)
{
    fd_rung rung = *fd_ladder_find(2);
    fd_huge_outcome out;
    char why[256] = "";
    rung.run = run;
    cut = how;
    of = tensor;
    cr_assert_eq(fd_huge_far(&rung, &fd_huge_cases[case_index], axis, &out, why, sizeof why), FD_OK, "%s", why);
    cut = WHOLE;
    return out;
}

/* Which tensors have the axis? Batch: all; keys: k and v; dims: all but lse and kv_lens. */
static bool is_far(int tensor, enum fd_huge_axis axis)
{
    switch (axis) {
    case FD_HUGE_BATCH:
        return true;
    case FD_HUGE_HEADS:
        return tensor != OF_KV_LENS;
    case FD_HUGE_ROWS:
        return tensor == OF_Q || tensor == OF_O || tensor == OF_LSE;
    case FD_HUGE_KEYS:
        return tensor == OF_K || tensor == OF_V;
    default:
        return tensor <= OF_O;
    }
}

Test(huge, an_offset_cut_to_32_bits_is_seen_in_every_tensor_and_axis)
{
    for (int axis = 0; axis < FD_HUGE_AXES; axis++) {
        const int32_t case_index = axis == FD_HUGE_ROWS ? fd_huge_case_count - 1 : 1;
        for (int tensor = 0; tensor < NUM_TENSORS; tensor++) {
            for (int how = SIGNED_ELEMENTS; how < NUM_CUTS; how++) {
                const fd_huge_outcome out = cut_rung((enum cut)how, tensor, case_index, (enum fd_huge_axis)axis);
                const int32_t want = is_far(tensor, (enum fd_huge_axis)axis) ? FD_FAIL : FD_PASS;
                cr_expect_eq(out.verdict, want, "axis %s, tensor %d, cut %d: %s", fd_huge_axis_names[axis], tensor, how,
                             out.reason);
            }
        }
        cr_expect_eq(cut_rung(WHOLE, OF_K, case_index, (enum fd_huge_axis)axis).verdict, FD_PASS);
    }
}

/* ---- Dense ---- */

static const fd_huge_dense_shape small = {
    .name = "small", .keys = 1000, .split_size = 64, .heads_q = 16, .head_dim = 64, .dtype = FD_BF16};

Test(huge, a_dense_problem_has_its_exact_answer_at_any_size)
{
    char why[256] = "";
    for (int k = 0; k < fd_ladder_count; k++) {
        fd_huge_outcome out;
        if (!fd_runs_on_host(fd_ladder[k]) && fd_device_for(fd_ladder[k], why, sizeof why) == NULL) {
            continue;
        }
        cr_assert_eq(fd_huge_dense(fd_ladder[k], &small, &out, why, sizeof why), FD_OK, "%s", why);
        cr_expect_eq(out.verdict, FD_PASS, "rung %d: %s", fd_ladder[k]->number, out.reason);
    }
}

/* A key's row of v, read one row too early. */
static fd_status run_off_by_one(const fd_problem *p, const fd_context *c)
{
    fd_problem q = *p;
    q.v.data = (unsigned char *)p->v.data + (size_t)p->v.stride[1] * fd_dtype_bytes(p->v.dtype);
    q.kv_capacity--;
    return fd_ladder_find(2)->run(&q, c);
}

Test(huge, a_wrong_answer_of_a_dense_problem_is_seen)
{
    fd_rung rung = *fd_ladder_find(2);
    fd_huge_outcome out;
    char why[256] = "";
    rung.run = run_off_by_one;
    cr_assert_eq(fd_huge_dense(&rung, &small, &out, why, sizeof why), FD_OK, "%s", why);
    cr_expect_eq(out.verdict, FD_FAIL);
}

/* ---- Where the addresses are missing ---- */

#ifndef __SANITIZE_ADDRESS__ /* whose shadow is larger than any limit */

Test(huge, too_few_addresses_are_a_skip_with_a_reason)
{
    const struct rlimit limit = {(rlim_t)8 << 30, (rlim_t)8 << 30};
    fd_huge_outcome out;
    char why[256] = "";
    cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
    cr_assert_eq(fd_huge_far(fd_ladder_find(2), &fd_huge_cases[0], FD_HUGE_BATCH, &out, why, sizeof why), FD_OK, "%s",
                 why);
    cr_expect_eq(out.verdict, FD_SKIP);
    cr_expect(strstr(out.reason, "ulimit") != NULL, "%s", out.reason);
}

#endif
