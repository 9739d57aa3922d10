/* libm_cache.c: one measurement of libm_error.h on disk: "key,value" lines, the last a checksum of all before. */
#include "libm_error.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "csv.h"
#include "data_path.h"
#include "machine.h"

#define FORMAT "1"          /* changes when a field changes its meaning */
#define FILE_BYTES_MAX 8192 /* of a cache file; ours has about 2000 */

/* The fields in the file, in this order, all of them present. */
#define NUMBER(name)                                                                                                   \
    {                                                                                                                  \
#name, offsetof(fd_libm_error, name), true                                                                     \
    }
#define FLAG(name)                                                                                                     \
    {                                                                                                                  \
#name, offsetof(fd_libm_error, name), false                                                                    \
    }
static const struct field {
    const char *name;
    size_t offset;
    bool number; /* a double in hexadecimal; else a bool, 0 or 1 */
} fields[] = {
    NUMBER(exp_rel),          NUMBER(exp_abs),      NUMBER(exp_rel_positive), NUMBER(log_rel),
    NUMBER(log_rel_anywhere), FLAG(exp_zero_exact), FLAG(exp_at_most_one),    FLAG(exp_minus_inf_zero),
    FLAG(exp_tail_zero),      FLAG(exp_monotone),   FLAG(log_one_exact),      FLAG(log_non_negative),
};
#define NUM_FIELDS (sizeof fields / sizeof fields[0])

fd_libm_key fd_libm_key_of(const fd_libm *libm)
{
    fd_libm_key key = {.fingerprint = FD_FNV_BEGIN};
    snprintf(key.libc, sizeof key.libc, "%s", fd_libc_name());
    fd_processor_name(key.processor, sizeof key.processor);
    for (uint32_t i = 0; i < 65536; i++) {
        const float bits_of[3] = {
            libm->exp(-103.97f * ((float)i + 0.37f) * 0x1p-16f),
            libm->exp(-fd_float_from_bits(i * 16979u + 3)),          /* up to -88 in even steps of the bits */
            libm->log(fd_float_from_bits((i + 1) * 32000u + i % 7)), /* most positive floats, likewise */
        };
        key.fingerprint = fd_fnv(key.fingerprint, bits_of, sizeof bits_of);
    }
    return key;
}

/* Called from another folder, the program finds what its own checkout has measured. */
static char beside[4200];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_beside(void)
{
    fd_path_beside_program("libm_error.csv", beside, sizeof beside);
}

const char *fd_libm_cache_path(void)
{
    const char *path = getenv("FD_LIBM_CACHE"), *here = "build/libm_error.csv";
    if (path != NULL && *path != '\0') {
        return path;
    }
    pthread_once(&once, find_beside);
    return access(here, R_OK) != 0 && access(beside, R_OK) == 0 ? beside : here;
}

/* The lines that must match before any number is believed. */
static void key_text(const fd_libm_key *key, char *text, size_t n)
{
    snprintf(text, n, "format," FORMAT "\nlibc,%s\nprocessor,%s\nfingerprint,%016" PRIx64 "\n", key->libc,
             key->processor, key->fingerprint);
}

static void describe(const fd_libm_key *key, fd_libm_error *error)
{
    snprintf(error->libm, sizeof error->libm, "%.40s, %.50s, fingerprint %016" PRIx64, key->libc, key->processor,
             key->fingerprint);
}

fd_status fd_libm_cache_write(const char *path, const fd_libm_key *key, const fd_libm_report *report, char *why,
                              size_t n)
{
    const fd_libm_error error = fd_libm_error_from(report);
    char text[FILE_BYTES_MAX], head[512];
    fd_csv csv;

    FILE *memory = tmpfile();
    if (memory == NULL) {
        snprintf(why, n, "cannot make a temporary file: %s; free some space", strerror(errno));
        return FD_INVALID;
    }
    fputs("# Errors of expf and logf, by flashdecode exp. libm_error.h says what the keys mean.\n", memory);
    fd_libm_report_write(report, memory, "# ");
    key_text(key, head, sizeof head);
    fprintf(memory, "key,value\n%s", head);
    for (size_t f = 0; f < NUM_FIELDS; f++) {
        const void *value = (const char *)&error + fields[f].offset;
        if (fields[f].number) {
            fprintf(memory, "%s,%a\n", fields[f].name, *(const double *)value);
        } else {
            fprintf(memory, "%s,%d\n", fields[f].name, *(const bool *)value);
        }
    }
    rewind(memory);
    const size_t length = fread(text, 1, sizeof text, memory);
    fclose(memory);

    const fd_status status = fd_csv_open(&csv, path, why, n);
    if (status != FD_OK) {
        return status;
    }
    fwrite(text, 1, length, csv.file);
    fprintf(csv.file, "checksum,%016" PRIx64 "\n", fd_fnv(FD_FNV_BEGIN, text, length));
    return fd_csv_commit(&csv, why, n);
}

