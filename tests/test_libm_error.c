/* test_libm_error.c: is the measurement of expf and logf right, and is its cache believed only where it should be? */
#define _POSIX_C_SOURCE 200809L

#include <criterion/criterion.h>

#include <math.h>
#include <mpfr.h>
#include <stdlib.h>
#include <unistd.h>

#include "libm_error.h"
#include "machine.h"

#define STRIDE 9973 /* a prime: a sample of about 450000 floats */

static double relative_error(bool is_log, float x, float y)
{
    mpfr_t exact, difference;
    mpfr_inits2(160, exact, difference, (mpfr_ptr)NULL);
    mpfr_set_flt(exact, x, MPFR_RNDN);
    (is_log ? mpfr_log : mpfr_exp)(exact, exact, MPFR_RNDN);
    mpfr_d_sub(difference, (double)y, exact, MPFR_RNDN);
    if (!mpfr_zero_p(difference)) {
        mpfr_div(difference, difference, exact, MPFR_RNDN);
    }
    const double error = fabs(mpfr_get_d(difference, MPFR_RNDN));
    mpfr_clears(exact, difference, (mpfr_ptr)NULL);
    return error;
}

static float right_exp(float x)
{
    return (float)exp((double)x);
}

static float right_log(float x)
{
    return (float)log((double)x);
}

/* 1 + 2^-20 times too large below 0, 1 + 2^-19 above; exact at 0. */
static float wrong_exp(float x)
{
    return x == 0.0f ? 1.0f : (float)(exp((double)x) * (x < 0.0f ? 1.0 + 0x1p-20 : 1.0 + 0x1p-19));
}

static float wrong_log(float x)
{
    return (float)(log((double)x) * (1.0 - (x >= 1.0f && x <= 0x1p20f ? 0x1p-18 : 0x1p-17)));
}

static float nan_at_minus_one(float x)
{
    return x < -1.0f && x > -1.125f ? (float)NAN : right_exp(x);
}

static float flushing_exp(float x)
{
    const float y = right_exp(x);
    return y < 0x1p-126f ? 0.0f : y;
}

static float never_zero_exp(float x)
{
    return fmaxf(right_exp(x), 0x1p-149f);
}

static float logf_off_at_one(float x)
{
    return x == 1.0f ? 0x1p-30f : right_log(x);
}

/* Wrong in one place only, as a bad table entry would make it. */
static float wrong_log_from_700_to_720(float x)
{
    return right_log(x) * (x >= 700.0f && x < 720.0f ? 1.0f + 0x1p-20f : 1.0f);
}

static float negative_log_above_two(float x)
{
    return x > 2.0f && x < 4.0f ? -right_log(x) : right_log(x);
}

static fd_libm_report measure(float (*e)(float), float (*l)(float))
{
    fd_libm_report report;
    const fd_libm libm = {e, l};
    fd_libm_measure(&libm, STRIDE, NULL, &report);
    return report;
}

Test(libm_error, correctly_rounded_functions_are_at_most_one_u_off)
{
    const fd_libm_report report = measure(right_exp, right_log);
    const fd_libm_error e = fd_libm_error_from(&report);
    cr_assert(fd_libm_sound(&report));
    cr_assert(e.exp_rel <= 0x1.000001p-24 && e.exp_rel > 0x1.fp-25, "%a", e.exp_rel);
    cr_assert(e.exp_rel_positive <= 0x1.000001p-24 && e.exp_rel_positive > 0x1.fp-25, "%a", e.exp_rel_positive);
    cr_assert(e.exp_abs >= 0x1p-150 && e.exp_abs <= 0x1.00001p-150, "%a", e.exp_abs);
    cr_assert(e.log_rel <= 0x1.000001p-24 && e.log_rel_anywhere >= e.log_rel);
    for (int r = 0; r < FD_LIBM_RANGES; r++) {
        cr_assert_eq(report.range[r].misrounded, 0);
    }
}

