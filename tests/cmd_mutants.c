/* `flashdecode mutants`: every wrong rung must die, under its right name. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "csv.h"
#include "diagnose.h"
#include "machine.h"
#include "mutants.h"
#include "options.h"

/* kv_len * batch * q_len * heads_q * head_dim of a case. Every family but real has cases below this size; the larger ones
 * repeat it at other lengths, and would take most of the time. */
#define MAX_WORK ((int64_t)200000)

enum { NUM_TIERS = 4 }; /* fd_tier, with room for one more */

typedef struct record {
    int64_t run, killed, by[NUM_TIERS];
    double margin; /* largest error over bound; infinite only if no failing case has a finite one */
    char where[96];
    fd_suspects suspects; /* over all cases */
    fd_suspects failures; /* over the failing ones alone */
} record;

static const char usage[] = "usage: flashdecode mutants [options]\n"
                            "Judges every wrong rung of tests/mutants on the small cases. Each must be\n"
                            "killed, and the diagnosis must name it, and it alone.\n\n"
                            "  --verbose    the bug, the case it is seen best on, the diagnosis, and the\n"
                            "               lines changed\n"
                            "  --csv FILE   one line a mutant\n"
                            "  --help\n\n"
                            "Exit code: 0 all die by name, 1 one survives or is misnamed, 2 usage or bad\n"
                            "input.\n";

static void add(record *r, fd_gallery *gallery, const fd_outcome *out)
{
    if (out->verdict == FD_SKIP) {
        return;
    }
    const fd_suspects here = fd_gallery_diagnose(gallery, out, fd_suspects_either(r->suspects, r->failures));
    r->run++;
    r->suspects = fd_suspects_both(r->suspects, here);
    if (out->verdict != FD_FAIL) {
        return;
    }
    r->failures = fd_suspects_both(r->failures, here);
    r->killed++;
    r->by[out->tier < NUM_TIERS ? out->tier : FD_TIER_NONE]++;
    const double margin = fmax(out->ratio, out->lse_ratio);
    if (r->where[0] == '\0' || (isfinite(margin) && !(isfinite(r->margin) && margin <= r->margin))) {
        r->margin = margin;
        snprintf(r->where, sizeof r->where, "%s", gallery->instance->c.name);
    }
}

/* "exact", "proved", or both: which tiers were first to see it. */
static const char *killers(const record *r, char *text, size_t n)
{
    static const char *const names[NUM_TIERS] = {"other", "exact", "proved", "statistical"};
    size_t used = 0;
    snprintf(text, n, "-");
    for (int tier = 0; tier < NUM_TIERS; tier++) {
        if (r->by[tier] > 0 && used < n) {
            used += (size_t)snprintf(text + used, n - used, "%s%s", used > 0 ? " and " : "", names[tier]);
        }
    }
    return text;
}

/* Suspected, and nobody else is. */
static bool named_right(const record *r, int k)
{
    const fd_suspects others = fd_suspects_without(r->suspects, k);
    return fd_suspected(r->suspects, k) && others.bits[0] == 0 && others.bits[1] == 0;
}

/* The mutant's file and the lines it changes, indented. */
static void print_change(int k)
{
    printf("     %s\n", fd_mutant_files[k]);
    for (const char *line = fd_mutant_changes[k]; *line != '\0';) {
        const int length = (int)strcspn(line, "\n");
        printf("     %.*s\n", length, line);
        line += length + (line[length] == '\n');
    }
}

static void print_record(const record *r, int k, bool good, bool verbose)
{
    char by[64], text[200], failures[200];
    fd_diagnosis_text(r->suspects, text, sizeof text);
    fd_diagnosis_text(r->failures, failures, sizeof failures);
    printf("%-4s %-31s %4lld/%lld  %-17s %8.2g  %.34s\n", good ? "ok" : "FAIL", fd_mutants[k]->name,
           (long long)r->killed, (long long)r->run, killers(r, by, sizeof by), r->margin,
           r->where[0] != '\0' ? r->where : "survives");
    if (verbose) {
        printf("     %s\n     seen best on %s\n", fd_mutants[k]->idea, r->where[0] != '\0' ? r->where : "-");
        if (strcmp(failures, text) != 0) {
            printf("     its failures alone: %s\n", failures);
        }
    }
    if (verbose || !good) {
        printf("     %s\n", text);
        print_change(k);
    }
}

static void csv_record(FILE *csv, const record *r, int k, bool good)
{
    char by[64], text[200];
    fd_diagnosis_text(r->suspects, text, sizeof text);
    fprintf(csv, "%d,", k + 1);
    fd_csv_field(csv, fd_mutants[k]->name);
    fprintf(csv, ",%d,", fd_mutants[k]->parent);
    fd_csv_field(csv, fd_mutants[k]->idea);
    fprintf(csv, ",%lld,%lld,%s,", (long long)r->run, (long long)r->killed, killers(r, by, sizeof by));
    fd_csv_field(csv, r->where);
    fprintf(csv, ",%.6g,", r->margin);
    fd_csv_field(csv, text + strlen("looks like: "));
    fprintf(csv, ",%s\n", good ? "pass" : "fail");
}

