/* exp_gpu.c: see exp_gpu.h. The GPU evaluates a function on all 2^32 floats into one table, which takes the function's
 * place in the host's own measurement: the same ranges, reference and checks with MPFR. */
#include "exp_gpu.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"

#ifdef FD_GPU

#include "csv.h"
#include "device.h"
#include "exp2_error.h"
#include "gpu/math_error.h"
#include "gpu/measure.h"
#include "log2_error.h"
#include "machine.h"

#define FLOATS ((size_t)1 << 32)
#define POSITIVE ((size_t)1 << 31)

static float *exp_table; /* [FLOATS], by the bits of the argument */
static float *log_table; /* [POSITIVE] */

static float exp_of(float x)
{
    return exp_table[fd_bits_from_float(x)];
}

static float log_of(float x)
{
    return log_table[fd_bits_from_float(x) & 0x7fffffffu];
}

/* ---- Results ----------------------------------------------------------------------------------- */

static const char csv_head[] = "function,range,unit,tested,misrounded,error,at,error_exact\n";

static void csv_row(FILE *f, const char *function, const char *range, const char *unit, uint64_t tested,
                    uint64_t misrounded, double error, float at, double error_exact)
{
    if (f != NULL) {
        fprintf(f, "%s,%s,%s,%" PRIu64 ",%" PRIu64 ",%.17g,%a,%.17g\n", function, range, unit, tested, misrounded,
                error, (double)at, error_exact);
    }
}

static void csv_libm(FILE *f, const fd_libm_report *r)
{
    static const struct {
        const char *function, *range, *unit;
    } of[FD_LIBM_RANGES] = {[FD_LIBM_EXP_NORMAL] = {"expf", "[-104 0] normal", "relative"},
                            [FD_LIBM_EXP_SUBNORMAL] = {"expf", "[-104 0] subnormal", "2^-149"},
                            [FD_LIBM_EXP_TAIL] = {"expf", "below -103.98", "2^-149"},
                            [FD_LIBM_EXP_POSITIVE] = {"expf", "(0 88.73]", "relative"},
                            [FD_LIBM_LOG_SUM] = {"logf", "[1 2^20]", "relative"},
                            [FD_LIBM_LOG_OTHER] = {"logf", "other positive", "relative"}};
    for (int k = 0; k < FD_LIBM_RANGES; k++) {
        const fd_libm_range *x = &r->range[k];
        csv_row(f, of[k].function, of[k].range, of[k].unit, x->tested, x->misrounded, x->error, x->at, x->error_exact);
    }
}

static void csv_exp2(FILE *f, const char *function, const fd_exp2_report *r)
{
    static const char *const ranges[FD_EXP2_RANGES] = {"[-126 0]", "(-150 -126)", "[-1024 -150]"};
    static const char *const units[FD_EXP2_RANGES] = {"relative", "2^-149", "2^-149"};
    for (int k = 0; k < FD_EXP2_RANGES; k++) {
        csv_row(f, function, ranges[k], units[k], r->tested[k], r->misrounded[k], r->error[k], r->at[k],
                r->error_exact[k]);
    }
}

/* One line a claim; returns whether it holds, which it does not for a NaN. */
static bool holds(const char *what, double measured, float claimed)
{
    const bool good = measured <= (double)claimed;
    printf("%-34s measured %.6g, claimed %.6g: %s\n", what, measured, (double)claimed,
           good ? "holds" : "DOES NOT HOLD");
    return good;
}

/* So many properties that proofs need, and how many of them do not hold. */
static void csv_properties(FILE *f, const char *function, uint64_t count, int broken)
{
    csv_row(f, function, "properties", "broken", count, (uint64_t)broken, (double)broken, 0.0f, (double)broken);
}

/* ---- Measuring --------------------------------------------------------------------------------- */

/* Floats below -1024, -infinity among them, whose exponential is not 0. */
static uint64_t tail_not_zero(FILE *csv, const char *function)
{
    const uint32_t begin = fd_bits_from_float(-1024.0f) + 1, end = fd_bits_from_float(-INFINITY);
    uint64_t wrong = 0;
#pragma omp parallel for reduction(+ : wrong)
    for (uint32_t bits = begin; bits <= end; bits++) {
        wrong += !(exp_table[bits] == 0.0f);
    }
    csv_row(csv, function, "below -1024", "not 0", (uint64_t)end - begin + 1, wrong, (double)wrong, 0.0f,
            (double)wrong);
    printf("%s: %" PRIu64 " floats below -1024 not 0\n", function, wrong);
    return wrong;
}