Test(libm_error, bounds_hold_on_samples_against_mpfr)
{
    const fd_libm_report report = measure(expf, logf);
    const fd_libm_error e = fd_libm_error_from(&report);
    cr_assert(fd_libm_sound(&report), "see flashdecode exp");
    cr_assert(report.reference_error > 0.0 && report.reference_error <= 0x1p-50);
    for (uint64_t i = 0; i < 2000; i++) { /* floats that the measurement tested, too */
        const float x = -fd_float_from_bits((uint32_t)(i * STRIDE * 50)),
                    z = fd_float_from_bits(0x3f800000u + (uint32_t)(i * STRIDE));
        if (x > -87.0f) {
            cr_assert(relative_error(false, x, expf(x)) <= e.exp_rel, "expf(%a)", (double)x);
        }
        cr_assert(relative_error(true, z, logf(z)) <= fmax(e.log_rel, 0x1p-22), "logf(%a)", (double)z);
    }
}

Test(libm_error, a_wrong_function_is_measured_as_wrong_by_the_right_amount)
{
    const fd_libm_report report = measure(wrong_exp, wrong_log);
    const fd_libm_error e = fd_libm_error_from(&report);
    cr_assert(fabs(e.exp_rel - 0x1p-20) <= 0x1.1p-24, "%a", e.exp_rel);
    cr_assert(fabs(e.exp_rel_positive - 0x1p-19) <= 0x1.1p-24, "%a", e.exp_rel_positive);
    cr_assert(fabs(e.log_rel - 0x1p-18) <= 0x1.1p-24, "%a", e.log_rel);
    cr_assert(fabs(e.log_rel_anywhere - 0x1p-17) <= 0x1.1p-24, "%a", e.log_rel_anywhere);
    cr_assert(!e.exp_at_most_one && !fd_libm_sound(&report), "exp(-tiny) is above 1");

    const fd_libm_report place = measure(right_exp, wrong_log_from_700_to_720);
    cr_assert(fabs(fd_libm_error_from(&place).log_rel - 0x1p-20) <= 0x1.2p-23, "%a",
              fd_libm_error_from(&place).log_rel);
}

Test(libm_error, what_the_proofs_need_is_checked)
{
    fd_libm_report report = measure(nan_at_minus_one, right_log);
    cr_assert(isinf(fd_libm_error_from(&report).exp_rel) && !report.exp_at_most_one && !fd_libm_sound(&report));

    report = measure(flushing_exp, right_log); /* right but for subnormal results: sound, with a large exp_abs */
    const fd_libm_error flushed = fd_libm_error_from(&report);
    cr_assert(flushed.exp_abs > 0x1.cp-127 && flushed.exp_abs <= 0x1.001p-126 && flushed.exp_rel <= 0x1.000001p-24);
    cr_assert(fd_libm_sound(&report));

    report = measure(never_zero_exp, right_log);
    cr_assert(!report.exp_tail_zero && !report.exp_minus_inf_zero && !fd_libm_sound(&report));
    cr_assert(fd_libm_error_from(&report).exp_abs >= 0x1p-149);

    report = measure(right_exp, negative_log_above_two);
    cr_assert(!report.log_non_negative && !fd_libm_sound(&report));

    report = measure(right_exp, right_log);                      /* with every range as large as it should be */
    const uint64_t tested = (8388608 + STRIDE - 1) / STRIDE + 1; /* fractions, and the last */
    cr_assert_eq(report.range[FD_LIBM_LOG_SUM].tested, 20 * tested + 1, "2^20 is the extra one");
    cr_assert_eq(report.range[FD_LIBM_LOG_OTHER].tested, 235 * tested - 2, "without 0 and 2^20");

    report = measure(right_exp, logf_off_at_one);
    cr_assert(!report.log_one_exact && isinf(fd_libm_error_from(&report).log_rel) && !fd_libm_sound(&report));
}

/* ---- The cache --------------------------------------------------------------------------------- */

static char folder[32], path[64], why[1280];
static fd_libm_report report;
static fd_libm_key key;

static void setup(void)
{
    strcpy(folder, "/tmp/fd_test_XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/libm.csv", folder);
    report = measure(expf, logf);
    key = fd_libm_key_of(&fd_libm_host);
}

static void teardown(void)
{
    unlink(path);
    cr_expect_eq(rmdir(folder), 0, "a file was left behind");
}

