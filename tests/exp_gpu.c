/* exp_gpu.c: see exp_gpu.h. The GPU evaluates a function on all 2^32 floats into one table, which takes the function's
 * place in the host's own measurement: the same ranges, reference and checks with MPFR. */
#include "exp_gpu.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"

#ifdef FD_GPU

#include "csv.h"
#include "device.h"
#include "exp2_error.h"
#include "gpu/math_error.h"
#include "gpu/measure.h"
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

/* ---- Measuring --------------------------------------------------------------------------------- */

static fd_status measure_libm(FILE *csv, bool *good, char *why, size_t n)
{
    const fd_libm gpu = {exp_of, log_of};
    fd_libm_report report;
    fd_status status = fd_gpu_evaluate(FD_GPU_EXPF, 0, FLOATS, exp_table, why, n);
    if (status == FD_OK) {
        status = fd_gpu_evaluate(FD_GPU_LOGF, 0, POSITIVE, log_table, why, n);
    }
    if (status != FD_OK) {
        return status;
    }
    fd_libm_measure(&gpu, 1, NULL, &report);
    fd_libm_report_write(&report, stdout, "");
    csv_libm(csv, &report);
    const fd_libm_error error = fd_libm_error_from(&report);
    *good = fd_libm_sound(&report);
    *good &= holds("expf, relative", error.exp_rel, FD_GPU_EXP_REL);
    *good &= holds("expf, absolute below 2^-126", error.exp_abs, FD_GPU_EXP_ABS);
    *good &= holds("logf, relative", error.log_rel_anywhere, FD_GPU_LOG_REL);
    return FD_OK;
}

static fd_status measure_exp2(int function, const char *name, float rel, float abs, FILE *csv, bool *good, char *why,
                              size_t n)
{
    fd_exp2_report report;
    char text[64];
    const fd_status status = fd_gpu_evaluate(function, 0, FLOATS, exp_table, why, n);
    if (status != FD_OK) {
        return status;
    }
    fd_exp2_measure(exp_of, 1, &report);
    csv_exp2(csv, name, &report);
    printf("%s: 1 at 0 %s, within [0, 1] for x <= 0 %s, 0 at -infinity %s, reference good %s\n", name,
           report.zero_exact ? "yes" : "NO", report.at_most_one ? "yes" : "NO", report.minus_inf_zero ? "yes" : "NO",
           report.reference_good ? "yes" : "NO");
    *good &= report.zero_exact && report.at_most_one && report.minus_inf_zero && report.reference_good;
    snprintf(text, sizeof text, "%s, relative", name);
    *good &= holds(text, report.rel, rel);
    snprintf(text, sizeof text, "%s, absolute below 2^-126", name);
    *good &= holds(text, report.abs, abs);
    return FD_OK;
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
    if (measure_libm(csv.file, &good, why, sizeof why) != FD_OK ||
        measure_exp2(FD_GPU_EXP2F, "exp2f", FD_GPU_EXP2_REL, FD_GPU_EXP2_ABS, csv.file, &good, why, sizeof why) !=
            FD_OK ||
        measure_exp2(FD_GPU_EX2_APPROX, "ex2.approx.ftz", FD_GPU_EX2_APPROX_REL, FD_GPU_EX2_APPROX_ABS, csv.file, &good,
                     why, sizeof why) != FD_OK ||
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
