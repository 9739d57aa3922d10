/* gen.c: fills q, k and v of a problem from its family (gen_families.c), and hashes them. */
#include "gen.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "data_path.h"
#include "gen_families.h"

uint64_t fd_random_bits(uint64_t seed, uint64_t stream, uint64_t index)
{
    return fd_bits_at(fd_stream_key(seed, stream), index);
}

float fd_random_normal(uint64_t seed, uint64_t stream, uint64_t index)
{
    return fd_normal_at(fd_stream_key(seed, stream), index);
}

static float sm_scale_of(const fd_family *family, int32_t head_dim)
{
    if (family != NULL && family->sm_scale != 0.0f) {
        return family->sm_scale == FD_SCALE_ZERO ? 0.0f : family->sm_scale;
    }
    /* sqrt and / are correctly rounded in double, and no head_dim up to 1024 is a double-rounding case. */
    return (float)(1.0 / sqrt((double)head_dim));
}

float fd_gen_sm_scale(const fd_case *c)
{
    char why[1];
    const fd_family *family = NULL;
    fd_family_find(c->family, c->argument, &family, why, sizeof why);
    return sm_scale_of(family, c->head_dim);
}

fd_status fd_gen_check(const fd_case *c, char *why, size_t n)
{
    const fd_family *family;
    const fd_status status = fd_family_find(c->family, c->argument, &family, why, n);
    if (status != FD_OK) {
        return status;
    }
    if (c->head_dim > FD_GEN_HEAD_DIM_MAX || c->head_dim_v > FD_GEN_HEAD_DIM_MAX) {
        snprintf(why, n, "head_dim %d is above %d, the generator's limit",
                 c->head_dim > c->head_dim_v ? c->head_dim : c->head_dim_v, FD_GEN_HEAD_DIM_MAX);
        return FD_INVALID;
    }
    return family->check != NULL ? family->check(c, why, n) : FD_OK;
}

/* ---- A case made ready ---- */

static fd_status find_in_file(const fd_gen *g, const char *which, const int64_t shape[4], const float **data,
                              const char *path, char *why, size_t n)
{
    char name[80];
    snprintf(name, sizeof name, "layers.%s.%s", g->c->argument, which);
    const fd_safetensor *x = fd_safetensors_find(&g->file, name);
    if (x == NULL) {
        snprintf(why, n, "%s: there is no tensor %s; restore the file", path, name);
        return FD_INVALID;
    }
    if (x->dtype != FD_F32 || x->rank != 4 || memcmp(x->shape, shape, 4 * sizeof *shape) != 0) {
        snprintf(why, n, "%s: %s is not F32 [%lld, %lld, %lld, %lld]; restore the file", path, name,
                 (long long)shape[0], (long long)shape[1], (long long)shape[2], (long long)shape[3]);
        return FD_INVALID;
    }
    *data = (const float *)x->data;
    return FD_OK;
}

static fd_status open_file(fd_gen *g, char *why, size_t n)
{
    const fd_case *c = g->c;
    const int64_t q[4] = {c->batch, c->q_len > 0 ? c->q_len : 1, c->heads_q, c->head_dim};
    const int64_t k[4] = {1, c->kv_len, c->heads_kv, c->head_dim};
    const int64_t v[4] = {1, c->kv_len, c->heads_kv, c->head_dim_v};
    char folder[4096], path[4096];
    const int length = snprintf(path, sizeof path, "%s/%s", fd_data_folder(folder, sizeof folder), g->family->file);
    if (length < 0 || (size_t)length >= sizeof path) {
        snprintf(why, n, "FD_DATA is longer than a path can be; set it to the data folder");
        return FD_INVALID;
    }
    fd_status status = fd_safetensors_open(path, &g->file, why, n);
    if (status == FD_OK) {
        status = find_in_file(g, "q", q, &g->file_q, path, why, n);
    }
    if (status == FD_OK) {
        status = find_in_file(g, "k", k, &g->file_k, path, why, n);
    }
    if (status == FD_OK) {
        status = find_in_file(g, "v", v, &g->file_v, path, why, n);
    }
    return status;
}

static fd_gen gen_of(const fd_case *c, const fd_family *family)
{
    return (fd_gen){.c = c,
                    .family = family,
                    .key_q = fd_stream_key(c->seed, FD_STREAM_Q),
                    .key_k = fd_stream_key(c->seed, FD_STREAM_K),
                    .key_v = fd_stream_key(c->seed, FD_STREAM_V),
                    .sm_scale = sm_scale_of(family, c->head_dim)};
}

/* ---- Filling ---- */

static bool takes(const fd_tensor *x, int32_t dtype)
{
    return x->data != NULL && x->space == FD_HOST && x->dtype == dtype &&
           (dtype == FD_F32 || dtype == FD_F16 || dtype == FD_BF16);
}

static fd_status check_problem(const fd_case *c, const fd_problem *p, char *why, size_t n)
{
    if (p->batch != c->batch || p->heads_q != c->heads_q || p->heads_kv != c->heads_kv ||
        p->q_len != (c->q_len > 0 ? c->q_len : 1) || p->head_dim != c->head_dim || p->head_dim_v != c->head_dim_v ||
        p->kv_capacity < c->kv_len) {
        snprintf(why, n, "the problem's shape is not that of case %s", c->name);
        return FD_INVALID;
    }
    if (!takes(&p->q, c->dtype_q) || !takes(&p->k, c->dtype_kv) || !takes(&p->v, c->dtype_kv)) {
        snprintf(why, n, "case %s fills fp32, fp16 or bf16 tensors in host memory, of its own dtypes", c->name);
        return FD_INVALID;
    }
    return fd_gen_check(c, why, n);
}