Test(libm_cache, round_trip, .init = setup, .fini = teardown)
{
    fd_libm_error read, written = fd_libm_error_from(&report);
    cr_assert_eq(fd_libm_cache_read(path, &key, &read, why, sizeof why), FD_UNSUPPORTED, "there is no file yet");
    cr_assert_eq(fd_libm_error_get(path).measured, false);
    cr_assert_eq(fd_libm_cache_write(path, &key, &report, why, sizeof why), FD_OK, "%s", why);
    read = fd_libm_error_get(path);
    cr_assert(read.measured && strstr(read.libm, key.libc) != NULL);
    cr_assert(read.exp_rel == written.exp_rel && read.exp_abs == written.exp_abs &&
              read.exp_rel_positive == written.exp_rel_positive && read.log_rel == written.log_rel &&
              read.log_rel_anywhere == written.log_rel_anywhere);
    cr_assert(read.exp_zero_exact && read.exp_at_most_one && read.exp_minus_inf_zero && read.exp_tail_zero &&
              read.log_one_exact && read.log_non_negative && read.exp_monotone == written.exp_monotone);
}

Test(libm_cache, another_machine_misses, .init = setup, .fini = teardown)
{
    fd_libm_error error;
    cr_assert_eq(fd_libm_cache_write(path, &key, &report, why, sizeof why), FD_OK);
    fd_libm_key other = key;
    snprintf(other.processor, sizeof other.processor, "%.20s 2", key.processor);
    cr_assert_eq(fd_libm_cache_read(path, &other, &error, why, sizeof why), FD_UNSUPPORTED);
    other = key;
    other.fingerprint ^= 1;
    cr_assert_eq(fd_libm_cache_read(path, &other, &error, why, sizeof why), FD_UNSUPPORTED);
    other = key;
    snprintf(other.libc, sizeof other.libc, "another libc");
    cr_assert_eq(fd_libm_cache_read(path, &other, &error, why, sizeof why), FD_UNSUPPORTED);
}

Test(libm_cache, the_fingerprint_tells_functions_apart)
{
    const fd_libm a = {expf, logf}, b = {flushing_exp, logf}, c = {expf, wrong_log};
    cr_assert_eq(fd_libm_key_of(&a).fingerprint, fd_libm_key_of(&fd_libm_host).fingerprint);
    cr_assert_neq(fd_libm_key_of(&b).fingerprint, fd_libm_key_of(&a).fingerprint);
    cr_assert_neq(fd_libm_key_of(&c).fingerprint, fd_libm_key_of(&a).fingerprint);
}

Test(libm_cache, a_damaged_file_is_as_good_as_none, .init = setup, .fini = teardown)
{
    char text[16384];
    fd_libm_error error;
    cr_assert_eq(fd_libm_cache_write(path, &key, &report, why, sizeof why), FD_OK);
    FILE *file = fopen(path, "r");
    const size_t length = fread(text, 1, sizeof text, file);
    fclose(file);
    for (size_t at = 0; at <= length; at += 13) { /* a changed byte; at the end: a cut file */
        file = fopen(path, "w");
        char *const changed = &text[at < length ? at : 0];
        *changed ^= 1;
        fwrite(text, 1, at < length ? length : length / 2, file);
        *changed ^= 1;
        fclose(file);
        cr_assert_eq(fd_libm_cache_read(path, &key, &error, why, sizeof why), FD_INVALID, "byte %zu", at);
        cr_assert(strstr(why, path) != NULL && strchr(why, '\n') == NULL);
    }
    cr_assert_eq(fd_libm_error_get(path).measured, false);
}

Test(libm_cache, a_folder_that_is_not_there_is_named)
{
    const fd_libm_report none = {.seconds = 0.0};
    const fd_libm_key any = {.fingerprint = 1};
    cr_assert_eq(fd_libm_cache_write("/no/such/folder/libm.csv", &any, &none, why, sizeof why), FD_INVALID);
    cr_assert_not_null(strstr(why, "/no/such/folder/libm.csv"));
}

Test(libm_cache, assumptions_are_marked)
{
    const fd_libm_error e = fd_libm_error_get("/no/such/file");
    cr_assert(!e.measured && e.exp_rel == 0x1p-23 && e.exp_abs == 0x1p-148 && e.log_rel == 0x1p-22);
    cr_assert_not_null(strstr(e.libm, "assumed"));
}
