/* fd.c: the host side of the contract: names, feature bits, and the checks that every problem passes first. */
#include "fd.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "ladder.h"
#include "row.h"

const fd_caps fd_readable_caps = {
    .size = sizeof(fd_caps),
    .features = FD_LSE | FD_RAGGED | FD_HEAD_DIM_V | FD_STRIDED_DIM | FD_MULTI_QUERY | FD_WINDOW,
    .dtypes_q = 1u << FD_F32 | 1u << FD_F16 | 1u << FD_BF16,
    .dtypes_kv = 1u << FD_F32 | 1u << FD_F16 | 1u << FD_BF16,
    .dtypes_o = 1u << FD_F32 | 1u << FD_F16 | 1u << FD_BF16,
    .spaces = 1u << FD_HOST,
    .head_dim_max = FD_HEAD_DIM_MAX,
    .head_dim_multiple = 1,
    .group_max = 0,
    .q_len_max = 0,
};

const fd_rung *fd_ladder_find(int32_t number)
{
    for (int i = 0; i < fd_ladder_count; i++) {
        if (fd_ladder[i]->number == number) {
            return fd_ladder[i];
        }
    }
    return NULL;
}

/* ---- Names ------------------------------------------------------------------------------------- */

const char *fd_status_name(fd_status status)
{
    static const char *const names[] = {"ok",        "invalid problem", "unsupported",
                                        "no memory", "no device",       "device error"};
    return (unsigned)status < sizeof names / sizeof *names ? names[status] : "unknown status";
}

const char *fd_dtype_name(int32_t dtype)
{
    static const char *const names[] = {"fp32", "fp16", "bf16", "fp8 e4m3", "fp8 e5m2", "int8", "int32"};
    return (uint32_t)dtype < sizeof names / sizeof *names ? names[dtype] : "unknown dtype";
}

const char *fd_feature_name(uint32_t bit)
{
    switch (bit) {
    case FD_LSE:
        return "lse output";
    case FD_RAGGED:
        return "ragged kv_lens";
    case FD_HEAD_DIM_V:
        return "head_dim_v != head_dim";
    case FD_STRIDED_DIM:
        return "innermost stride != 1";
    case FD_MULTI_QUERY:
        return "q_len > 1";
    case FD_PAGED:
        return "paged cache";
    case FD_WINDOW:
        return "window or causal mask";
    case FD_SOFTCAP:
        return "softcap";
    case FD_SINKS:
        return "sinks";
    case FD_SCALES:
        return "k_scale or v_scale";
    case FD_SHARD:
        return "shard (kv_start, kv_total_lens)";
    default:
        return "unknown feature";
    }
}

/* ---- Features ---------------------------------------------------------------------------------- */

uint32_t fd_features(const fd_problem *p)
{
    const bool strided = p->q.stride[3] != 1 || p->k.stride[3] != 1 || p->v.stride[3] != 1 || p->o.stride[3] != 1;
    uint32_t f = 0;
    f |= p->lse.data != NULL ? FD_LSE : 0u;
    f |= p->kv_lens.data != NULL ? FD_RAGGED : 0u;
    f |= p->head_dim_v != p->head_dim ? FD_HEAD_DIM_V : 0u;
    f |= strided ? FD_STRIDED_DIM : 0u;
    f |= p->q_len > 1 ? FD_MULTI_QUERY : 0u;
    f |= p->page_size > 0 ? FD_PAGED : 0u;
    f |= p->window_left >= 0 || p->window_right >= 0 ? FD_WINDOW : 0u;
    f |= p->softcap > 0.0f ? FD_SOFTCAP : 0u;
    f |= p->sinks.data != NULL ? FD_SINKS : 0u;
    f |= p->k_scale.data != NULL || p->v_scale.data != NULL ? FD_SCALES : 0u;
    f |= p->kv_start > 0 || p->kv_total_lens.data != NULL ? FD_SHARD : 0u;
    return f;
}

/* ---- Checks ------------------------------------------------------------------------------------ */

/* One line into why, and the status to return. */
static fd_status refuse(fd_status status, char *why, size_t n, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (why != NULL && n > 0) {
        vsnprintf(why, n, format, args);
    }
    va_end(args);
    return status;
}

