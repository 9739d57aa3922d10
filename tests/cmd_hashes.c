/* `flashdecode hashes`: the bits of every case and of the CPU rungs' answers to it, against those on record. One table for all
 * machines: inputs have the same bits by construction (gen.h), answers where expf and logf have, which their fingerprint
 * tells. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "csv.h"
#include "csv_read.h"
#include "execute.h"
#include "gen.h"
#include "ladder.h"
#include "machine.h"
#include "options.h"

#define HASHES_VERSION "fd-cases-hashes version 1"

typedef struct options {
    const char *case_name, *family, *write_path;
    int size;
    bool inputs_only;
} options;

typedef struct counts {
    int64_t passed, failed, skipped;
} counts;

typedef struct book {
    fd_csv_table record;  /* empty while hashes are written */
    FILE *file;           /* NULL while they are compared */
    char fingerprint[17]; /* of this machine's expf and logf */
    bool same_libm;       /* as on record: the answers can be compared */
} book;

static const char usage[] = "usage: flashdecode hashes [options]\n"
                            "Generates every case, has every CPU rung answer it, and compares hashes of q, k\n"
                            "and v, and of o and lse, with those in data/cases_hashes.csv: the same bits, on\n"
                            "whatever machine and with whatever compiler? No oracle, no tolerance.\n\n"
                            "  --inputs       only q, k and v\n"
                            "  --size SIZE    small, class or full (default small; on record are small ones)\n"
                            "  --family NAME  only this family of cases\n"
                            "  --case NAME    only this case\n"
                            "  --write FILE   compares nothing and writes the hashes (- is stdout)\n"
                            "  --help\n\n"
                            "Exit code: 0 the same bits (what is not on record is counted as skipped), 1\n"
                            "others, 2 usage or bad input, 77 nothing of it is on record.\n";

/* -1: go on; else the exit code, and everything is said. */
static int parse(int argc, char **argv, options *o)
{
    *o = (options){.size = FD_SMALL};
    const fd_option table[] = {
        fd_opt_flag("inputs", &o->inputs_only), fd_opt_size(&o->size),
        fd_opt_text("family", &o->family),      fd_opt_text("case", &o->case_name),
        fd_opt_text("write", &o->write_path),   {.name = NULL},
    };
    const int parsed = fd_options_parse(argc, argv, usage, table);
    o->size = o->case_name != NULL ? FD_FULL : o->size;
    return parsed;
}

/* Of the values, not of NaN's sign and payload, which IEEE 754 leaves to the processor. */
static uint64_t hash_floats(uint64_t hash, float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        x[i] = isnan(x[i]) ? fd_float_from_bits(0x7fc00000u) : x[i];
    }
    return fd_fnv(hash, x, (size_t)count * sizeof *x);
}

/* Eight digits of the rung's o and lse as floats, in the order of their indices; "-" if it does not take the case. */
static fd_status hash_answer(const fd_rung *rung, fd_instance *x, char text[17], char *why, size_t n)
{
    const int64_t rows = fd_row_count(&x->problem), values = rows * x->problem.head_dim_v;
    fd_plan *plan = NULL;
    snprintf(text, 17, "-");
    if (fd_supports_here(rung, &x->problem, why, n) != FD_OK) {
        return FD_OK;
    }
    float *o = malloc((size_t)(values + rows) * sizeof *o);
    fd_status status = o != NULL ? fd_plan_for(rung, &x->problem, &plan, why, n) : FD_NO_MEMORY;
    if (status == FD_OK) {
        status = fd_execute(rung, plan, x, true, FD_POISON_NAN, o, o + values, why, n);
    }
    if (status == FD_OK) {
        const uint64_t hash = hash_floats(FD_FNV_BEGIN, o, values + rows);
        snprintf(text, 17, "%08" PRIx32, (uint32_t)(hash ^ hash >> 32));
    }
    free(o);
    free(plan);
    return status;
}

/* Compares one hash with the one on record, or writes it. */
static void take(const char *text, const book *k, int32_t row, const char *column, const fd_case *c, counts *sum)
{
    if (k->file != NULL) {
        fprintf(k->file, ",%s", text);
        return;
    }
    const char *want = row < 0 ? "" : fd_csv_at(&k->record, row, fd_csv_column(&k->record, column));
    if (want[0] == '\0' || (!k->same_libm && strcmp(column, "inputs") != 0)) {
        sum->skipped++;
    } else if (strcmp(want, text) == 0) {
        sum->passed++;
    } else {
        sum->failed++;
        printf("FAIL %s, %s: %s, on record %s\n", c->name, column, text, want);
    }
}

static fd_status hash_case(const options *o, const fd_case *c, const book *k, int32_t row, counts *sum, char *why,
                           size_t n)
{
    fd_instance x;
    char text[17], column[16];
    fd_status status = fd_instance_create(&x, c, why, n);
    if (status != FD_OK) {
        return status;
    }
    if (k->file != NULL) {
        fd_csv_field(k->file, c->name);
    }
    snprintf(text, sizeof text, "%016" PRIx64, fd_gen_hash(&x.problem));
    take(text, k, row, "inputs", c, sum);
    for (int r = 0; r < fd_ladder_cpu_count && status == FD_OK && !o->inputs_only; r++) {
        status = hash_answer(fd_ladder[r], &x, text, why, n);
        snprintf(column, sizeof column, "rung_%02d", fd_ladder[r]->number);
        take(text, k, row, column, c, sum);
    }
    if (k->file != NULL) {
        fputc('\n', k->file);
    }
    fd_instance_free(&x);
    return status;
}