static fd_status measure_libm(FILE *csv, bool *good, char *why, size_t n)
{
    const fd_libm gpu = {exp_of, log_of};
    fd_libm_report r;
    fd_status status = fd_gpu_evaluate(FD_GPU_EXPF, 0, FLOATS, exp_table, why, n);
    if (status == FD_OK) {
        status = fd_gpu_evaluate(FD_GPU_LOGF, 0, POSITIVE, log_table, why, n);
    }
    if (status != FD_OK) {
        return status;
    }
    fd_libm_measure(&gpu, 1, NULL, &r);
    fd_libm_report_write(&r, stdout, "");
    csv_libm(csv, &r);
    const int broken = tail_not_zero(csv, "expf") > 0;
    csv_properties(csv, "expf", 5,
                   !r.exp_zero_exact + !r.exp_at_most_one + !r.exp_minus_inf_zero + !r.exp_tail_zero + broken);
    csv_properties(csv, "logf", 2, !r.log_one_exact + !r.log_non_negative);
    const fd_libm_error error = fd_libm_error_from(&r);
    *good = fd_libm_sound(&r) && broken == 0;
    *good &= holds("expf, relative", fmax(error.exp_rel, error.exp_rel_positive), FD_GPU_EXP_REL);
    *good &= holds("expf, absolute below 2^-126", error.exp_abs, FD_GPU_EXP_ABS);
    *good &= holds("logf, relative", error.log_rel_anywhere, FD_GPU_LOG_REL);
    return FD_OK;
}

static fd_status measure_exp2(int function, const char *name, float abs, FILE *csv, bool *good, char *why, size_t n)
{
    fd_exp2_report r;
    char text[64];
    fd_status status = fd_gpu_evaluate(function, 0x80000000u, POSITIVE, exp_table + POSITIVE, why, n);
    if (status == FD_OK) {
        status = fd_gpu_evaluate(function, 0, 1, exp_table, why, n);
    }
    if (status != FD_OK) {
        return status;
    }
    fd_exp2_measure(exp_of, 1, &r);
    csv_exp2(csv, name, &r);
    const int broken = tail_not_zero(csv, name) > 0;
    csv_properties(csv, name, 4, !r.zero_exact + !r.at_most_one + !r.minus_inf_zero + broken);
    printf("%s: 1 at 0 %s, within [0, 1] for x <= 0 %s, 0 at -infinity %s, reference good %s\n", name,
           r.zero_exact ? "yes" : "NO", r.at_most_one ? "yes" : "NO", r.minus_inf_zero ? "yes" : "NO",
           r.reference_good ? "yes" : "NO");
    *good &= r.zero_exact && r.at_most_one && r.minus_inf_zero && r.reference_good && broken == 0;
    snprintf(text, sizeof text, "%s, relative", name);
    *good &= holds(text, r.rel, FD_GPU_EX2_APPROX_REL);
    snprintf(text, sizeof text, "%s, absolute below 2^-126", name);
    *good &= holds(text, r.abs, abs);
    return FD_OK;
}

static fd_status measure_log2(int function, const char *name, FILE *csv, bool *good, char *why, size_t n)
{
    static const char *const ranges[FD_LOG2_RANGES] = {"[0.5 2]", "other normal", "subnormal"};
    fd_log2_report r;
    char text[64];
    const fd_status status = fd_gpu_evaluate(function, 0, POSITIVE, log_table, why, n);
    if (status != FD_OK) {
        return status;
    }
    fd_log2_measure(log_of, 1, &r);
    for (int k = 0; k < FD_LOG2_RANGES; k++) {
        csv_row(csv, name, ranges[k], k == FD_LOG2_NEAR_1 ? "absolute" : "relative", r.tested[k], r.misrounded[k],
                r.error[k], r.at[k], r.error_exact[k]);
    }
    *good &= r.reference_good;
    snprintf(text, sizeof text, "%s, absolute in [1/2, 2]", name);
    *good &= holds(text, r.error[FD_LOG2_NEAR_1] + 0x1p-50, FD_GPU_LG2_APPROX_ABS);
    snprintf(text, sizeof text, "%s, relative elsewhere", name);
    *good &= holds(text, r.error[FD_LOG2_NORMAL] + 0x1p-50, FD_GPU_LG2_APPROX_REL);
    return FD_OK;
}