/* Does every element of x, indexed by the extents, lie within INT64_MAX bytes of data? */
static bool offsets_fit(const fd_tensor *x, const int64_t *extents)
{
    int64_t last = 0;
    for (int d = 0; d < 4; d++) {
        int64_t span;
        if (extents[d] > 0 && (__builtin_mul_overflow(extents[d] - 1, x->stride[d], &span) ||
                               __builtin_add_overflow(last, span, &last))) {
            return false;
        }
    }
    return last < INT64_MAX / (int64_t)fd_dtype_bytes(x->dtype);
}

typedef struct named_tensor {
    const char *name;
    const fd_tensor *x;
    int64_t extents[4];
    int32_t dtype; /* -1: any */
    bool output, required;
} named_tensor;

static fd_status check_tensor(const named_tensor *t, char *why, size_t n)
{
    const fd_tensor *x = t->x;
    const bool empty = t->extents[0] == 0 || t->extents[1] == 0 || t->extents[2] == 0 || t->extents[3] == 0;
    if (x->data == NULL) {
        return t->required && !empty ? refuse(FD_INVALID, why, n, "%s is missing: its data is NULL", t->name) : FD_OK;
    }
    if (x->dtype < FD_F32 || x->dtype > FD_I32 || (t->dtype >= 0 && x->dtype != t->dtype)) {
        return refuse(FD_INVALID, why, n, "%s has dtype %s, expected %s", t->name, fd_dtype_name(x->dtype),
                      t->dtype >= 0 ? fd_dtype_name(t->dtype) : "a known one");
    }
    if (x->space != FD_HOST && x->space != FD_DEVICE) {
        return refuse(FD_INVALID, why, n, "%s has memory space %d, expected FD_HOST or FD_DEVICE", t->name, x->space);
    }
    for (int d = 0; d < 4; d++) {
        if (x->stride[d] < 0) {
            return refuse(FD_INVALID, why, n, "%s has stride[%d] = %lld, negative strides are not taken", t->name, d,
                          (long long)x->stride[d]);
        }
        if (t->output && x->stride[d] == 0 && t->extents[d] > 1) {
            return refuse(FD_INVALID, why, n, "%s has stride[%d] = 0, but outputs cannot be broadcast", t->name, d);
        }
    }
    if (!offsets_fit(x, t->extents)) {
        return refuse(FD_INVALID, why, n, "%s does not fit 64-bit addresses: reduce its shape or strides", t->name);
    }
    return FD_OK;
}

static fd_status check_sizes(const fd_problem *p, char *why, size_t n)
{
    const struct {
        const char *name;
        int64_t value, least;
    } sizes[] = {
        {"batch", p->batch, 0},
        {"heads_q", p->heads_q, 1},
        {"heads_kv", p->heads_kv, 1},
        {"q_len", p->q_len, 1},
        {"head_dim", p->head_dim, 1},
        {"head_dim_v", p->head_dim_v, 1},
        {"page_size", p->page_size, 0},
        {"num_pages", p->num_pages, 0},
        {"kv_capacity", p->kv_capacity, 0},
        {"kv_start", p->kv_start, 0},
        {"num_splits_request", p->num_splits_request, 0},
        {"split_size_request", p->split_size_request, 0},
        {"window_left", p->window_left, -1},
        {"window_right", p->window_right, -1},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (sizes[i].value < sizes[i].least) {
            return refuse(FD_INVALID, why, n, "%s is %lld, expected at least %lld", sizes[i].name,
                          (long long)sizes[i].value, (long long)sizes[i].least);
        }
    }
    if (p->heads_q % p->heads_kv != 0) {
        return refuse(FD_INVALID, why, n, "heads_q %d is not a multiple of heads_kv %d", p->heads_q, p->heads_kv);
    }
    if (p->kv_capacity > INT32_MAX) {
        return refuse(FD_INVALID, why, n, "kv_capacity %lld is above 2^31 - 1, the largest kv_len",
                      (long long)p->kv_capacity);
    }
    if (p->num_splits_request > 0 && p->split_size_request > 0) {
        return refuse(FD_INVALID, why, n, "num_splits_request and split_size_request are both set: give one");
    }
    if (!isfinite(p->sm_scale) || !isfinite(p->softcap) || p->softcap < 0.0f) {
        return refuse(FD_INVALID, why, n, "sm_scale %g or softcap %g is not a finite scale", (double)p->sm_scale,
                      (double)p->softcap);
    }
    return FD_OK;
}

