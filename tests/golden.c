/* golden.c: see golden.h. */
#include "golden.h"

#include <stdlib.h>

#include "gen.h"
#include "instance.h"
#include "oracle.h"
#include "safetensors.h"

/* Numbers of a row, then numbers of an output element, in the order of the names below. */
enum { LSE, LSE_LO, LSE_RADIUS, S_MAX, A_MAX, GAP_MAX, PER_ROW };
enum { O, O_LO, O_RADIUS, GAUGE, SPREAD, SPREAD_A, SPREAD_GAP, V_MAX, PER_ELEMENT };
static const char *const row_names[] = {"exact.lse",     "exact.lse_lo",  "exact.lse_radius",
                                        "moments.s_max", "moments.a_max", "moments.gap_max"};
static const char *const element_names[] = {
    "exact.o",        "exact.o_lo",       "exact.o_radius",     "moments.gauge",
    "moments.spread", "moments.spread_a", "moments.spread_gap", "moments.v_max"};
enum { TENSORS_MAX = 7 + PER_ROW + PER_ELEMENT };

typedef struct golden {
    fd_instance x;
    fd_oracle_row row;
    double *rows[PER_ROW];         /* [batch, q_len, heads_q] each */
    double *elements[PER_ELEMENT]; /* [batch, q_len, heads_q, head_dim_v] each */
    float *known;                  /* the same shape: answers that are known bit for bit */
    bool all_known;
    int32_t *visible; /* [batch, q_len] */
    void *q, *k, *v;  /* without the instance's padding */
    double *storage;  /* of rows and elements */
    int64_t num_rows;
} golden;

void fd_golden_name(const fd_case *c, char *name, size_t n)
{
    snprintf(name, n, "%s", c->name);
    for (char *at = name; *at != '\0'; at++) {
        *at = strchr("/: ^", *at) != NULL ? '-' : *at;
    }
}

/* [batch, slots, heads, dim] of a tensor in row-major order, bytes as stored. Slots at or past lens[b] are all ones, which
 * is NaN: no answer may depend on them. */
static void *packed(const fd_tensor *x, int32_t batch, int64_t slots, int32_t heads, int32_t dim, const int32_t *lens)
{
    const size_t element = fd_dtype_bytes(x->dtype),
                 count = (size_t)batch * (size_t)slots * (size_t)heads * (size_t)dim;
    unsigned char *bytes = malloc(count * element + 1), *to = bytes;
    if (bytes == NULL) {
        return NULL;
    }
    memset(bytes, 0xff, count * element);
    for (int32_t b = 0; b < batch; b++) {
        for (int64_t j = 0; j < slots; j++) {
            for (int32_t h = 0; h < heads; h++) {
                for (int32_t i = 0; i < dim; i++, to += element) {
                    const int64_t at = b * x->stride[0] + j * x->stride[1] + h * x->stride[2] + i * x->stride[3];
                    if (lens == NULL || j < lens[b]) {
                        memcpy(to, (const unsigned char *)x->data + (size_t)at * element, element);
                    }
                }
            }
        }
    }
    return bytes;
}

static fd_status allocate(golden *g)
{
    const fd_problem *p = &g->x.problem;
    const size_t rows = (size_t)fd_row_count(p), dims = (size_t)p->head_dim_v;
    g->num_rows = (int64_t)rows;
    g->storage = calloc(rows * (PER_ROW + PER_ELEMENT * dims) + 1, sizeof *g->storage);
    g->known = calloc(rows * dims + 1, sizeof *g->known);
    g->visible = calloc((size_t)p->batch * (size_t)p->q_len + 1, sizeof *g->visible);
    g->q = packed(&p->q, p->batch, p->q_len, p->heads_q, p->head_dim, NULL);
    g->k = packed(&p->k, p->batch, g->x.c.kv_len, p->heads_kv, p->head_dim, g->x.c.kv_lens);
    g->v = packed(&p->v, p->batch, g->x.c.kv_len, p->heads_kv, p->head_dim_v, g->x.c.kv_lens);
    if (g->storage == NULL || g->known == NULL || g->visible == NULL || g->q == NULL || g->k == NULL || g->v == NULL) {
        return FD_NO_MEMORY;
    }
    for (size_t k = 0; k < PER_ROW; k++) {
        g->rows[k] = g->storage + k * rows;
    }
    for (size_t k = 0; k < PER_ELEMENT; k++) {
        g->elements[k] = g->storage + (PER_ROW + k * dims) * rows;
    }
    return fd_oracle_row_init(&g->row, p->kv_capacity, p->head_dim_v);
}

static void take_row(golden *g, int64_t at)
{
    const fd_oracle_row *row = &g->row;
    const double of_row[] = {row->lse, row->lse_lo, row->lse_radius, row->s_max, row->a_max, row->gap_max};
    const double *const of_element[] = {row->o,      row->o_lo,     row->radius,     row->gauge,
                                        row->spread, row->spread_a, row->spread_gap, row->v_max};
    const size_t dims = (size_t)row->head_dim_v;
    for (size_t k = 0; k < PER_ROW; k++) {
        g->rows[k][at] = row->kv_len > 0 || k <= LSE ? of_row[k] : 0.0; /* of no key there is no largest logit */
    }
    for (size_t k = 0; k < PER_ELEMENT; k++) {
        memcpy(g->elements[k] + (size_t)at * dims, of_element[k], dims * sizeof(double));
    }
}

