/* cmd_exp.c: `flashdecode exp`, which measures expf and logf, prints a table and caches the result. */
#include "libm_error.h"

#include <inttypes.h>

#include "commands.h"
#include "csv.h"
#include "exp_gpu.h"
#include "options.h"

static const char usage[] = "usage: flashdecode exp [--if-needed] [--cache FILE]\n"
                            "       flashdecode exp --gpu [--csv FILE]\n\n"
                            "Measures the errors of this machine's expf and logf on every float that\n"
                            "attention can give them, and keeps the result for the proved bounds. Takes about\n"
                            "20 s on 2 cores.\n\n"
                            "  --if-needed    return at once if FILE holds this machine's measurement\n"
                            "  --cache FILE   where it is kept (default: $FD_LIBM_CACHE, or\n"
                            "                 build/libm_error.csv)\n"
                            "  --gpu          instead, expf, logf and 2^x of this GPU, and whether the claims\n"
                            "                 of cuda/gpu/math_error.h hold (needs a program of make gpu, and\n"
                            "                 24 GiB of memory)\n"
                            "  --csv FILE     its results\n"
                            "  --help         this text\n\n"
                            "Exit status: 0 measured; 1 a property that the proofs need does not hold; 2 bad\n"
                            "usage, or FILE cannot be written; 77 no GPU.\n";

static const struct row {
    const char *name, *unit_name;
    double unit;
} rows[FD_LIBM_RANGES] = {
    [FD_LIBM_EXP_NORMAL] = {"expf [-104, 0], normal", "u", 0x1p-24},
    [FD_LIBM_EXP_SUBNORMAL] = {"expf [-104, 0], subnormal", "2^-149", 1.0},
    [FD_LIBM_EXP_TAIL] = {"expf below -103.98, not 0", "2^-149", 1.0},
    [FD_LIBM_EXP_POSITIVE] = {"expf (0, 88.73]", "u", 0x1p-24},
    [FD_LIBM_LOG_SUM] = {"logf [1, 2^20]", "u", 0x1p-24},
    [FD_LIBM_LOG_OTHER] = {"logf, other positive", "u", 0x1p-24},
};

bool fd_libm_sound(const fd_libm_report *r)
{
    return r->reference_good && r->exp_zero_exact && r->exp_at_most_one && r->exp_minus_inf_zero && r->exp_tail_zero &&
           r->log_one_exact && r->log_non_negative && r->range[FD_LIBM_EXP_NORMAL].error < 1.0 &&
           r->range[FD_LIBM_EXP_POSITIVE].error < 1.0 && r->range[FD_LIBM_LOG_SUM].error < 1.0;
}

static void write_property(FILE *file, const char *prefix, const char *name, bool holds)
{
    fprintf(file, "%s%-62s %s\n", prefix, name, holds ? "yes" : "NO");
}

void fd_libm_report_write(const fd_libm_report *r, FILE *file, const char *prefix)
{
    fprintf(file, "%s%-25s %10s %10s %8s %-6s  %s\n", prefix, "", "floats", "misrounded", "error", "", "at");
    for (int i = 0; i < FD_LIBM_RANGES; i++) {
        const fd_libm_range *range = &r->range[i];
        fprintf(file, "%s%-25s %10" PRIu64 " %10" PRIu64 " %8.5f %-6s  ", prefix, rows[i].name, range->tested,
                range->misrounded, range->error_exact / rows[i].unit, rows[i].unit_name);
        if (range->error > 0.0) {
            fprintf(file, "%a\n", (double)range->at);
        } else {
            fprintf(file, "-\n");
        }
    }
    fprintf(file, "%su = 2^-24, of the exact value. error: the largest, checked with MPFR. misrounded: not the\n",
            prefix);
    fprintf(file, "%snearest float. Assumed: the double exp and log are good to 2^-50 = %.2g; on %s\n", prefix, 0x1p-50,
            "a sample,");
    fprintf(file, "%sagainst MPFR, they are to %.2g.\n", prefix, r->reference_error);
    write_property(file, prefix, "expf(0) == 1, exactly", r->exp_zero_exact);
    write_property(file, prefix, "expf(-infinity) == 0", r->exp_minus_inf_zero);
    write_property(file, prefix, "0 <= expf(x) <= 1 for all x <= 0", r->exp_at_most_one);
    write_property(file, prefix, "expf(x) == 0 for x < -103.98; below -1024 one in 61 tested", r->exp_tail_zero);
    write_property(file, prefix, "logf(1) == 0, exactly", r->log_one_exact);
    write_property(file, prefix, "logf(x) >= 0 for 1 <= x <= 2^20", r->log_non_negative);
    write_property(file, prefix, "double exp and log good to 2^-50 wherever checked", r->reference_good);
    write_property(file, prefix, "expf never decreases (no proof uses it)", r->decreases == 0);
}