/* kv_lens that the host can read must lie within the cache. */
static fd_status check_kv_lens(const fd_problem *p, char *why, size_t n)
{
    for (int32_t b = 0; b < p->batch; b++) {
        if (p->kv_lens_host != NULL && (p->kv_lens_host[b] < 0 || p->kv_lens_host[b] > p->kv_capacity)) {
            return refuse(FD_INVALID, why, n, "kv_lens_host[%d] = %d is outside 0 .. kv_capacity %lld", b,
                          p->kv_lens_host[b], (long long)p->kv_capacity);
        }
        if (p->kv_lens.data == NULL || p->kv_lens.space != FD_HOST) {
            continue;
        }
        const int64_t kv_len = fd_kv_len(p, b);
        if (kv_len < 0 || kv_len > p->kv_capacity) {
            return refuse(FD_INVALID, why, n, "kv_lens[%d] = %lld is outside 0 .. kv_capacity %lld", b,
                          (long long)kv_len, (long long)p->kv_capacity);
        }
    }
    return FD_OK;
}

fd_status fd_check_problem(const fd_problem *p, char *why, size_t n)
{
    if (p->size < sizeof(fd_problem)) {
        return refuse(FD_INVALID, why, n, "problem.size is %u, expected %zu: set it to sizeof(fd_problem)", p->size,
                      sizeof(fd_problem));
    }
    fd_status status = check_sizes(p, why, n);
    if (status != FD_OK) {
        return status;
    }
    const bool paged = p->page_size > 0;
    const int64_t pages = paged ? (p->kv_capacity + p->page_size - 1) / p->page_size : 1;
    const int64_t blocks = paged ? p->num_pages : p->batch, slots = paged ? p->page_size : p->kv_capacity;
    const named_tensor tensors[] = {
        {"q", &p->q, {p->batch, p->q_len, p->heads_q, p->head_dim}, -1, false, true},
        {"k", &p->k, {blocks, slots, p->heads_kv, p->head_dim}, -1, false, true},
        {"v", &p->v, {blocks, slots, p->heads_kv, p->head_dim_v}, -1, false, true},
        {"o", &p->o, {p->batch, p->q_len, p->heads_q, p->head_dim_v}, -1, true, true},
        {"lse", &p->lse, {p->batch, p->q_len, p->heads_q, 1}, FD_F32, true, false},
        {"kv_lens", &p->kv_lens, {p->batch, 1, 1, 1}, FD_I32, false, false},
        {"page_table", &p->page_table, {p->batch, pages, 1, 1}, FD_I32, false, paged},
        {"sinks", &p->sinks, {p->heads_q, 1, 1, 1}, FD_F32, false, false},
        {"k_scale", &p->k_scale, {blocks, slots, p->heads_kv, 1}, FD_F32, false, false},
        {"v_scale", &p->v_scale, {blocks, slots, p->heads_kv, 1}, FD_F32, false, false},
        {"kv_total_lens", &p->kv_total_lens, {p->batch, 1, 1, 1}, FD_I32, false, false},
    };
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors && status == FD_OK; i++) {
        status = check_tensor(&tensors[i], why, n);
    }
    if (status == FD_OK && p->features != fd_features(p)) {
        return refuse(FD_INVALID, why, n,
                      "problem.features is 0x%x, but its fields imply 0x%x: set it to fd_features()", p->features,
                      fd_features(p));
    }
    return status == FD_OK ? check_kv_lens(p, why, n) : status;
}

fd_status fd_readable_supports(const fd_problem *p, char *why, size_t n)
{
    return p->window_left < 0 ? FD_OK : refuse(FD_UNSUPPORTED, why, n, "window_left %d, only -1", p->window_left);
}