static fd_status answer(golden *g, char *why, size_t n)
{
    const fd_problem *p = &g->x.problem;
    g->all_known = true;
    for (int32_t b = 0; b < p->batch; b++) {
        for (int32_t t = 0; t < p->q_len; t++) {
            g->visible[b * p->q_len + t] = (int32_t)fd_visible_end(p, b, t);
            for (int32_t h = 0; h < p->heads_q; h++) {
                const int64_t at = fd_row_index(p, b, t, h);
                const fd_status status = fd_oracle(p, b, t, h, FD_ORACLE_BITS, &g->row, why, n);
                if (status != FD_OK) {
                    return status;
                }
                take_row(g, at);
                g->all_known = g->all_known && fd_gen_exact(&g->x.c, p, b, t, h, g->known + at * p->head_dim_v);
            }
        }
    }
    /* What a right kernel returns: the answer, rounded to the type of o. */
    for (int64_t i = 0; i < g->num_rows * p->head_dim_v; i++) {
        fd_tensor rounded = {.data = &(float){0.0f}, .dtype = p->o.dtype};
        fd_store(&rounded, 0, g->known[i]);
        g->known[i] = fd_load(&rounded, 0);
    }
    return FD_OK;
}

static fd_safetensor tensor(const char *name, const char *dtype, const void *data, int32_t rank, int64_t a, int64_t b,
                            int64_t c, int64_t d)
{
    return (fd_safetensor){.name = name, .dtype_name = dtype, .data = data, .rank = rank, .shape = {a, b, c, d}};
}

static const char *dtype_name(int32_t dtype)
{
    return dtype == FD_F16 ? "F16" : dtype == FD_BF16 ? "BF16" : "F32";
}

static fd_status write_file(const golden *g, const char *path, char *why, size_t n)
{
    const fd_problem *p = &g->x.problem;
    const fd_case *c = &g->x.c;
    const int64_t batch = p->batch, rows = p->q_len, heads = p->heads_q, dims = p->head_dim_v;
    const char *kv = dtype_name(p->k.dtype);
    char version[16], ahead[16];
    fd_safetensor x[TENSORS_MAX];
    int32_t count = 0, facts = 0;
    x[count++] = tensor("q", dtype_name(p->q.dtype), g->q, 4, batch, rows, heads, p->head_dim);
    x[count++] = tensor("k", kv, g->k, 4, batch, c->kv_len, p->heads_kv, p->head_dim);
    x[count++] = tensor("v", kv, g->v, 4, batch, c->kv_len, p->heads_kv, dims);
    x[count++] = tensor("kv_lens", "I32", c->kv_lens, 1, batch, 0, 0, 0);
    x[count++] = tensor("sm_scale", "F32", &p->sm_scale, 0, 0, 0, 0, 0);
    x[count++] = tensor("exact.visible", "I32", g->visible, 2, batch, rows, 0, 0);
    for (int k = 0; k < PER_ROW; k++) {
        x[count++] = tensor(row_names[k], "F64", g->rows[k], 3, batch, rows, heads, 0);
    }
    for (int k = 0; k < PER_ELEMENT; k++) {
        x[count++] = tensor(element_names[k], "F64", g->elements[k], 4, batch, rows, heads, dims);
    }
    if (g->all_known) {
        x[count++] = tensor("exact.known", "F32", g->known, 4, batch, rows, heads, dims);
    }
    fd_metadata metadata[8];
    snprintf(version, sizeof version, "%d", FD_GOLDEN_VERSION);
    metadata[facts++] = (fd_metadata){"golden.version", version};
    metadata[facts++] = (fd_metadata){"golden.case", c->name};
    metadata[facts++] = (fd_metadata){"golden.dtype_o", dtype_name(p->o.dtype)};
    metadata[facts++] = (fd_metadata){"layout", "BSHD"};
    if (p->window_right >= 0) {
        snprintf(ahead, sizeof ahead, "%d", p->window_right);
        metadata[facts++] = (fd_metadata){"window_right", ahead};
    }
    return fd_safetensors_write(path, x, count, metadata, facts, why, n);
}

fd_status fd_golden_write(const fd_case *c, const char *folder, char *why, size_t n)
{
    golden g = {.storage = NULL};
    char name[sizeof c->name], path[1024];
    fd_golden_name(c, name, sizeof name);
    snprintf(path, sizeof path, "%s/%s.safetensors", folder, name);
    fd_status status = fd_instance_create(&g.x, c, why, n);
    if (status != FD_OK) {
        return status;
    }
    status = allocate(&g);
    if (status == FD_OK) {
        status = answer(&g, why, n);
    } else {
        snprintf(why, n, "%s: no memory for its answers", c->name);
    }
    if (status == FD_OK) {
        status = write_file(&g, path, why, n);
    }
    free(g.storage);
    free(g.known);
    free(g.visible);
    free(g.q);
    free(g.k);
    free(g.v);
    fd_oracle_row_free(&g.row);
    fd_instance_free(&g.x);
    return status;
}
