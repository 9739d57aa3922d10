/* case_file.c: the inputs of a case as a .safetensors file, and back. */
#include "case_file.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "dump.h"

void fd_case_file_name(int32_t number, const fd_case *c, char *name, size_t n)
{
    char plain[sizeof c->name];
    size_t i = 0;
    for (; c->name[i] != '\0'; i++) {
        const char x = c->name[i];
        plain[i] = x;
        if (!isalnum((unsigned char)x) && x != '-' && x != '.') {
            plain[i] = '_';
        }
    }
    plain[i] = '\0';
    snprintf(name, n, "%03d_%s" FD_CASE_FILE_END, number, plain);
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

bool fd_case_file_is_name(const char *name)
{
    const size_t digits = strspn(name, "0123456789");
    return digits >= 3 && name[digits] == '_' && ends_with(name, FD_CASE_FILE_END) &&
           !ends_with(name, FD_CASE_ANSWER_END);
}

void fd_case_answer_name(const char *name, char *answer, size_t n)
{
    answer[0] = '\0';
    if (ends_with(name, FD_CASE_FILE_END)) {
        snprintf(answer, n, "%.*s" FD_CASE_ANSWER_END, (int)(strlen(name) - strlen(FD_CASE_FILE_END)), name);
    }
}

/* ---- Tensors of a case ------------------------------------------------------------------------- */

enum { Q, K, V, KV_LENS, SM_SCALE, WINDOW_RIGHT, TENSORS };

static const char *dtype_name(int32_t dtype)
{
    return dtype == FD_F16 ? "F16" : dtype == FD_BF16 ? "BF16" : "F32";
}

/* Names, types and shapes; data comes later. */
static void describe(const fd_case *c, fd_safetensor x[TENSORS])
{
    const int32_t q_len = c->q_len > 0 ? c->q_len : 1;
    x[Q] =
        (fd_safetensor){"q", dtype_name(c->dtype_q), c->dtype_q, 4, {c->batch, q_len, c->heads_q, c->head_dim}, 0, 0};
    x[K] = (fd_safetensor){
        "k", dtype_name(c->dtype_kv), c->dtype_kv, 4, {c->batch, c->kv_len, c->heads_kv, c->head_dim}, 0, 0};
    x[V] = (fd_safetensor){
        "v", dtype_name(c->dtype_kv), c->dtype_kv, 4, {c->batch, c->kv_len, c->heads_kv, c->head_dim_v}, 0, 0};
    x[KV_LENS] = (fd_safetensor){"kv_lens", "I32", FD_I32, 1, {c->batch}, 0, 0};
    x[SM_SCALE] = (fd_safetensor){"sm_scale", "F32", FD_F32, 0, {0}, 0, 0};
    x[WINDOW_RIGHT] = (fd_safetensor){"window_right", "I32", FD_I32, 0, {0}, 0, 0};
    for (int t = 0; t < TENSORS; t++) {
        x[t].bytes = fd_safetensors_element_bytes(x[t].dtype_name);
        for (int32_t d = 0; d < x[t].rank; d++) {
            x[t].bytes *= x[t].shape[d];
        }
    }
}

int64_t fd_case_file_bytes(const fd_case *c)
{
    fd_safetensor x[TENSORS];
    int64_t bytes = 0;
    describe(c, x);
    for (int t = 0; t < TENSORS; t++) {
        bytes += x[t].bytes;
    }
    return bytes;
}

/* Row [b, j, h] of an instance's q, k or v; NULL behind the visible tokens. */
static const unsigned char *row_of(const fd_problem *p, int which, int32_t b, int64_t j, int32_t h)
{
    const fd_tensor *x = which == Q ? &p->q : which == K ? &p->k : &p->v;
    if (which != Q && j >= fd_kv_len(p, b)) {
        return NULL;
    }
    const int64_t at = which == Q ? fd_row_at(x, b, (int32_t)j, h) : fd_kv_at(p, x, b, j, h);
    return (const unsigned char *)x->data + (size_t)at * fd_dtype_bytes(x->dtype);
}

typedef bool (*visitor)(const unsigned char *row, unsigned char *in_file, size_t bytes);

static bool copy_out(const unsigned char *row, unsigned char *in_file, size_t bytes)
{
    if (row == NULL) {
        memset(in_file, 0xff, bytes); /* NaN in each of the three types */
    } else {
        memcpy(in_file, row, bytes);
    }
    return true;
}

static bool is_same(const unsigned char *row, unsigned char *in_file, size_t bytes)
{
    return row == NULL || memcmp(in_file, row, bytes) == 0;
}

/* Visits the rows of q, k or v in the order of the file; false, with the place, where the visitor returns that. */
static bool visit(const fd_problem *p, int which, const fd_safetensor *x, unsigned char *data, visitor f,
                  int64_t place[3])
{
    const size_t bytes = (size_t)x->shape[3] * fd_dtype_bytes(x->dtype);
    for (place[0] = 0; place[0] < x->shape[0]; place[0]++) {
        for (place[1] = 0; place[1] < x->shape[1]; place[1]++) {
            for (place[2] = 0; place[2] < x->shape[2]; place[2]++, data += bytes) {
                if (!f(row_of(p, which, (int32_t)place[0], place[1], (int32_t)place[2]), data, bytes)) {
                    return false;
                }
            }
        }
    }
    return true;
}

fd_status fd_case_file_write(const char *path, const fd_instance *instance, char *why, size_t n)
{
    const fd_case *c = &instance->c;
    const fd_problem *p = &instance->problem;
    fd_safetensor x[TENSORS];
    unsigned char *data[V + 1] = {NULL};
    fd_status status = FD_OK;
    int64_t place[3];
    describe(c, x);
    for (int t = Q; t <= V && status == FD_OK; t++) {
        data[t] = malloc((size_t)x[t].bytes + 1);
        x[t].data = data[t];
        if (data[t] == NULL) {
            fd_safetensors_refuse(path, why, n, "no memory for %s, %lld bytes", x[t].name, (long long)x[t].bytes);
            status = FD_NO_MEMORY;
        } else {
            visit(p, t, &x[t], data[t], copy_out, place);
        }
    }
    x[KV_LENS].data = instance->lens;
    x[SM_SCALE].data = &p->sm_scale;
    x[WINDOW_RIGHT].data = &p->window_right;
    char version[12], seed[24], scale[32], hex[32], right[16], split[16];
    snprintf(version, sizeof version, "%d", FD_CASE_TABLE_VERSION);
    snprintf(seed, sizeof seed, "0x%llx", (unsigned long long)c->seed);
    snprintf(scale, sizeof scale, "%.9g", (double)p->sm_scale);
    snprintf(hex, sizeof hex, "%a", (double)p->sm_scale);
    snprintf(right, sizeof right, "%d", p->window_right);
    snprintf(split, sizeof split, "%lld", (long long)p->split_size_request);
    const fd_metadata metadata[] = {{"case", c->name},       {"family", c->family},
                                    {"cases", version},      {"seed", seed},
                                    {"layout", "BSHD"},      {"sm_scale", scale},
                                    {"sm_scale_float", hex}, {"causal", p->window_right >= 0 ? "true" : "false"},
                                    {"window_right", right}, {"split_size", split}};
    if (status == FD_OK) {
        status =
            fd_safetensors_write(path, x, TENSORS, metadata, (int32_t)(sizeof metadata / sizeof *metadata), why, n);
    }
    for (int t = Q; t <= V; t++) {
        free(data[t]);
    }
    return status;
}

/* ---- Against a case ---------------------------------------------------------------------------- */

#define CURE "write the folder anew with `flashdecode cases`"

static fd_status compare_rows(const char *path, const fd_problem *p, int which, const fd_safetensor *expected,
                              const fd_safetensor *x, char *why, size_t n)
{
    char shape[120], want[120];
    int64_t place[3];
    if (x->dtype != expected->dtype || x->rank != 4 || memcmp(x->shape, expected->shape, 4 * sizeof *x->shape) != 0) {
        return fd_safetensors_refuse(path, why, n, "%s is %s, the case's %s; " CURE, x->name,
                                     fd_dump_shape(x, shape, sizeof shape), fd_dump_shape(expected, want, sizeof want));
    }
    return visit(p, which, expected, (unsigned char *)(uintptr_t)x->data, is_same, place)
               ? FD_OK
               : fd_safetensors_refuse(path, why, n, "%s differs from the case's in row [%lld, %lld, %lld]; " CURE,
                                       x->name, (long long)place[0], (long long)place[1], (long long)place[2]);
}

fd_status fd_case_file_compare(const fd_safetensors *file, const char *path, const fd_instance *instance, char *why,
                               size_t n)
{
    const fd_problem *p = &instance->problem;
    const fd_safetensor *found[FD_DUMP_TENSORS];
    fd_safetensor expected[TENSORS];
    fd_status status = fd_dump_find(file, path, found, why, n);
    describe(&instance->c, expected);
    static const int which[] = {FD_DUMP_Q, FD_DUMP_K, FD_DUMP_V};
    for (int t = Q; t <= V && status == FD_OK; t++) {
        if (found[which[t]] != NULL) {
            status = compare_rows(path, p, t, &expected[t], found[which[t]], why, n);
        }
    }
    const fd_safetensor *lens = found[FD_DUMP_KV_LENS], *scale = found[FD_DUMP_SM_SCALE];
    if (status == FD_OK && lens != NULL) {
        bool same = (lens->dtype == FD_I32 || strcmp(lens->dtype_name, "I64") == 0) && lens->rank == 1 &&
                    lens->shape[0] == p->batch;
        for (int32_t b = 0; b < p->batch && same; b++) {
            same = fd_dump_integer(lens, b) == instance->lens[b];
        }
        status = same ? FD_OK : fd_safetensors_refuse(path, why, n, "%s differs from the case's; " CURE, lens->name);
    }
    if (status == FD_OK && scale != NULL &&
        (scale->dtype != FD_F32 || scale->bytes != 4 || memcmp(scale->data, &p->sm_scale, 4) != 0)) {
        status = fd_safetensors_refuse(path, why, n, "%s differs from the case's, %a; " CURE, scale->name,
                                       (double)p->sm_scale);
    }
    const fd_safetensor *right = found[FD_DUMP_WINDOW_RIGHT];
    if (status == FD_OK && right != NULL &&
        (right->dtype != FD_I32 || right->bytes != 4 || fd_dump_integer(right, 0) != p->window_right)) {
        status =
            fd_safetensors_refuse(path, why, n, "%s differs from the case's, %d; " CURE, right->name, p->window_right);
    }
    return status;
}