fd_status fd_supports(const fd_rung *rung, const fd_problem *p, char *why, size_t n)
{
    const fd_caps *caps = rung->caps;
    const fd_status status = fd_check_problem(p, why, n);
    if (status != FD_OK) {
        return status;
    }
    if (caps == NULL) {
        return refuse(FD_UNSUPPORTED, why, n, "%s takes nothing: %s", rung->name, rung->idea);
    }
    for (uint32_t bit = 1; bit != 0; bit <<= 1) {
        if (p->features & bit & ~caps->features) {
            return refuse(FD_UNSUPPORTED, why, n, "%s does not take: %s", rung->name, fd_feature_name(bit));
        }
    }
    const uint32_t any = UINT32_MAX;
    const struct {
        const char *name;
        const fd_tensor *x;
        uint32_t dtypes;
    } tensors[] = {{"q", &p->q, caps->dtypes_q},       {"k", &p->k, caps->dtypes_kv}, {"v", &p->v, caps->dtypes_kv},
                   {"o", &p->o, caps->dtypes_o},       {"lse", &p->lse, any},         {"kv_lens", &p->kv_lens, any},
                   {"page_table", &p->page_table, any}};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        const fd_tensor *x = tensors[i].x;
        if (x->data != NULL && !(tensors[i].dtypes >> x->dtype & 1u)) {
            return refuse(FD_UNSUPPORTED, why, n, "%s does not take: %s of dtype %s", rung->name, tensors[i].name,
                          fd_dtype_name(x->dtype));
        }
        if (x->data != NULL && !(caps->spaces >> x->space & 1u)) {
            return refuse(FD_UNSUPPORTED, why, n, "%s does not take: %s in %s memory", rung->name, tensors[i].name,
                          x->space == FD_HOST ? "host" : "device");
        }
    }
    const struct {
        const char *name;
        int32_t value, most;
    } limits[] = {{"head_dim", p->head_dim, caps->head_dim_max},
                  {"head_dim_v", p->head_dim_v, caps->head_dim_max},
                  {"group", fd_group(p), caps->group_max},
                  {"q_len", p->q_len, caps->q_len_max}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (limits[i].most > 0 && limits[i].value > limits[i].most) {
            return refuse(FD_UNSUPPORTED, why, n, "%s does not take: %s %d, at most %d", rung->name, limits[i].name,
                          limits[i].value, limits[i].most);
        }
    }
    const int32_t multiple = caps->head_dim_multiple > 0 ? caps->head_dim_multiple : 1;
    if (p->head_dim % multiple != 0 || p->head_dim_v % multiple != 0) {
        return refuse(FD_UNSUPPORTED, why, n, "%s does not take: head_dim %d/%d, only multiples of %d", rung->name,
                      p->head_dim, p->head_dim_v, multiple);
    }
    char what[160] = "";
    const fd_status own = rung->supports != NULL ? rung->supports(p, what, sizeof what) : FD_OK;
    return own == FD_OK ? FD_OK : refuse(own, why, n, "%s does not take: %s", rung->name, what);
}

/* ---- Optional functions ------------------------------------------------------------------------ */

size_t fd_plan_bytes(const fd_rung *rung, const fd_problem *problem, const fd_machine *machine)
{
    return rung->plan_bytes != NULL ? rung->plan_bytes(problem, machine) : 0;
}

fd_status fd_make_plan(const fd_rung *rung, const fd_problem *problem, const fd_machine *machine, fd_plan *plan)
{
    return rung->plan != NULL ? rung->plan(problem, machine, plan) : FD_OK;
}

size_t fd_workspace_bytes(const fd_rung *rung, const fd_problem *problem, const fd_plan *plan)
{
    return rung->workspace != NULL ? rung->workspace(problem, plan) : 0;
}

void fd_claims(const fd_rung *rung, const fd_problem *problem, const fd_plan *plan, int64_t kv_len, fd_arith *arith)
{
    *arith = (fd_arith){.size = sizeof *arith};
    if (rung->arith != NULL) {
        rung->arith(problem, plan, kv_len, arith);
    }
}
