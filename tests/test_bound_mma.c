/* test_bound_mma.c: the bound on tensor cores. What one instruction may err by, under the emulator's three models
 * and those of three chips; then attention on such instructions, on random inputs and on some that reach the bound. */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <math.h>

#include "bound_check.h"
#include "emu/emulator.h"
#include "emu/mma.h"
#include "sigma.h"

#define U 0x1p-24
enum { MMA = 16 };

static float in_type(double x, int32_t dtype)
{
    fd_tensor place = {.data = &(float){0.0f}, .dtype = dtype};
    fd_store(&place, 0, (float)x);
    return fd_load(&place, 0);
}

/* ---- One instruction --------------------------------------------------------------------------- */

/* A chip that cuts every addend `bits` bits below the leading bit of the largest, and then their sum, `batch`
 * products at a time. V100: 23, 4; A100: 24, 8; H100: 25, 16 (Khattak and Mikaitis, arXiv 2512.07004). */
static float cut_mma(float c, const float *a, const float *b, int bits, int batch)
{
    for (int first = 0; first < MMA; first += batch) {
        int largest = c != 0.0f ? ilogbf(c) : -1000;
        for (int k = first; k < first + batch; k++) {
            if (a[k] != 0.0f && b[k] != 0.0f) {
                const int exponent = ilogbf(a[k]) + ilogbf(b[k]);
                largest = exponent > largest ? exponent : largest;
            }
        }
        double sum = trunc(ldexp((double)c, bits - largest)); /* integers below 2^31: exact */
        for (int k = first; k < first + batch; k++) {
            sum += trunc(ldexp((double)a[k] * (double)b[k], bits - largest));
        }
        sum = ldexp(sum, largest - bits);
        c = (float)sum;
        c = fabs((double)c) > fabs(sum) ? nextafterf(c, 0.0f) : c;
    }
    return c;
}

static const struct way {
    const char *name;
    int model, bits, batch; /* of the emulator, or a chip (model -1) */
    double most;            /* units of u times the sum of |addends| */
    double reached;         /* at least so much of it by the inputs below */
} ways[] = {{"sequential", FD_EMU_MMA_SEQUENTIAL, 0, 0, 16.0, 0.98},
            {"exact", FD_EMU_MMA_EXACT, 0, 0, 1.0, 0.98},
            {"truncated", FD_EMU_MMA_TRUNCATED, 0, 0, 10.0, 0.85},
            {"H100", -1, 25, 16, 10.0, 0.85},
            {"A100", -1, 24, 8, 20.0, 0.75},
            {"V100", -1, 23, 4, 40.0, 0.75}};
enum { NUM_WAYS = sizeof ways / sizeof *ways };

static float add(const struct way *w, float c, const float *a, const float *b)
{
    return w->model >= 0 ? emu_mma_dot(w->model, c, a, b, MMA) : cut_mma(c, a, b, w->bits, w->batch);
}

/* |computed - exact| over the sum of |addends|, in units of u. Doubles suffice: the inputs have few bits. */
static double error_of(const struct way *w, float c, const float *a, const float *b)
{
    double sum = (double)c, size = fabs((double)c);
    for (int k = 0; k < MMA; k++) {
        sum += (double)a[k] * (double)b[k];
        size += fabs((double)a[k] * (double)b[k]);
    }
    return size > 0.0 ? fabs((double)add(w, c, a, b) - sum) / (U * size) : 0.0;
}

static void draw_mma(uint64_t *seed, int32_t dtype, float *c, float *a, float *b)
{
    const int32_t spread = 1 + fd_check_below(seed, 12), cancel = fd_check_below(seed, 3);
    for (int k = 0; k < MMA; k++) {
        a[k] = in_type(fd_check_uniform(seed) * ldexp(1.0, -fd_check_below(seed, spread)), dtype);
        b[k] = in_type(fd_check_uniform(seed) * ldexp(1.0, -fd_check_below(seed, spread)), dtype);
        if (cancel == 0 && k % 2 == 1) {
            a[k] = -a[k - 1];
            b[k] = b[k - 1];
        }
    }
    *c = (float)(fd_check_uniform(seed) * ldexp(1.0, fd_check_below(seed, 24) - 12));
}