static void show_progress(double part)
{
    fd_progress("expf and logf", (int64_t)(1000.0 * part), 1000);
}

/* The table in the comment lines of a cache file. */
static void print_cached(const char *path)
{
    char line[256];
    FILE *file = fopen(path, "r");
    for (int i = 0; file != NULL && fgets(line, sizeof line, file) != NULL; i++) {
        if (i > 0 && line[0] == '#' && line[1] == ' ') {
            fputs(line + 2, stdout);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

static void summarise(const fd_libm_error *e)
{
    printf("expf %.5f u, below 2^-126 %.5f * 2^-149; expf of positive x %.5f u;\n", e->exp_rel * 0x1p24,
           e->exp_abs * 0x1p149, e->exp_rel_positive * 0x1p24);
    printf("logf on [1, 2^20] %.5f u, anywhere %.5f u (rounded up)\n", e->log_rel * 0x1p24,
           e->log_rel_anywhere * 0x1p24);
}

int fd_cmd_exp(int argc, char **argv)
{
    const char *path = fd_libm_cache_path();
    const char *csv = NULL;
    bool if_needed = false, gpu = false;
    char why[1280];
    fd_libm_error error;
    fd_libm_report report;

    const fd_option table[] = {
        fd_opt_flag("if-needed", &if_needed),
        fd_opt_text("cache", &path),
        fd_opt_flag("gpu", &gpu),
        fd_opt_text("csv", &csv),
        {.name = NULL},
    };
    const int parsed = fd_options_parse(argc, argv, usage, table);
    if (parsed >= 0) {
        return parsed;
    }
    if (gpu) {
        return fd_exp_gpu(csv, argc, argv);
    }
    if (csv != NULL) {
        return fd_bad_usage("exp", "--csv belongs to --gpu", "this machine's own results go to --cache FILE");
    }

    const fd_libm_key key = fd_libm_key_of(&fd_libm_host);
    if (if_needed) {
        const fd_status status = fd_libm_cache_read(path, &key, &error, why, sizeof why);
        if (status == FD_OK) {
            printf("%s: measured before, %s\n", path, error.libm);
            print_cached(path);
            summarise(&error);
            return FD_EXIT_PASS;
        }
        if (status == FD_INVALID) {
            fprintf(stderr, "note: %s\n", why);
        }
    }
    if (fd_csv_check(path, why, sizeof why) != FD_OK) { /* it takes a minute */
        fprintf(stderr, "flashdecode exp: %s\n", why);
        return FD_EXIT_USAGE;
    }
    fd_libm_measure(&fd_libm_host, 1, show_progress, &report);
    printf("%s, %s, fingerprint %016" PRIx64 "\n", key.libc, key.processor, key.fingerprint);
    fd_libm_report_write(&report, stdout, "");
    error = fd_libm_error_from(&report);
    summarise(&error);
    printf("%.1f s\n", report.seconds);
    if (fd_libm_cache_write(path, &key, &report, why, sizeof why) != FD_OK) {
        fprintf(stderr, "flashdecode exp: %s\n", why);
        return fd_libm_sound(&report) ? FD_EXIT_USAGE : FD_EXIT_FAIL;
    }
    printf("written to %s\n", path);
    if (!fd_libm_sound(&report)) {
        fputs("flashdecode exp: a property marked NO is needed by the proofs; no bound holds on this machine\n",
              stderr);
        return FD_EXIT_FAIL;
    }
    return FD_EXIT_PASS;
}
