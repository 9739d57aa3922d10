/* bench.c: the problem that is timed; see bench.h. bench_run.c times it. */

#include "bench.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "machine.h"

static bool multiply(int64_t *product, int64_t factor)
{
    return !__builtin_mul_overflow(*product, factor, product);
}

int64_t fd_bench_kv_bytes(const fd_bench_shape *s)
{
    int64_t bytes = 2 * (int64_t)fd_dtype_bytes(s->dtype_kv);
    const bool fits = multiply(&bytes, s->batch) && multiply(&bytes, s->heads_kv) && multiply(&bytes, s->kv_len) &&
                      multiply(&bytes, s->head_dim);
    return fits ? bytes : -1;
}

void *fd_bench_allocate(size_t bytes)
{
    const size_t unit = FD_BENCH_ALIGNMENT;
    return bytes > SIZE_MAX - unit ? NULL : aligned_alloc(unit, (bytes / unit + 1) * unit);
}

/* Uniform in [-1, 1): cheap, and enough for a time, which hardly depends on the values. */
static void fill(const fd_tensor *x, int64_t elements, uint64_t seed)
{
    uint64_t random = seed;
    for (int64_t i = 0; i < elements; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX generator */
        fd_store(x, i, (float)(int32_t)(random >> 32) * 0x1p-31f);
    }
}

static fd_status no_memory(const fd_bench_shape *s, int64_t bytes, char *why, size_t n)
{
    snprintf(why, n, "kv_len %" PRId64 " needs %.1f GiB for K and V, and %.1f GiB are free; give a smaller --kv-len",
             s->kv_len, (double)bytes / 0x1p30, (double)fd_memory_available() / 0x1p30);
    return FD_NO_MEMORY;
}

fd_status fd_bench_check(const fd_bench_shape *s, char *why, size_t n)
{
    if (s->batch < 1 || s->heads_q < 1 || s->heads_kv < 1 || s->head_dim < 1 || s->kv_len < 1) {
        snprintf(why, n, "batch, heads, head_dim and kv_len must be at least 1");
        return FD_INVALID;
    }
    if (s->heads_q % s->heads_kv != 0) {
        snprintf(why, n, "heads_q %" PRId32 " is no multiple of heads_kv %" PRId32 "; give multiples", s->heads_q,
                 s->heads_kv);
        return FD_INVALID;
    }
    int64_t row_bytes = 4 * (int64_t)s->head_dim; /* of q and o, at most */
    const int64_t kv_bytes = fd_bench_kv_bytes(s);
    if (kv_bytes < 0 || (uint64_t)kv_bytes > SIZE_MAX / 2 || s->kv_len > INT32_MAX || !multiply(&row_bytes, s->batch) ||
        !multiply(&row_bytes, s->heads_q) || (uint64_t)row_bytes > SIZE_MAX / 2) {
        snprintf(why, n, "kv_len %" PRId64 " with these heads is beyond any memory; give a smaller --kv-len",
                 s->kv_len);
        return FD_NO_MEMORY;
    }
    if (kv_bytes > fd_memory_available() / 10 * 9 || row_bytes > fd_memory_available() / 10) {
        return no_memory(s, kv_bytes, why, n);
    }

    return FD_OK;
}

fd_status fd_bench_create(fd_bench_data *data, const fd_bench_shape *s, char *why, size_t n)
{
    *data = (fd_bench_data){.kv_bytes = 0};
    const fd_status status = fd_bench_check(s, why, n);
    if (status != FD_OK) {
        return status;
    }
    const int64_t kv_bytes = fd_bench_kv_bytes(s);
    const int64_t d = s->head_dim, heads_kv = s->heads_kv, heads_q = s->heads_q;
    const int64_t kv_elements = s->batch * heads_kv * s->kv_len * d, q_elements = s->batch * heads_q * d;
    const size_t q_bytes = (size_t)q_elements * fd_dtype_bytes(s->dtype_q);
    const size_t o_bytes = (size_t)q_elements * fd_dtype_bytes(s->dtype_o);
    const size_t lse_bytes = (size_t)(s->batch * heads_q) * sizeof(float);
    data->kv_bytes = (size_t)kv_bytes / 2;
    data->bytes = kv_bytes + (int64_t)(q_bytes + o_bytes + lse_bytes);
    data->problem = (fd_problem){
        .size = sizeof(fd_problem),
        .batch = s->batch,
        .heads_q = s->heads_q,
        .heads_kv = s->heads_kv,
        .q_len = 1,
        .head_dim = s->head_dim,
        .head_dim_v = s->head_dim,
        .kv_capacity = s->kv_len,
        .q = {fd_bench_allocate(q_bytes), {heads_q * d, heads_q * d, d, 1}, s->dtype_q, FD_HOST},
        .k = {fd_bench_allocate(data->kv_bytes), {heads_kv * s->kv_len * d, d, s->kv_len * d, 1}, s->dtype_kv, FD_HOST},
        .v = {fd_bench_allocate(data->kv_bytes), {heads_kv * s->kv_len * d, d, s->kv_len * d, 1}, s->dtype_kv, FD_HOST},
        .o = {fd_bench_allocate(o_bytes), {heads_q * d, heads_q * d, d, 1}, s->dtype_o, FD_HOST},
        .lse = {fd_bench_allocate(lse_bytes), {heads_q, heads_q, 1, 0}, FD_F32, FD_HOST},
        .sm_scale = 1.0f / sqrtf((float)s->head_dim),
        .window_left = -1,
        .window_right = -1,
    };
    fd_problem *p = &data->problem;
    if (!p->q.data || !p->k.data || !p->v.data || !p->o.data || !p->lse.data) {
        fd_bench_free(data);
        return no_memory(s, kv_bytes, why, n);
    }
    fill(&p->q, q_elements, 1);
    fill(&p->k, kv_elements, 2);
    fill(&p->v, kv_elements, 3);
    p->features = fd_features(p);
    return FD_OK;
}

void fd_bench_free(fd_bench_data *data)
{
    free(data->problem.q.data);
    free(data->problem.k.data);
    free(data->problem.v.data);
    free(data->problem.o.data);
    free(data->problem.lse.data);
    *data = (fd_bench_data){.kv_bytes = 0};
}