/* Reads the fields from text; false if one is missing or malformed. */
static bool parse(const char *text, fd_libm_error *error)
{
    for (size_t f = 0; f < NUM_FIELDS; f++) {
        char start[40], *end;
        void *value = (char *)error + fields[f].offset;
        snprintf(start, sizeof start, "\n%s,", fields[f].name);
        text = strstr(text, start);
        if (text == NULL) {
            return false;
        }
        text += strlen(start);
        if (fields[f].number) {
            const double number = strtod(text, &end);
            *(double *)value = number;
            if (!(number >= 0.0)) {
                return false;
            }
        } else {
            *(bool *)value = strtol(text, &end, 10) != 0;
        }
        if (end == text || *end != '\n') {
            return false;
        }
        text = end;
    }
    return true;
}

fd_status fd_libm_cache_read(const char *path, const fd_libm_key *key, fd_libm_error *error, char *why, size_t n)
{
    char text[FILE_BYTES_MAX + 1], head[512], check[40];
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        snprintf(why, n, "%s: %s", path, strerror(errno));
        return FD_UNSUPPORTED;
    }
    const size_t length = fread(text, 1, FILE_BYTES_MAX, file);
    fclose(file);
    text[length] = '\0';

    char *last = strstr(text, "\nchecksum,");
    if (last == NULL || strlen(text) != length) {
        snprintf(why, n, "%s is damaged: no checksum; flashdecode exp writes it anew", path);
        return FD_INVALID;
    }
    last++;
    snprintf(check, sizeof check, "checksum,%016" PRIx64 "\n", fd_fnv(FD_FNV_BEGIN, text, (size_t)(last - text)));
    if (strcmp(last, check) != 0) {
        snprintf(why, n, "%s is damaged: its checksum does not match; flashdecode exp writes it anew", path);
        return FD_INVALID;
    }
    *last = '\0';
    key_text(key, head, sizeof head);
    if (strstr(text, head) == NULL) {
        snprintf(why, n, "%s was measured with another C library, processor or format", path);
        return FD_UNSUPPORTED;
    }
    *error = (fd_libm_error){.measured = true};
    if (!parse(text, error)) {
        snprintf(why, n, "%s is damaged: a field is missing or malformed; flashdecode exp writes it anew", path);
        return FD_INVALID;
    }
    describe(key, error);
    return FD_OK;
}

fd_libm_error fd_libm_error_get(const char *cache_path)
{
    char why[1280];
    fd_libm_error error;
    const char *path = cache_path != NULL ? cache_path : fd_libm_cache_path();
    const fd_libm_key key = fd_libm_key_of(&fd_libm_host);
    const fd_status status = fd_libm_cache_read(path, &key, &error, why, sizeof why);
    if (status == FD_OK) {
        return error;
    }
    if (status == FD_INVALID) {
        fprintf(stderr, "note: %s\n", why);
    }
    return (fd_libm_error){
        .exp_rel = 0x1p-23,
        .exp_abs = 0x1p-148,
        .exp_rel_positive = 0x1p-23,
        .log_rel = 0x1p-22,
        .log_rel_anywhere = 0x1p-22,
        .measured = false,
        .exp_zero_exact = true,
        .exp_at_most_one = true,
        .exp_minus_inf_zero = true,
        .exp_tail_zero = true,
        .exp_monotone = false,
        .log_one_exact = true,
        .log_non_negative = true,
        .libm = "assumed; flashdecode exp measures it",
    };
}
