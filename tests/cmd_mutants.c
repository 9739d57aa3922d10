/* `flashdecode mutants`: every wrong rung must die, under its right name. */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "csv.h"
#include "diagnose.h"
#include "machine.h"
#include "mutants.h"

#define MAX_MUTANTS 64
#define MAX_WORK ((int64_t)1 << 24) /* kv_len * batch * heads_q * head_dim of a case; larger ones show nothing new */

typedef struct record {
    int64_t run, killed, by_exact, by_proved, by_statistical;
    double margin; /* largest error over bound */
    char where[96];
    fd_suspects suspects;
} record;

static const char usage[] =
    "usage: flashdecode mutants [--csv FILE] [--help]\n"
    "Judges every wrong rung of tests/mutants on the small cases. Each must be killed, and the\n"
    "diagnosis must name it.\n\n"
    "Exit code: 0 all die by name, 1 one survives or is misnamed, 2 usage or bad input.\n";

static void add(record *r, fd_instance *instance, const fd_outcome *out)
{
    if (out->verdict == FD_SKIP) {
        return;
    }
    r->run++;
    if (out->verdict != FD_FAIL) {
        return;
    }
    r->killed++;
    r->by_exact += out->tier == FD_TIER_EXACT;
    r->by_proved += out->tier == FD_TIER_PROVED;
    r->by_statistical += out->tier == FD_TIER_STATISTICAL;
    r->suspects = fd_diagnose(instance, out, r->suspects);
    const double margin = fmax(out->ratio, out->lse_ratio);
    if (r->where[0] == '\0' || (isfinite(margin) && margin > r->margin)) {
        r->margin = margin;
        snprintf(r->where, sizeof r->where, "%s", instance->c.name);
    }
}

/* Which tiers were first to see it, on one case or another. */
static const char *killers(const record *r)
{
    static const char *const names[8] = {"-",
                                         "exact",
                                         "proved",
                                         "exact and proved",
                                         "statistical",
                                         "exact and statistical",
                                         "proved and statistical",
                                         "exact and proved and statistical"};
    return names[(r->by_exact > 0) + 2 * (r->by_proved > 0) + 4 * (r->by_statistical > 0)];
}

static bool named_right(const record *r, int k)
{
    return r->suspects == (fd_suspects)1 << k;
}

static void report(const record *records, FILE *csv, int64_t *passed, int64_t *failed)
{
    for (int k = 0; k < fd_mutants_count; k++) {
        const record *r = &records[k];
        const fd_rung *mutant = fd_mutants[k];
        const bool good = r->killed > 0 && named_right(r, k);
        char text[200];
        fd_diagnosis_text(r->suspects, text, sizeof text);
        printf("%-4s %-30s killed on %lld of %lld cases, by: %s\n     %s\n     seen best on %s: %.3g bounds\n     %s\n",
               good ? "ok" : "FAIL", mutant->name, (long long)r->killed, (long long)r->run, killers(r), mutant->idea,
               r->where[0] != '\0' ? r->where : "-", r->margin, text);
        *passed += good;
        *failed += !good;
        if (csv != NULL) {
            fprintf(csv, "%d,", k + 1);
            fd_csv_field(csv, mutant->name);
            fprintf(csv, ",%d,", mutant->parent);
            fd_csv_field(csv, mutant->idea);
            fprintf(csv, ",%lld,%lld,%s,", (long long)r->run, (long long)r->killed, killers(r));
            fd_csv_field(csv, r->where);
            fprintf(csv, ",%.6g,", r->margin);
            fd_csv_field(csv, text + strlen("looks like: "));
            fprintf(csv, ",%s\n", good ? "pass" : "fail");
        }
    }
}

static fd_status judge_case(const fd_case *c, const fd_rounding *rounding, record *records, char *why, size_t n)
{
    fd_instance instance;
    fd_outcome outcomes[MAX_MUTANTS];
    fd_status status = fd_instance_create(&instance, c, why, n);
    if (status != FD_OK) {
        return status;
    }
    status = fd_judge(&instance, fd_mutants, fd_mutants_count, rounding, outcomes, why, n);
    for (int k = 0; k < fd_mutants_count && status == FD_OK; k++) {
        add(&records[k], &instance, &outcomes[k]);
    }
    fd_outcomes_free(outcomes, fd_mutants_count);
    fd_instance_free(&instance);
    return status;
}

static bool small_enough(const fd_case *c)
{
    return c->size == FD_SMALL && (int64_t)c->kv_len * c->batch * c->heads_q * c->head_dim <= MAX_WORK;
}

int fd_cmd_mutants(int argc, char **argv)
{
    static const struct option longs[] = {
        {"csv", required_argument, NULL, 'o'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    const char *csv_path = NULL;
    for (int c; (c = getopt_long(argc, argv, "h", longs, NULL)) != -1;) {
        if (c == 'h') {
            fputs(usage, stdout);
            return FD_EXIT_PASS;
        }
        if (c != 'o') {
            fputs(usage, stderr);
            return FD_EXIT_USAGE;
        }
        csv_path = optarg;
    }
    if (optind < argc || fd_mutants_count > MAX_MUTANTS) {
        fprintf(stderr, "mutants: unexpected argument '%s'; see --help\n", optind < argc ? argv[optind] : "");
        return FD_EXIT_USAGE;
    }

    record records[MAX_MUTANTS] = {0};
    for (int k = 0; k < MAX_MUTANTS; k++) {
        records[k].suspects = FD_ALL_SUSPECTS;
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
    printf("\n");
    report(records, csv.file, &passed, &failed);
    if (csv_path != NULL && fd_csv_commit(&csv, why, sizeof why) != FD_OK) {
        goto done;
    }
    printf("(%lld of the small cases left out: as large as guide-16k)\n", (long long)left_out);
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