/* The case's line on record; lines and cases have the same order. -1: none. */
static int32_t find(const fd_csv_table *record, const char *name, int32_t from)
{
    for (int32_t i = 0; i < record->rows; i++) {
        const int32_t row = (from + i) % record->rows;
        if (strcmp(fd_csv_at(record, row, 0), name) == 0) {
            return row;
        }
    }
    return -1;
}

static fd_status hash_all(const options *o, const fd_case_table *table, const book *k, counts *sum, char *why, size_t n)
{
    int32_t row = -1, cases = 0;
    fd_status status = FD_OK;
    for (int32_t i = 0; i < table->count && status == FD_OK; i++) {
        const fd_case *c = &table->cases[i];
        if (c->size > o->size || (o->case_name != NULL && strcmp(o->case_name, c->name) != 0) ||
            (o->family != NULL && strcmp(o->family, c->family) != 0)) {
            continue;
        }
        fd_progress("hashes", i, table->count);
        cases++;
        row = find(&k->record, c->name, row + 1);
        status = hash_case(o, c, k, row, sum, why, n);
    }
    fd_progress("", 1, 1);
    if (status == FD_OK && cases == 0) {
        snprintf(why, n, "no case matches; flashdecode oracle --list names them");
        status = FD_INVALID;
    }
    return status;
}

static void write_head(const book *k, bool inputs_only)
{
    fprintf(
        k->file,
        "# " HASHES_VERSION "\n"
        "# libm: %s\n"
        "# inputs: 64-bit FNV-1a of q, k and v (golden_hashes.csv). rung_NN: the same of o and lse as fp32, any NaN\n"
        "# as 0x7fc00000, its two halves xored; -: refused. libm: fingerprint of expf and logf (flashdecode exp).\n"
        "# Checked by `flashdecode hashes`, written by its --write.\n"
        "case,inputs",
        k->fingerprint);
    for (int r = 0; r < fd_ladder_cpu_count && !inputs_only; r++) {
        fprintf(k->file, ",rung_%02d", fd_ladder[r]->number);
    }
    fputc('\n', k->file);
}

static fd_status read_record(book *k, char *why, size_t n)
{
    char path[512];
    const fd_status status = fd_csv_read(fd_data_path("cases_hashes.csv", path, sizeof path), &k->record, why, n);
    if (status != FD_OK) {
        return status;
    }
    const char *libm = fd_csv_comment(&k->record, "libm");
    if (libm == NULL || strcmp(k->record.comment[0], HASHES_VERSION) != 0) {
        snprintf(why, n, "%.300s is none of " HASHES_VERSION "; write it anew with --write", path);
        return FD_INVALID;
    }
    k->same_libm = strcmp(libm, k->fingerprint) == 0;
    return FD_OK;
}

static void report(const options *o, const book *k, const counts *sum)
{
    if (!k->same_libm && !o->inputs_only) {
        printf("answers are not compared: expf and logf here (%s, fingerprint %s) are not those on record (%s)\n",
               fd_libc_name(), k->fingerprint, fd_csv_comment(&k->record, "libm"));
    }
    printf("%" PRId64 " passed, %" PRId64 " failed, %" PRId64 " skipped\n", sum->passed, sum->failed, sum->skipped);
}

int fd_cmd_hashes(int argc, char **argv)
{
    options o;
    const int parsed = parse(argc, argv, &o);
    if (parsed >= 0) {
        return parsed;
    }
    char why[512] = "", path[512];
    fd_case_table table = {0};
    fd_csv csv = {0};
    counts sum = {0};
    book k = {0};
    snprintf(k.fingerprint, sizeof k.fingerprint, "%016" PRIx64, fd_libm_key_of(&fd_libm_host).fingerprint);
    fd_status status = fd_cases_read(fd_data_path("cases.csv", path, sizeof path), &table, why, sizeof why);
    if (status == FD_OK && o.write_path == NULL) {
        status = read_record(&k, why, sizeof why);
    } else if (status == FD_OK && (status = fd_csv_open(&csv, o.write_path, why, sizeof why)) == FD_OK) {
        k.file = csv.file;
        write_head(&k, o.inputs_only);
    }
    if (status == FD_OK) {
        status = hash_all(&o, &table, &k, &sum, why, sizeof why);
    }
    if (status == FD_OK && k.file != NULL) {
        status = fd_csv_commit(&csv, why, sizeof why);
    } else if (status == FD_OK) {
        report(&o, &k, &sum);
    }
    if (status != FD_OK) {
        fprintf(stderr, "hashes: %s\n", why[0] != '\0' ? why : "no memory");
    }
    fd_csv_discard(&csv);
    fd_csv_free(&k.record);
    fd_cases_free(&table);
    return status != FD_OK ? FD_EXIT_USAGE : k.file != NULL ? FD_EXIT_PASS : fd_exit_code(sum.passed, sum.failed);
}