/* c = 1 and products just above half a unit of it, which round up one by one, or together leave a half. Just below the
 * last bit that a chip keeps, which are all cut, and with one less of them so is their sum. */
static double worst_built(const struct way *w)
{
    float a[MMA], b[MMA];
    double worst = 0.0;
    for (int e = -30; e <= -20; e++) {
        for (int less = 0; less < 4; less++) {
            for (int k = 0; k < MMA; k++) {
                a[k] = k % (w->batch > 0 ? w->batch : MMA) < less ? 0.0f : ldexpf(1.0f, e);
                b[k] = 1.0f + 0x1p-7f;
            }
            worst = fmax(worst, error_of(w, 1.0f, a, b));
            for (int k = 0; k < MMA; k++) {
                b[k] = 2.0f - 0x1p-7f;
            }
            worst = fmax(worst, error_of(w, 1.0f, a, b));
        }
    }
    return worst;
}

Test(bound_mma, one_instruction_errs_by_no_more_than_16_additions)
{
    const fd_arith claims = {.accumulator = FD_ACC_TENSOR_CORE};
    const double kappa = fd_bound_rounding(&claims, &fd_check_fp32).mma;
    cr_assert(kappa >= 16.0 * U && kappa < 16.001 * U);
    for (int x = 0; x < NUM_WAYS; x++) {
        const struct way *w = &ways[x];
        uint64_t seed = 7;
        double drawn = 0.0, built = worst_built(w);
        for (int i = 0; i < 40000; i++) {
            float a[MMA], b[MMA], c;
            draw_mma(&seed, i % 2 ? FD_BF16 : FD_F16, &c, a, b);
            drawn = fmax(drawn, error_of(w, c, a, b));
        }
        cr_log_info("%s: random %.2f u, built %.2f u, at most %g u", w->name, drawn, built, w->most);
        const double most = expm1(w->most * log1p(U)) / U;
        cr_expect(drawn <= most && built <= most, "%s: %g, %g", w->name, drawn, built);
        cr_expect(built >= w->reached * w->most, "%s: built inputs reach %g only", w->name, built);
        cr_expect_eq(w->most * U <= kappa, x < 4, "%s: within the default", w->name);
    }
}

/* ---- Attention --------------------------------------------------------------------------------- */

typedef struct kernel {
    const struct way *w;
    int32_t dtype_p, p_parts, p_in_l, dtype_partial;
    int64_t split_size;
    bool online; /* the maximum runs over tiles of 16 keys; else that of the split is taken beforehand */
} kernel;

static fd_arith claims_of(const kernel *k, int64_t n)
{
    const int64_t keys = k->split_size < n ? k->split_size : n;
    return (fd_arith){.size = sizeof(fd_arith),
                      .accumulator = FD_ACC_TENSOR_CORE,
                      .dtype_p = k->dtype_p,
                      .dtype_partial = k->dtype_partial,
                      .p_parts = k->p_parts,
                      .p_in_l = k->p_in_l,
                      .mma_rel = (float)(k->w->most > 16.0 ? k->w->most * U * (1.0 + 0x1p-18) : 0.0),
                      .num_levels = 2,
                      .level = {{keys, k->online ? FD_MERGE_RUNNING : FD_MERGE_ADD, FD_SEQUENTIAL, 1, 0},
                                {(n + keys - 1) / keys, FD_MERGE_NORMALISED, FD_SEQUENTIAL, 1, 0}}};
}