static void store_row(const fd_tensor *x, int64_t at, int32_t dim, const float *row)
{
    if (x->dtype == FD_F32 && x->stride[3] == 1) {
        memcpy((float *)x->data + at, row, (size_t)dim * sizeof *row);
        return;
    }
    for (int32_t i = 0; i < dim; i++) {
        fd_store(x, at + i * x->stride[3], row[i]);
    }
}

/* Keys and values of token j of row b, all heads. */
static void fill_token(const fd_gen *g, const fd_problem *p, int32_t b, int64_t j)
{
    float row[FD_GEN_HEAD_DIM_MAX];
    for (int32_t h = 0; h < p->heads_kv; h++) {
        g->family->k(g, b, j, h, row);
        store_row(&p->k, fd_kv_at(p, &p->k, b, j, h), p->head_dim, row);
        g->family->v(g, b, j, h, row);
        store_row(&p->v, fd_kv_at(p, &p->v, b, j, h), p->head_dim_v, row);
    }
}

fd_status fd_gen_fill(const fd_case *c, const fd_problem *problem, char *why, size_t n)
{
    fd_status status = check_problem(c, problem, why, n);
    if (status != FD_OK) {
        return status;
    }
    const fd_family *family;
    fd_family_find(c->family, c->argument, &family, why, n);
    fd_gen g = gen_of(c, family);
    if (family->file != NULL) {
        status = open_file(&g, why, n);
        if (status != FD_OK) {
            goto done;
        }
    }

    float row[FD_GEN_HEAD_DIM_MAX];
    for (int32_t b = 0; b < c->batch; b++) {
        for (g.t = 0; g.t < problem->q_len; g.t++) {
            for (int32_t h = 0; h < c->heads_q; h++) {
                family->q(&g, b, h, row);
                store_row(&problem->q, fd_row_at(&problem->q, b, g.t, h), c->head_dim, row);
            }
        }
    }
    /* Where the batch shares k and v, every row writes the same numbers: only a family read from a file is so. One
     * row at a time keeps these writes apart. */
    for (int32_t b = 0; b < c->batch; b++) {
#ifdef _OPENMP
#pragma omp parallel for schedule(static) if (c->kv_lens[b] >= 4096)
#endif
        for (int32_t j = 0; j < c->kv_lens[b]; j++) {
            fill_token(&g, problem, b, j);
        }
    }

done:
    fd_safetensors_close(&g.file);
    return status;
}

bool fd_gen_exact(const fd_case *c, const fd_problem *problem, int32_t b, int32_t t, int32_t h, float *o)
{
    char why[1];
    const fd_family *family;
    if (fd_case_visible(c, b, t) == 0) {
        memset(o, 0, (size_t)c->head_dim_v * sizeof *o);
        return true;
    }
    if (fd_family_find(c->family, c->argument, &family, why, sizeof why) != FD_OK || family->exact == NULL) {
        return false;
    }
    fd_gen g = gen_of(c, family);
    g.t = t;
    return family->exact(&g, problem, b, h, o);
}

/* ---- Hash ---- */

static uint64_t hash_row(uint64_t hash, const fd_tensor *x, int64_t at, int32_t dim)
{
    const size_t bytes = fd_dtype_bytes(x->dtype);
    for (int32_t i = 0; i < dim; i++) {
        const int64_t element = at + i * x->stride[3];
        uint32_t bits;
        if (bytes == 4) {
            bits = ((const uint32_t *)x->data)[element];
        } else {
            bits = bytes == 2 ? ((const uint16_t *)x->data)[element] : ((const uint8_t *)x->data)[element];
        }
        for (size_t byte = 0; byte < bytes; byte++) { /* least significant first, on every machine */
            hash = (hash ^ (bits >> 8 * byte & 0xffu)) * 0x100000001b3u;
        }
    }
    return hash;
}

static uint64_t hash_kv(uint64_t hash, const fd_problem *p, const fd_tensor *x, int32_t dim)
{
    for (int32_t b = 0; b < p->batch; b++) {
        for (int64_t j = 0; j < fd_kv_len(p, b); j++) {
            for (int32_t h = 0; h < p->heads_kv; h++) {
                hash = hash_row(hash, x, fd_kv_at(p, x, b, j, h), dim);
            }
        }
    }
    return hash;
}

uint64_t fd_gen_hash(const fd_problem *problem)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (int32_t b = 0; b < problem->batch; b++) {
        for (int32_t t = 0; t < problem->q_len; t++) {
            for (int32_t h = 0; h < problem->heads_q; h++) {
                hash = hash_row(hash, &problem->q, fd_row_at(&problem->q, b, t, h), problem->head_dim);
            }
        }
    }
    hash = hash_kv(hash, problem, &problem->k, problem->head_dim);
    return hash_kv(hash, problem, &problem->v, problem->head_dim_v);
}