static void report(const record *records, bool verbose, FILE *csv, int64_t *passed, int64_t *failed)
{
    printf("\n     bug                             killed on  by which tier   error/bound  seen best on\n");
    for (int k = 0; k < fd_mutants_count; k++) {
        const bool good = records[k].killed > 0 && named_right(&records[k], k);
        print_record(&records[k], k, good, verbose);
        *passed += good;
        *failed += !good;
        if (csv != NULL) {
            csv_record(csv, &records[k], k, good);
        }
    }
}

static fd_status judge_case(const fd_case *c, const fd_rounding *rounding, record *records, char *why, size_t n)
{
    fd_instance instance;
    fd_gallery gallery;
    fd_outcome outcomes[FD_MUTANTS_MAX];
    fd_status status = fd_instance_create(&instance, c, why, n);
    if (status != FD_OK) {
        return status;
    }
    status = fd_judge(&instance, fd_mutants, fd_mutants_count, rounding, outcomes, why, n);
    if (status == FD_OK) {
        snprintf(why, n, "%s: no memory for the diagnosis", c->name);
        status = fd_gallery_open(&gallery, &instance);
    }
    if (status == FD_OK) {
        for (int k = 0; k < fd_mutants_count; k++) {
            fd_gallery_keep(&gallery, &outcomes[k]);
        }
        for (int k = 0; k < fd_mutants_count; k++) {
            add(&records[k], &gallery, &outcomes[k]);
        }
        fd_gallery_close(&gallery);
    }
    fd_outcomes_free(outcomes, fd_mutants_count);
    fd_instance_free(&instance);
    return status;
}

static bool small_enough(const fd_case *c)
{
    return c->size == FD_SMALL && (int64_t)c->kv_len * c->batch * c->q_len * c->heads_q * c->head_dim <= MAX_WORK;
}

int fd_cmd_mutants(int argc, char **argv)
{
    const char *csv_path = NULL;
    bool verbose = false;
    const int parsed = fd_options_parse(
        argc, argv, usage,
        (fd_option[]){fd_opt_text("csv", &csv_path), fd_opt_flag("verbose", &verbose), {.name = NULL}});
    if (parsed >= 0) {
        return parsed;
    }
    if (fd_mutants_count > FD_MUTANTS_MAX) {
        fprintf(stderr, "mutants: %d mutants, but the diagnosis takes %d: drop one\n", fd_mutants_count,
                FD_MUTANTS_MAX);
        return FD_EXIT_USAGE;
    }

    record records[FD_MUTANTS_MAX] = {0};
    for (int k = 0; k < FD_MUTANTS_MAX; k++) {
        records[k].suspects = records[k].failures = FD_ALL_SUSPECTS;
    }
    char why[256] = "", path[512];
    fd_case_table table = {0};
    fd_csv csv = {0};
    int exit_code = FD_EXIT_USAGE;
    if (fd_cases_read(fd_data_path("cases.csv", path, sizeof path), &table, why, sizeof why) != FD_OK ||
        (csv_path != NULL && fd_csv_open(&csv, csv_path, why, sizeof why) != FD_OK)) {
        goto done;
    }

    const fd_libm_error libm = fd_libm_error_get(NULL);
    const fd_rounding rounding = fd_host_rounding(&libm);
    fd_print_hypotheses(&libm);
    int64_t left_out = 0;
    for (int32_t i = 0; i < table.count; i++) {
        fd_progress("mutants", i, table.count);
        if (!small_enough(&table.cases[i])) {
            left_out += table.cases[i].size == FD_SMALL;
        } else if (judge_case(&table.cases[i], &rounding, records, why, sizeof why) != FD_OK) {
            goto done;
        }
    }
    fd_progress("mutants", 1, 1);

    if (csv_path != NULL) {
        fd_machine_record machine;
        fd_machine_record_read(&machine, "flashdecode", argc, argv);
        fd_machine_record_write(&machine, csv.file, "# ");
        fputs("mutant,name,parent,change,cases_run,cases_killed,killed_by,worst_case,margin,diagnosis,verdict\n",
              csv.file);
    }
    int64_t passed = 0, failed = 0;
    report(records, verbose, csv.file, &passed, &failed);
    if (csv_path != NULL && fd_csv_commit(&csv, why, sizeof why) != FD_OK) {
        goto done;
    }
    printf("%lld larger ones of the small cases left out: kv_len batch q_len heads_q head_dim above %lld\n",
           (long long)left_out, (long long)MAX_WORK);
    printf("%lld passed, %lld failed, 0 skipped\n", (long long)passed, (long long)failed);
    exit_code = fd_exit_code(passed, failed);
    why[0] = '\0';
done:
    if (why[0] != '\0') {
        fprintf(stderr, "mutants: %s\n", why);
    }
    fd_csv_discard(&csv);
    fd_cases_free(&table);
    return exit_code;
}