static float logit(const fd_check_case *c, const kernel *k, int64_t j)
{
    float sum = 0.0f;
    for (int32_t i = 0; i < c->p.head_dim; i += MMA) {
        float a[MMA] = {0.0f}, b[MMA] = {0.0f};
        for (int32_t x = 0; x < MMA && i + x < c->p.head_dim; x++) {
            a[x] = c->q[i + x];
            b[x] = c->k[j * c->p.head_dim + i + x];
        }
        sum = add(k->w, sum, a, b);
    }
    return c->p.sm_scale * sum;
}

typedef struct state {
    float m, l, o[32];
} state;

/* Sixteen keys from j on. */
static void add_tile(const fd_check_case *c, const kernel *k, state *x, int64_t j, int64_t end)
{
    float s[MMA], weight[MMA] = {0.0f}, part[MMA] = {0.0f}, v[MMA] = {0.0f}, m = x->m;
    const float one[MMA] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const int64_t keys = end - j < MMA ? end - j : MMA;
    for (int64_t t = 0; t < keys; t++) {
        s[t] = logit(c, k, j + t);
        m = fmaxf(m, s[t]);
    }
    const float alpha = expf(x->m - m);
    x->l = x->l * alpha;
    for (int32_t i = 0; i < c->p.head_dim_v; i++) {
        x->o[i] *= alpha;
    }
    x->m = m;
    for (int64_t t = 0; t < keys; t++) {
        weight[t] = expf(s[t] - m);
        x->l += k->p_in_l ? 0.0f : weight[t];
    }
    for (int32_t step = 0; step < (k->p_parts > 1 ? k->p_parts : 1); step++) {
        for (int64_t t = 0; t < keys; t++) {
            part[t] = in_type((double)weight[t], k->dtype_p);
            weight[t] -= part[t];
        }
        x->l = k->p_in_l ? add(k->w, x->l, part, one) : x->l;
        for (int32_t i = 0; i < c->p.head_dim_v; i++) {
            for (int64_t t = 0; t < keys; t++) {
                v[t] = c->v[(j + t) * c->p.head_dim_v + i];
            }
            x->o[i] = add(k->w, x->o[i], part, v);
        }
    }
}

static void attend(fd_check_case *c, const kernel *k)
{
    const int64_t n = c->p.kv_capacity;
    state part[64], sum = {.m = -INFINITY};
    int64_t splits = 0;
    for (int64_t begin = 0; begin < n; begin += k->split_size, splits++) {
        const int64_t end = begin + k->split_size < n ? begin + k->split_size : n;
        state *x = &part[splits];
        *x = (state){.m = -INFINITY};
        for (int64_t j = begin; !k->online && j < end; j++) {
            x->m = fmaxf(x->m, logit(c, k, j));
        }
        for (int64_t j = begin; j < end; j += MMA) {
            add_tile(c, k, x, j, end);
        }
        for (int32_t i = 0; i < c->p.head_dim_v; i++) {
            x->o[i] = in_type((double)(x->o[i] / x->l), k->dtype_partial);
        }
        sum.m = fmaxf(sum.m, x->m);
    }
    for (int64_t s = 0; s < splits; s++) {
        const float weight = expf(part[s].m - sum.m) * part[s].l;
        sum.l += weight;
        for (int32_t i = 0; i < c->p.head_dim_v; i++) {
            sum.o[i] += weight * part[s].o[i];
        }
    }
    for (int32_t i = 0; i < c->p.head_dim_v; i++) {
        c->o[i] = sum.o[i] / sum.l;
    }
    c->lse[0] = sum.m + logf(sum.l);
}

/* Runs and judges; the largest error over bound of o, and that of lse. */
static void judge(fd_check_case *c, const kernel *k, double of[2])
{
    const fd_arith claims = claims_of(k, c->p.kv_capacity);
    attend(c, k);
    cr_assert_eq(fd_check_judge(c, &claims, &fd_check_fp32), FD_OK);
    cr_assert(c->bound.known && c->bound.admissible);
    of[0] = 0.0;
    of[1] = fd_check_lse_error(c, (double)c->lse[0]) / c->bound.lse;
    for (int32_t i = 0; i < c->p.head_dim_v; i++) {
        const double ratio = fd_check_error(c, i, (double)c->o[i]) / c->bound.o[i];
        of[0] = ratio <= of[0] ? of[0] : ratio; /* NaN stays */
    }
}

