/* gpu_math.c: see gpu_math.h. */
#include "gpu_math.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"
#include "csv_read.h"
#include "execute.h"
#include "gpu/math_error.h"
#include "ladder.h"

#ifdef FD_GPU
#include "gpu/measure.h"
#endif

#define REFERENCE_SLACK 0x1p-50 /* what is assumed of the reference: libm_error.h */
#define SUBNORMAL_SLACK 0x1p-27 /* the same at 2^-126, in units of 2^-149 */

static float up(double error)
{
    return nextafterf((float)error, INFINITY);
}

/* The error of a range, at most `most`; NaN, which no comparison passes, if it is missing or larger. */
static double error_of(const fd_csv_table *t, const char *function, const char *range, double most)
{
    const int32_t f = fd_csv_column(t, "function"), r = fd_csv_column(t, "range"), e = fd_csv_column(t, "error");
    for (int32_t row = 0; row < t->rows; row++) {
        if (strcmp(fd_csv_at(t, row, f), function) == 0 && strcmp(fd_csv_at(t, row, r), range) == 0) {
            char *end;
            const char *text = fd_csv_at(t, row, e);
            const double error = strtod(text, &end);
            return *text != '\0' && *end == '\0' && error >= 0.0 && error <= most ? error : (double)NAN;
        }
    }
    return (double)NAN;
}

static bool begins_with(const char *text, const char *with)
{
    return text != NULL && with != NULL && with[0] != '\0' && strncmp(text, with, strlen(with)) == 0;
}

static fd_gpu_math not_measured(const char *why)
{
    fd_gpu_math none = {.measured = false};
    snprintf(none.source, sizeof none.source, "%.235s", why);
    return none;
}

/* fmax() would take a number in place of NaN. */
static double larger(double x, double y)
{
    return isnan(x) || isnan(y) ? (double)NAN : fmax(x, y);
}

fd_gpu_math fd_gpu_math_read(const char *path, const char *gpu, const char *toolkit)
{
    fd_csv_table t;
    char why[256];
    if (fd_csv_read(path, &t, why, sizeof why) != FD_OK) {
        return not_measured(why);
    }
    const char *processor = fd_csv_comment(&t, "processor"), *libc = fd_csv_comment(&t, "libc");
    if (!begins_with(processor, gpu) || libc == NULL || toolkit == NULL || strcmp(libc, toolkit) != 0) {
        snprintf(why, sizeof why, "%.80s is of %.60s, %.20s", path, processor != NULL ? processor : "no processor",
                 libc != NULL ? libc : "no toolkit");
        fd_csv_free(&t);
        return not_measured(why);
    }
    const double exp_rel = larger(error_of(&t, "expf", "[-104 0] normal", 1.0), error_of(&t, "expf", "(0 88.73]", 1.0));
    /* Where the result is 0, the exact one is up to half a step. */
    const double exp_abs =
        larger(error_of(&t, "expf", "[-104 0] subnormal", 0x1p20),
               0.5 + larger(error_of(&t, "expf", "below -103.98", 0.0), error_of(&t, "expf", "below -1024", 0.0)));
    const double log_rel = larger(error_of(&t, "logf", "[1 2^20]", 1.0), error_of(&t, "logf", "other positive", 1.0));
    const double broken = error_of(&t, "expf", "properties", 0.0) + error_of(&t, "logf", "properties", 0.0);
    fd_gpu_math math = {.measured = exp_rel <= 1.0 && exp_abs <= 0x1p20 && log_rel <= 1.0 && broken <= 0.0,
                        .exp_rel = up(exp_rel * (1.0 + 0x1p-48) + REFERENCE_SLACK),
                        .exp_abs = up(0x1p-149 * (exp_abs + SUBNORMAL_SLACK)),
                        .log_rel = up(log_rel * (1.0 + 0x1p-48) + REFERENCE_SLACK)};
    snprintf(math.source, sizeof math.source, "%.60s, %.20s: %.80s", gpu, toolkit, path);
    fd_csv_free(&t);
    if (!math.measured) {
        snprintf(why, sizeof why, "%.80s lacks a range of expf or logf, or a property that proofs need", path);
        return not_measured(why);
    }
    return math;
}

const fd_gpu_math *fd_gpu_math_here(void)
{
    static bool known;
    static fd_gpu_math math;
    if (known) {
        return &math;
    }
    known = true;
    math = not_measured("this program has no GPU code");
#ifdef FD_GPU
    char name[160], path[512], why[256];
    const fd_device *gpu = fd_device_gpu(why, sizeof why);
    const char *given = getenv("FD_GPU_MATH");
    if (gpu == NULL) {
        math = not_measured(why);
        return &math;
    }
    snprintf(name, sizeof name, "%s, compute capability %d.%d", gpu->name, gpu->machine.compute_capability / 10,
             gpu->machine.compute_capability % 10);
    math = fd_gpu_math_read(given != NULL ? given : fd_data_path("measured/h200/math.csv", path, sizeof path), name,
                            fd_gpu_toolkit());
#endif
    return &math;
}

bool fd_claims_are_measured(const fd_rung *rung)
{
    return strcmp(fd_where(rung), "gpu") == 0 && fd_ladder_find(rung->number) == rung && fd_gpu_math_here()->measured;
}

static bool are_documented(const fd_arith *a)
{
    return a->math == FD_MATH_CLAIMED && a->exp_rel == FD_GPU_EXP_REL && a->exp_abs == FD_GPU_EXP_ABS &&
           a->log_rel == FD_GPU_LOG_REL;
}

static void claim(fd_arith *a, float exp_rel, float exp_abs, float log_rel)
{
    a->math = FD_MATH_CLAIMED;
    a->exp_rel = exp_rel;
    a->exp_abs = exp_abs;
    a->log_rel = log_rel;
}

void fd_claims_here(const fd_rung *rung, const fd_problem *problem, const fd_plan *plan, int64_t kv_len,
                    fd_arith *claims)
{
    fd_claims(rung, problem, plan, kv_len, claims);
    if (fd_runs_on_host(rung) || strcmp(fd_where(rung), "gpu") != 0) {
        return;
    }
    if (claims->math == FD_MATH_LIBM) {
        claim(claims, FD_GPU_EXP_REL, FD_GPU_EXP_ABS, FD_GPU_LOG_REL);
    }
    if (are_documented(claims) && fd_claims_are_measured(rung)) {
        const fd_gpu_math *math = fd_gpu_math_here();
        claim(claims, math->exp_rel, math->exp_abs, math->log_rel);
    }
}

const char *fd_gpu_math_whose(const fd_arith *a)
{
    const fd_gpu_math *math = fd_gpu_math_here();
    const bool measured = math->measured && a->exp_rel == math->exp_rel && a->log_rel == math->log_rel;
    return measured ? "as measured on this GPU" : are_documented(a) ? "as NVIDIA documents" : "as it says";
}
