/* judge.c: is attention() right on golden vectors? README.md beside it has the format and what a verdict means.
 *
 *     cc -O2 judge.c naive.c -lm && ./a.out *.safetensors
 *     ./a.out -r 2 *.safetensors         no key is rescaled more often than twice: a lower pass line */
#include "golden.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The file: 8 bytes of length, a JSON header, the elements ---- */

static char *header;
static const unsigned char *elements;

static int open_file(const char *path)
{
    unsigned char size[8] = {0};
    FILE *file = fopen(path, "rb");
    if (file == NULL || fread(size, 1, 8, file) != 8 || fseek(file, 0, SEEK_END) != 0) {
        return 0;
    }
    const size_t length = size[0] | (size_t)size[1] << 8 | (size_t)size[2] << 16, bytes = (size_t)ftell(file) - 8;
    header = calloc(bytes + 1, 1);
    elements = (unsigned char *)header + length;
    rewind(file);
    const int good = length < bytes && fseek(file, 8, SEEK_SET) == 0 && fread(header, 1, bytes, file) == bytes;
    fclose(file);
    return good;
}

/* Elements and shape of a tensor as they are in the file, as floats if asked for; NULL if it has none of that name. */
static const void *tensor(const char *name, int64_t shape[4], int as_float)
{
    char key[64];
    snprintf(key, sizeof key, "\"%s\":{\"dtype\":\"", name);
    const char *entry = strstr(header, key);
    if (entry == NULL) {
        return NULL;
    }
    const char *dtype = entry + strlen(key);
    char *at = strstr(dtype, "\"shape\":[") + 9;
    int64_t count = 1;
    for (int i = 0; i < 4 && *at != ']'; i++) {
        count *= shape[i] = strtoll(at, &at, 10);
        at += *at == ',';
    }
    const unsigned char *data = elements + strtoll(strstr(at, "[") + 1, NULL, 10);
    if (!as_float || dtype[1] == '3') { /* F32 */
        return data;
    }
    float *values = malloc((size_t)count * sizeof *values + 1);
    for (int64_t i = 0; i < count; i++) {
        const uint32_t x = data[2 * i] | (uint32_t)data[2 * i + 1] << 8, bits = x << 16;
        const uint32_t exponent = x >> 10 & 31, fraction = x & 1023;
        if (dtype[0] == 'B') { /* BF16: the upper half of a float */
            memcpy(&values[i], &bits, 4);
        } else if (exponent == 31) {
            values[i] = NAN;
        } else { /* F16 */
            values[i] =
                ldexpf((float)(exponent > 0 ? 1024 + fraction : fraction), exponent > 0 ? (int)exponent - 25 : -24);
            values[i] = x >> 15 ? -values[i] : values[i];
        }
    }
    return values; /* the process is short: nothing is freed */
}

/* ---- The closed bound (proofs/README.md; tests/closed_bound.c, for any merge tree) ---- */

#define U 0x1p-24       /* fp32, round to nearest */
#define ETA 0x1p-150    /* a product or quotient that underflows */
#define EXP_REL 0x1p-22 /* exp within 2 ulp */
#define EXP_ABS 0x1p-148
#define LOG_REL 0x1p-22
#define UP (1.0 + 0x1p-20) /* covers the roundings made here */

static const char *const names[] = {"exact.lse",          "exact.lse_lo",    "exact.lse_radius", "moments.s_max",
                                    "moments.a_max",      "moments.gap_max", "exact.o",          "exact.o_lo",
                                    "exact.o_radius",     "moments.gauge",   "moments.spread",   "moments.spread_a",
                                    "moments.spread_gap", "moments.v_max"};
enum {
    LSE,
    LSE_LO,
    LSE_RADIUS,
    S_MAX,
    A_MAX,
    GAP_MAX,
    O,
    O_LO,
    O_RADIUS,
    GAUGE,
    SPREAD,
    SPREAD_A,
    SPREAD_GAP,
    V_MAX,
    NUM
};

static double grow(double roundings)
{
    return expm1(roundings * log1p(U));
}

/* Pass lines of a row over n keys, none rescaled more than r times: of o_i in bound[i], of lse as the result. x: the row's
 * numbers, those of elements at i. */
static double bounds(double n, double r, double head_dim, double sm_scale, int64_t dims, const double *const x[NUM],
                     double *bound)
{
    const double h_n = r + n + 1.0, h_d = r + n - 2.0, g_n = grow(h_n), g_d = grow(h_d), low = exp(h_d * log1p(-U));
    const double most = (1.0 + g_n) / low, dot = grow(head_dim + 1.0), a_max = *x[A_MAX];
    const double under = 2.0 * (fabs(sm_scale) * head_dim * ETA * (1.0 + dot) + ETA), excess = dot * a_max + under;
    const double alpha = dot * (1.0 + U), beta = U * UP;
    const double gamma = 2.0 * under + U * excess + r * (ETA - log1p(-EXP_REL));
    const double z = (alpha * a_max + beta * *x[GAP_MAX] + gamma) * UP, slope = expm1(z) / z;
    const double omega = n * EXP_ABS * r * exp((r - 1.0) * log1p(EXP_REL)), ln_l = (*x[LSE] - *x[S_MAX]) + *x[LSE_LO];
    const double lost = (omega + 4.0 * n * ETA) * exp(excess - ln_l) * (1.0 + g_d);
    const double least = exp(-z) * low - lost, largest = exp(z) * (1.0 + g_d) + lost;
    for (int64_t i = 0; i < dims; i++) {
        const double o = fabs(x[O][i]), v = x[V_MAX][i];
        const double sum = slope * (alpha * x[SPREAD_A][i] + beta * x[SPREAD_GAP][i] + gamma * x[SPREAD][i]) +
                           exp(z) * (g_n * x[GAUGE][i] + g_d * o);
        const double tiny = omega * (v + o) + 2.0 * ETA * (n + 2.0 * n * (1.0 + o) + 2.0 * n * v * most);
        bound[i] = least > 0.0 ? ((1.0 + U) * sum / least + U * o + most * most * (tiny + 2.0 * ETA)) * UP : HUGE_VAL;
    }
    const double e0 = fmax(log(largest), -log(least)) * UP + n * 0x1p-52, e1 = e0 + LOG_REL * (ln_l + excess + e0);
    return least > 0.0 ? (e1 + U * (fabs(*x[LSE]) + e1)) * UP : HUGE_VAL;
}