static fd_status measure_all(FILE *csv, bool *good, char *why, size_t n)
{
    static const struct {
        const char *name;
        int function;
        float abs;
    } exp2s[] = {{"exp2f", FD_GPU_EXP2F, FD_GPU_EXP2_ABS},
                 {"ex2.approx.ftz", FD_GPU_EX2_APPROX_FTZ, FD_GPU_EX2_APPROX_FTZ_ABS},
                 {"ex2.approx", FD_GPU_EX2_APPROX, FD_GPU_EX2_APPROX_ABS}};
    fd_status status = measure_libm(csv, good, why, n);
    for (size_t i = 0; i < sizeof exp2s / sizeof *exp2s && status == FD_OK; i++) {
        status = measure_exp2(exp2s[i].function, exp2s[i].name, exp2s[i].abs, csv, good, why, n);
    }
    if (status == FD_OK) {
        status = measure_log2(FD_GPU_LG2_APPROX_FTZ, "lg2.approx.ftz", csv, good, why, n);
    }
    return status == FD_OK ? measure_log2(FD_GPU_LG2_APPROX, "lg2.approx", csv, good, why, n) : status;
}

int fd_exp_gpu(const char *csv_path, int argc, char **argv)
{
    char why[1280] = "";
    fd_csv csv = {.file = NULL};
    int code = FD_EXIT_USAGE;
    bool good = true;
    const fd_device *gpu = fd_device_gpu(why, sizeof why);
    if (gpu == NULL) {
        fprintf(stderr, "flashdecode exp: %s\n", why);
        return FD_EXIT_NOTHING;
    }
    const int64_t needed = (int64_t)((FLOATS + POSITIVE) * sizeof(float));
    exp_table = fd_memory_available() > needed ? (float *)malloc(FLOATS * sizeof(float)) : NULL;
    log_table = exp_table != NULL ? (float *)malloc(POSITIVE * sizeof(float)) : NULL;
    if (log_table == NULL) {
        snprintf(why, sizeof why, "the tables need %.0f GiB of memory, and %.1f are free", (double)needed / 0x1p30,
                 (double)fd_memory_available() / 0x1p30);
        goto done;
    }
    if (csv_path != NULL && fd_csv_open(&csv, csv_path, why, sizeof why) != FD_OK) {
        goto done;
    }
    if (csv.file != NULL) {
        fd_machine_record record;
        fd_machine_record_read(&record, "flashdecode", argc, argv);
        snprintf(record.processor, sizeof record.processor, "%.60s, compute capability %d.%d", gpu->name,
                 gpu->machine.compute_capability / 10, gpu->machine.compute_capability % 10);
        snprintf(record.libc, sizeof record.libc, "%s", fd_gpu_toolkit());
        fd_machine_identify(&record);
        fd_machine_record_write(&record, csv.file, "# ");
        fputs(csv_head, csv.file);
    }
    printf("%s, %s, every float\n", gpu->name, fd_gpu_toolkit());
    if (measure_all(csv.file, &good, why, sizeof why) != FD_OK ||
        (csv.file != NULL && fd_csv_commit(&csv, why, sizeof why) != FD_OK)) {
        goto done;
    }
    code = good ? FD_EXIT_PASS : FD_EXIT_FAIL;
done:
    if (code == FD_EXIT_USAGE) {
        fprintf(stderr, "flashdecode exp: %s\n", why);
    }
    fd_csv_discard(&csv);
    free(exp_table);
    free(log_table);
    return code;
}

#else

int fd_exp_gpu(const char *csv, int argc, char **argv)
{
    (void)csv, (void)argc, (void)argv;
    fprintf(stderr, "flashdecode exp: no GPU code in this program; make gpu builds build/gpu/flashdecode\n");
    return FD_EXIT_NOTHING;
}

#endif