/* Numbers of a 16-bit type: normal-like, or with one sign, or a logit that is huge and cancels. */
static void draw_case(fd_check_case *c, int32_t dtype, uint64_t *seed)
{
    const int32_t d = c->p.head_dim, kind = fd_check_below(seed, 4);
    const double loud = kind == 1 ? 8.0 : 1.0;
    for (int32_t i = 0; i < d; i++) {
        c->q[i] = in_type(2.0 * loud * fd_check_uniform(seed), dtype);
    }
    for (int64_t j = 0; j < c->p.kv_capacity; j++) {
        for (int32_t i = 0; i < d; i++) {
            const double opposite = i % 2 == 1 && kind == 3 ? -(double)c->k[j * d + i - 1] : 0.0;
            c->k[j * d + i] = in_type(2.0 * fd_check_uniform(seed) + 30.0 * opposite, dtype);
        }
        for (int32_t i = 0; i < c->p.head_dim_v; i++) {
            const double v = fd_check_uniform(seed);
            c->v[j * c->p.head_dim_v + i] = in_type(kind == 2 ? fabs(v) : v, dtype);
        }
    }
    c->p.sm_scale = (float)(1.0 / sqrt((double)d));
}

/* Every way to add, both types, one and two parts, l of rounded weights, 16-bit partials, ragged splits, with and
 * without a running maximum. */
Test(bound_mma, attention_stays_within_the_bound_on_random_inputs)
{
    uint64_t seed = 31;
    double worst[NUM_WAYS] = {0.0}, of[2];
    for (int run = 0; run < 600; run++) {
        const int32_t dtype = run % 2 ? FD_BF16 : FD_F16,
                      d = (const int32_t[]){1, 16, 40, 64}[fd_check_below(&seed, 4)];
        const int64_t n = 1 + fd_check_below(&seed, 150);
        fd_check_case c;
        kernel k = {.w = &ways[run % NUM_WAYS], .dtype_p = dtype, .online = fd_check_below(&seed, 2)};
        k.p_parts = 1 + fd_check_below(&seed, 2);
        k.p_in_l = k.p_parts == 1 && fd_check_below(&seed, 3) == 0;
        k.dtype_partial = fd_check_below(&seed, 3) == 0 ? dtype : FD_F32;
        k.split_size = 1 + fd_check_below(&seed, (int32_t)n);
        k.split_size = k.split_size * 60 < n ? n : k.split_size;
        cr_assert_eq(fd_check_init(&c, n, d, 3), FD_OK);
        draw_case(&c, dtype, &seed);
        judge(&c, &k, of);
        cr_expect(of[0] <= 1.0 && of[1] <= 1.0, "run %d, %s: o at %g, lse at %g of the bound", run, k.w->name, of[0],
                  of[1]);
        worst[run % NUM_WAYS] = fmax(worst[run % NUM_WAYS], fmax(of[0], of[1]));
        fd_check_free(&c);
    }
    for (int x = 0; x < NUM_WAYS; x++) {
        cr_log_info("%s: at %.3f of the bound", ways[x].name, worst[x]);
    }
}

/* One key of weight 1 and n - 1 of weight 2^-24 or 2^-25: all their products are lost, or round up, while l loses or
 * keeps its own. */
static double attained(int way, int64_t n, float logit_of_rest, float v)
{
    fd_check_case c;
    double of[2];
    const kernel k = {.w = &ways[way], .dtype_p = FD_BF16, .split_size = n};
    cr_assert_eq(fd_check_init(&c, n, 1, 1), FD_OK);
    c.q[0] = c.v[0] = 1.0f;
    for (int64_t j = 1; j < n; j++) {
        c.k[j] = logit_of_rest;
        c.v[j] = v;
    }
    judge(&c, &k, of);
    fd_check_free(&c);
    return of[0];
}