/* ---- The verdict ---- */

struct verdict {
    int64_t judged, wrong;
    double ratio; /* largest error over its bound */
};

/* false for NaN: such an answer is wrong */
static void hold(struct verdict *v, double error, double bound)
{
    const int within = error <= bound;
    v->judged++;
    v->wrong += !within;
    v->ratio = fmax(v->ratio, within ? (error > 0.0 ? error / bound : 0.0) : isnan(error) ? HUGE_VAL : error / bound);
}

static struct verdict judge(const char *path, double rescales)
{
    int64_t q[4], k[4], v[4], s[4];
    struct verdict verdict = {0};
    const double *all[NUM];
    if (!open_file(path) || tensor("q", q, 0) == NULL || tensor("k", k, 0) == NULL || tensor("v", v, 0) == NULL) {
        fprintf(stderr, "%s: no golden vector\n", path);
        exit(2);
    }
    for (int x = 0; x < NUM; x++) {
        all[x] = tensor(names[x], s, 0);
    }
    const float *known = tensor("exact.known", s, 0);
    const struct problem p = {q[0],
                              q[1],
                              q[2],
                              k[2],
                              q[3],
                              v[3],
                              k[1],
                              *(const float *)tensor("sm_scale", s, 0),
                              tensor("kv_lens", s, 0),
                              tensor("exact.visible", s, 0),
                              tensor("q", q, 1),
                              tensor("k", k, 1),
                              tensor("v", v, 1)};
    const char *dtype_o = strstr(header, "\"golden.dtype_o\":\"") + 18;
    const double u_o = *dtype_o == 'B' ? 0x1p-8 : dtype_o[1] == '1' ? 0x1p-11 : 0.0; /* rounding of a 16-bit o */
    const double tiny_o = *dtype_o == 'B' ? 0x1p-134 : dtype_o[1] == '1' ? 0x1p-25 : 0.0;
    const int64_t rows = q[0] * q[1] * q[2], dims = v[3];
    float *o = malloc((size_t)(rows * dims) * sizeof *o), *lse = malloc((size_t)rows * sizeof *lse);
    double *bound = calloc((size_t)dims, sizeof *bound);
    const int has_lse = attention(&p, o, lse);
    for (int64_t row = 0; row < rows; row++) {
        const double n = p.visible[row / p.heads_q];
        const double *x[NUM];
        for (int t = 0; t < NUM; t++) {
            x[t] = all[t] + (t < O ? row : row * dims);
        }
        const double line =
            n > 0.0 ? bounds(n, fmin(n, rescales), (double)p.head_dim, (double)p.sm_scale, dims, x, bound) : 0.0;
        for (int64_t i = 0; i < dims; i++) {
            const double got = (double)o[row * dims + i], stored = bound[i] + u_o * (fabs(x[O][i]) + bound[i]) + tiny_o;
            const double error = fabs((got - x[O][i]) - x[O_LO][i]) + x[O_RADIUS][i];
            hold(&verdict, error, n > 0.0 ? stored : 0.0);
            verdict.wrong += known != NULL && error <= stored && got != (double)known[row * dims + i];
        }
        if (has_lse) { /* of an empty row -INFINITY, and no other */
            const double got = (double)lse[row], error = fabs((got - *x[LSE]) - *x[LSE_LO]) + *x[LSE_RADIUS];
            hold(&verdict, n > 0.0 ? error : got == -HUGE_VAL ? 0.0 : HUGE_VAL, line);
        }
    }
    printf("%s %s: %lld of %lld values wrong, largest error over bound %.3g%s\n", verdict.wrong > 0 ? "FAIL" : "pass",
           path, (long long)verdict.wrong, (long long)verdict.judged, verdict.ratio, has_lse ? "" : "; no lse");
    return verdict;
}

int main(int argc, char **argv)
{
    int64_t failed = 0, first = 1;
    double rescales = HUGE_VAL;
    if (argc > 3 && strcmp(argv[1], "-r") == 0) {
        rescales = atof(argv[2]);
        first = 3;
    }
    if (first >= argc) {
        fprintf(stderr, "usage: %s [-r R] FILE.safetensors...\n", argv[0]);
        return 2;
    }
    for (int64_t i = first; i < argc; i++) {
        failed += judge(argv[i], rescales).wrong > 0;
    }
    printf("given: fp32, round to nearest; %s; exp within 2 ulp, log within 2^-22\n%lld passed, %lld failed\n",
           first == 1 ? "any merge tree" : "at most so many rescales of a key", (long long)(argc - first - failed),
           (long long)failed);
    return failed > 0;
}
