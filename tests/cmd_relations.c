/* `flashdecode relations`: tier 4, every relation on a dozen small cases, for every rung. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "csv.h"
#include "execute.h"
#include "ladder.h"
#include "metamorph.h"
#include "options.h"
#include "trial.h"

/* Over the cases, of one rung and relation. */
typedef struct tally {
    int64_t passed, failed, skipped, same_bits, bounded, vacuous;
    double ratio;
    char skip_reason[160];
} tally;

static const char usage[] = "usage: flashdecode relations [--rung N] [--case NAME] [--junit FILE]\n"
                            "Tier 4: runs every rung twice, on an input and on one derived from it, and\n"
                            "compares the two answers, bit for bit where the arithmetic is the same, else\n"
                            "within the sum of both proved bounds.\n\n"
                            "  --rung N     only this rung\n"
                            "  --case NAME  only this case of data/cases.csv, instead of the chosen small\n"
                            "               ones\n"
                            "  --junit FILE the verdicts as JUnit XML, a suite a rung\n"
                            "  --help\n\n"
                            "Exit code: 0 all hold (skips are counted), 1 a failure, 2 usage or bad input, 77\n"
                            "nothing could run.\n";

static bool wanted(const fd_case *c, const char *case_name)
{
    if (case_name != NULL) {
        return strcmp(c->name, case_name) == 0;
    }
    for (int i = 0; i < fd_relation_case_count; i++) {
        if (strcmp(c->name, fd_relation_cases[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void print_failure(const fd_rung *rung, const fd_relation *relation, const fd_case *c,
                          const fd_relation_outcome *out)
{
    const fd_witness *w = &out->worst;
    printf(
        "FAIL %02d %s: %s (%s)\n     tier: metamorphic   relation: %s, second instance %d   case: %s   seed: 0x%llx\n",
        rung->number, rung->name, out->reason, relation->promise, relation->name, out->variant, c->name,
        (unsigned long long)c->seed);
    printf("     b=%d t=%d h=%d %s%d: got %a, the first run asks for %a (pass line %.3g)\n", w->b, w->t, w->h,
           w->i < 0 ? "lse " : "i=", w->i < 0 ? 0 : w->i, (double)w->got, w->want, w->bound);
    printf("     replay: %s relations --rung %d --case '%s'\n", fd_program, rung->number, c->name);
}

static void add(tally *t, const fd_relation_outcome *out)
{
    t->passed += out->verdict == FD_PASS;
    t->failed += out->verdict == FD_FAIL;
    t->skipped += out->verdict == FD_SKIP;
    t->same_bits += out->same_bits;
    t->bounded += out->bounded;
    t->vacuous += out->vacuous;
    t->ratio = fmax(t->ratio, out->ratio);
    if (out->verdict == FD_SKIP && t->skip_reason[0] == '\0') {
        snprintf(t->skip_reason, sizeof t->skip_reason, "%.159s", out->reason);
    }
}

static void report(const fd_rung *const *rungs, int count, const tally *tallies)
{
    printf("\nrung relation         cases pass fail skip  same bits   bounded   vacuous  apart/bounds\n");
    for (int i = 0; i < count * fd_relation_count; i++) {
        const tally *t = &tallies[i];
        printf("%02d   %-15s %6lld %4lld %4lld %4lld %10lld %9lld %9lld  %.3f\n", rungs[i / fd_relation_count]->number,
               fd_relations[i % fd_relation_count].name, (long long)(t->passed + t->failed + t->skipped),
               (long long)t->passed, (long long)t->failed, (long long)t->skipped, (long long)t->same_bits,
               (long long)t->bounded, (long long)t->vacuous, t->ratio);
        if (t->skipped > 0) {
            printf("     skipped, first: %s\n", t->skip_reason);
        }
    }
    printf("same bits, bounded: values compared in either way; apart/bounds: largest distance over the sum of both "
           "bounds\n");
}

/* A testcase of JUnit. */
static fd_status keep(fd_trial *junit, const fd_rung *rung, const fd_relation *relation, const fd_case *c,
                      const fd_relation_outcome *out)
{
    fd_trial_line line = {.verdict = out->verdict,
                          .tier = out->verdict == FD_FAIL ? FD_TIER_METAMORPHIC : FD_TIER_NONE,
                          .ratio = out->ratio,
                          .vacuous = out->vacuous,
                          .seconds = -1.0};
    snprintf(line.name, sizeof line.name, "%.24s: %s", relation->name, c->name);
    snprintf(line.group, sizeof line.group, "%02d %.24s", rung->number, rung->name);
    snprintf(line.reason, sizeof line.reason, "%s", out->reason);
    snprintf(line.replay, sizeof line.replay, "%s relations --rung %d --case '%s'", fd_program, rung->number, c->name);
    return fd_trial_keep(junit, &line);
}

int fd_cmd_relations(int argc, char **argv)
{
    int64_t only[FD_LIST_MAX];
    int num_only = 0;
    const char *case_name = NULL, *junit_path = NULL;
    const int parsed = fd_options_parse(argc, argv, usage,
                                        (fd_option[]){fd_opt_rungs(only, &num_only),
                                                      fd_opt_text("case", &case_name),
                                                      fd_opt_text("junit", &junit_path),
                                                      {.name = NULL}});
    if (parsed >= 0) {
        return parsed;
    }

    char why[256] = "", path[512];
    fd_case_table table = {0};
    fd_trial junit = {.implementation = "ladder", .place = "any", .options = {.argc = argc, .argv = argv}};
    int exit_code = FD_EXIT_USAGE, count = 0;
    const size_t most = (size_t)fd_ladder_count * (size_t)fd_relation_count;
    const fd_rung **rungs = calloc((size_t)fd_ladder_count, sizeof *rungs);
    tally *tallies = calloc(most, sizeof *tallies);
    fd_relation_outcome *outcomes = calloc(most, sizeof *outcomes);
    if (rungs == NULL || tallies == NULL || outcomes == NULL) {
        snprintf(why, sizeof why, "no memory");
        goto done;
    }
    for (int k = 0; k < fd_ladder_count; k++) {
        if (fd_in_list(only, num_only, fd_ladder[k]->number)) {
            rungs[count++] = fd_ladder[k];
            if (!fd_runs_on_host(fd_ladder[k]) && fd_device_for(fd_ladder[k], why, sizeof why) == NULL) {
                exit_code = FD_EXIT_NOTHING;
                goto done;
            }
        }
    }
    if (fd_csv_check(junit_path, why, sizeof why) != FD_OK ||
        fd_cases_read(fd_data_path("cases.csv", path, sizeof path), &table, why, sizeof why) != FD_OK) {
        goto done;
    }

    const fd_libm_error libm = fd_libm_error_get(NULL);
    const fd_rounding rounding = fd_host_rounding(&libm);
    fd_print_hypotheses(&libm);
    int32_t found = 0;
    const int32_t expected = case_name != NULL ? 1 : fd_relation_case_count;
    for (int32_t i = 0; i < table.count; i++) {
        const fd_case *c = &table.cases[i];
        if (!wanted(c, case_name)) {
            continue;
        }
        fd_progress("relations", found++, expected);
        if (fd_metamorph(rungs, count, c, &rounding, outcomes, why, sizeof why) != FD_OK) {
            goto done;
        }
        for (int k = 0; k < count * fd_relation_count; k++) {
            if (!outcomes[k].applies) {
                continue;
            }
            add(&tallies[k], &outcomes[k]);
            if (junit_path != NULL && keep(&junit, rungs[k / fd_relation_count], &fd_relations[k % fd_relation_count],
                                           c, &outcomes[k]) != FD_OK) {
                snprintf(why, sizeof why, "no memory for the verdicts");
                goto done;
            }
            if (outcomes[k].verdict == FD_FAIL) {
                fd_progress("", 1, 1);
                print_failure(rungs[k / fd_relation_count], &fd_relations[k % fd_relation_count], c, &outcomes[k]);
            }
        }
    }
    fd_progress("", 1, 1);
    if (found != expected) {
        snprintf(why, sizeof why, "%d of %d cases found; flashdecode oracle --list names them", found, expected);
        goto done;
    }
    if (junit_path != NULL && fd_trial_write_junit(&junit, junit_path, why, sizeof why) != FD_OK) {
        goto done;
    }
    report(rungs, count, tallies);
    int64_t passed = 0, failed = 0, skipped = 0;
    for (int k = 0; k < count * fd_relation_count; k++) {
        passed += tallies[k].passed;
        failed += tallies[k].failed;
        skipped += tallies[k].skipped;
    }
    printf("%lld passed, %lld failed, %lld skipped\n", (long long)passed, (long long)failed, (long long)skipped);
    exit_code = fd_exit_code(passed, failed);
    why[0] = '\0';
done:
    if (why[0] != '\0') {
        fprintf(stderr, "relations: %s\n", why);
    }
    free(rungs);
    free(tallies);
    free(outcomes);
    fd_trial_free(&junit);
    fd_cases_free(&table);
    return exit_code;
}