/* k need not be a 16-bit number here: its only product is exact. */
Test(bound_mma, attained)
{
    const double up = attained(0, 4096, -16.635532f, 1.0f + 0x1p-7f);
    const double lost = attained(2, 4096, -17.33f, -1.0f + 0x1p-8f);
    const double old = attained(5, 4096, -16.0f, -1.0f);
    cr_log_info("sequential %.4f, truncated %.4f, V100 %.4f of the bound", up, lost, old);
    cr_expect(up <= 1.0 && up > 0.98, "%g", up);
    cr_expect(lost <= 1.0 && lost > 0.4, "%g", lost);
    cr_expect(old <= 1.0, "%g", old);
}

/* ---- Tier 3 ------------------------------------------------------------------------------------ */

/* The largest error in standard deviations of the model of `claimed`, for a kernel that computes like k. */
static double z_of(fd_check_case *c, const kernel *k, const kernel *claimed)
{
    const fd_arith claims = claims_of(claimed, c->p.kv_capacity);
    fd_sigma sigma;
    double z;
    attend(c, k);
    cr_assert_eq(fd_check_judge(c, &claims, &fd_check_fp32), FD_OK);
    cr_assert_eq(fd_sigma_init(&sigma, c->p.kv_capacity, c->p.head_dim_v), FD_OK);
    fd_sigma_logits(&c->p, 0, 0, 0, &c->row, &sigma);
    fd_sigma_row(&claims, &fd_check_fp32, &c->p, 0, 0, &c->row, &sigma);
    cr_assert(sigma.known && sigma.lse > 0.0);
    z = fd_check_lse_error(c, (double)c->lse[0]) / sigma.lse;
    for (int32_t i = 0; i < c->p.head_dim_v; i++) {
        z = fmax(z, fd_check_error(c, i, (double)c->o[i]) / sigma.o[i]);
    }
    fd_sigma_free(&sigma);
    return z;
}

/* On random inputs right kernels stay inside, however the chip adds; bf16 weights where fp16 is claimed do not,
 * although both are within the proved bound. */
Test(bound_mma, tier_3_tells_bf16_weights_from_fp16_weights)
{
    uint64_t seed = 77;
    double most[NUM_WAYS] = {0.0}, least = HUGE_VAL;
    for (int run = 0; run < 36; run++) {
        fd_check_case c;
        cr_assert_eq(fd_check_init(&c, 700, 64, 32), FD_OK);
        for (int32_t i = 0; i < 64; i++) {
            c.q[i] = in_type(2.0 * fd_check_uniform(&seed), FD_F16);
        }
        for (int64_t j = 0; j < 700 * 64; j++) {
            c.k[j] = in_type(2.0 * fd_check_uniform(&seed), FD_F16);
        }
        for (int64_t j = 0; j < 700 * 32; j++) {
            c.v[j] = in_type(fd_check_uniform(&seed), FD_F16);
        }
        c.p.sm_scale = 0.125f;
        kernel k = {.w = &ways[run % NUM_WAYS], .dtype_p = FD_F16, .split_size = 256, .online = run % 2 == 0};
        const kernel claimed = k;
        most[run % NUM_WAYS] = fmax(most[run % NUM_WAYS], z_of(&c, &k, &claimed));
        k.dtype_p = FD_BF16;
        if (run < 6) {
            least = fmin(least, z_of(&c, &k, &claimed));
        }
        fd_check_free(&c);
    }
    for (int x = 0; x < NUM_WAYS; x++) {
        cr_log_info("%s: fp16 weights at most %.2f standard deviations out", ways[x].name, most[x]);
        cr_expect(most[x] < 4.5, "%s: %g", ways[x].name, most[x]);
    }
    cr_log_info("bf16 weights: %.1f at least", least);
    cr_expect(least > FD_SIGMA_LIMIT, "%g", least);
}
