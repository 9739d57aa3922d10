/* `flashdecode verify`: every rung of the ladder on every case of a size. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "csv.h"
#include "diagnose.h"
#include "execute.h"
#include "ladder.h"
#include "machine.h"
#include "options.h"
#include "trial.h"

#define MAX_RUNGS 64
#define MAX_FAILURES_SHOWN 3 /* a rung; the rest is counted */
#define MAX_SPARKS 32

typedef struct options {
    const char *case_name, *family, *csv, *junit, *where;
    int64_t rungs[FD_LIST_MAX];
    int num_rungs, size;
    enum fd_tier level;
} options;

/* What the summary says about one rung. */
typedef struct tally {
    int64_t passed, failed, shown, declared, skipped;
    double ratio;
    char where[96];
    double z;
    char z_where[96];
    int64_t z_judged, z_no_model;
    int64_t vacuous, undecided;
    char given[FD_CLAIMS_TEXT];
    fd_suspects suspects;
    fd_votes votes;
    int num_sparks;
    double sparks[MAX_SPARKS]; /* scaled errors of the plot cases, by kv_len */
    char skip_reason[160];
} tally;

static const char usage[] = "usage: flashdecode verify [options]\n"
                            "Judges the rungs of the ladder on the cases of data/cases.csv: tier 1 exact,\n"
                            "tier 2 proved, tier 3 statistical (random families only).\n\n"
                            "  --rung N        only this rung (repeatable)\n"
                            "  --case NAME     only this case\n"
                            "  --family NAME   only this family of cases\n"
                            "  --where PLACE   only rungs that run there: cpu, emu or gpu\n"
                            "  --size SIZE     small, class or full (default small)\n"
                            "  --level LEVEL   tiers up to this one: exact, proved, statistical or all\n"
                            "                  (default all)\n"
                            "  --csv FILE      one line a rung and case\n"
                            "  --junit FILE    the same as JUnit XML, a suite a rung\n"
                            "  --help\n\n"
                            "Exit code: 0 all pass (skips are counted), 1 a failure, 2 usage or bad input, 77\n"
                            "nothing could run.\n";

/* -1: go on; else the exit code, and everything is said. */
static int parse(int argc, char **argv, options *o)
{
    static const char *const levels[] = {"exact", "proved", "statistical", "all", NULL};
    static const enum fd_tier highest[] = {FD_TIER_EXACT, FD_TIER_PROVED, FD_TIER_STATISTICAL, FD_TIER_STATISTICAL};
    int32_t level = 3;
    *o = (options){.size = FD_SMALL};
    const fd_option table[] = {
        fd_opt_rungs(o->rungs, &o->num_rungs),
        fd_opt_text("case", &o->case_name),
        fd_opt_text("family", &o->family),
        fd_opt_where(&o->where),
        fd_opt_size(&o->size),
        fd_opt_word("level", &level, levels),
        fd_opt_text("csv", &o->csv),
        fd_opt_text("junit", &o->junit),
        {.name = NULL},
    };
    const int parsed = fd_options_parse(argc, argv, usage, table);
    o->level = highest[level];
    if (o->case_name != NULL) {
        o->size = FD_FULL;
        fd_limit_emulation(0);
    }
    return parsed;
}

static void csv_head(FILE *f)
{
    fputs(
        "rung,name,parent,where,case,family,dtype_q,dtype_kv,dtype_o,batch,heads_q,heads_kv,head_dim,head_dim_v,q_len,"
        "kv_len,num_splits,seed,plot,err_max,err_p50,bound,ratio,lse_err,lse_bound,lse_ratio,ulp_p50,ulp_max,max_abs,"
        "vacuous,undecided,verdict,z_max,z_lse,ulp_p90,ulp_p99\n",
        f);
}

static void csv_row(FILE *f, const fd_case *c, const fd_outcome *out)
{
    static const char *const verdicts[] = {"pass", "fail", "expected-failure", "skip"};
    fprintf(f, "%d,", out->rung->number);
    fd_csv_field(f, out->rung->name);
    fprintf(f, ",%d,%s,", out->rung->parent, fd_where(out->rung));
    fd_csv_field(f, c->name);
    fprintf(f, ",%s,%s,%s,%s,%d,%d,%d,%d,%d,%d,%d,%d,0x%llx,%d", c->family, fd_dtype_name(c->dtype_q),
            fd_dtype_name(c->dtype_kv), fd_dtype_name(c->dtype_o), c->batch, c->heads_q, c->heads_kv, c->head_dim,
            c->head_dim_v, c->q_len, c->kv_len, out->num_splits, (unsigned long long)c->seed, c->plot);
    fprintf(f, ",%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%lld,%lld,%s,%.4g,%.4g,%.6g,%.6g\n", out->err_max,
            out->err_p50, out->bound, out->ratio, out->lse_err, out->lse_bound, out->lse_ratio, out->ulp_p50,
            out->ulp_max, out->max_abs, (long long)out->vacuous, (long long)out->undecided, verdicts[out->verdict],
            out->z_max, out->z_lse, out->ulp_p90, out->ulp_p99);
}

static void add(tally *t, const fd_case *c, const fd_outcome *out)
{
    t->passed += out->verdict == FD_PASS || out->verdict == FD_EXPECTED_FAILURE;
    t->declared += out->verdict == FD_EXPECTED_FAILURE;
    t->failed += out->verdict == FD_FAIL;
    t->skipped += out->verdict == FD_SKIP;
    t->vacuous += out->vacuous;
    t->undecided += out->undecided;
    /* Of a rung whose proof is open on some cases, such a case. */
    if (t->given[0] == '\0' ||
        (strstr(t->given, "proof open") == NULL && strstr(out->declared, "proof open") != NULL)) {
        snprintf(t->given, sizeof t->given, "%s", out->declared);
    }
    if (out->verdict == FD_SKIP && t->skip_reason[0] == '\0') {
        snprintf(t->skip_reason, sizeof t->skip_reason, "%.159s", out->reason);
    }
    const double ratio = fmax(out->ratio, out->lse_ratio);
    if (out->verdict != FD_SKIP && ratio > t->ratio) {
        t->ratio = ratio;
        snprintf(t->where, sizeof t->where, "%s", c->name);
    }
    const double z = fmax(out->z_max, out->z_lse);
    t->z_judged += out->z_judged;
    t->z_no_model += out->z_no_model;
    if (out->verdict != FD_SKIP && z > t->z) {
        t->z = z;
        snprintf(t->z_where, sizeof t->z_where, "%s", c->name);
    }
    if (c->plot && out->verdict == FD_PASS && t->num_sparks < MAX_SPARKS) {
        t->sparks[t->num_sparks++] = out->err_max;
    }
}

/* Eight heights on a log scale over the rung's own range. */
static void print_sparks(const tally *t)
{
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double low = HUGE_VAL, high = 0.0;
    for (int i = 0; i < t->num_sparks; i++) {
        low = fmin(low, fmax(t->sparks[i], 0x1p-10));
        high = fmax(high, t->sparks[i]);
    }
    for (int i = 0; i < t->num_sparks && high > low; i++) {
        const double height = log(fmax(t->sparks[i], low) / low) / log(high / low);
        fputs(blocks[(int)(height * 7.0 + 0.5)], stdout);
    }
}

/* The hypotheses, a clause a line where they do not fit one of 80 columns. */
static void print_given(const char *text)
{
    int column = printf("   given");
    while (*text != '\0') {
        const char *end = strstr(text, "; ");
        const int length = end != NULL ? (int)(end - text) + 1 : (int)strlen(text);
        if (column + 1 + length > 80) {
            column = printf("\n        ") - 1;
        }
        column += printf(" %.*s", length, text);
        text += end != NULL ? length + 1 : length;
    }
    printf("\n");
}

static void print_summary(const fd_rung *const *rungs, const tally *tallies, int count)
{
    printf("\nrung                     cases pass  fail skip   worst    z  error by kv_len\n");
    for (int k = 0; k < count; k++) {
        const tally *t = &tallies[k];
        printf("%02d %-18s %s %4lld %4lld  %4lld %4lld  %6.4g %4.3g  ", rungs[k]->number, rungs[k]->name,
               fd_where(rungs[k]), (long long)(t->passed + t->failed + t->skipped), (long long)t->passed,
               (long long)t->failed, (long long)t->skipped, t->ratio, t->z);
        print_sparks(t);
        printf("\n   worst on %s\n   z on %s; %lld values weighed\n", t->where[0] != '\0' ? t->where : "-",
               t->z_where[0] != '\0' ? t->z_where : "-", (long long)t->z_judged);
        if (t->z_no_model > 0) {
            printf("   %lld values of random families not weighed: no sigma model for what it claims\n",
                   (long long)t->z_no_model);
        }
        print_given(t->given);
        if (t->declared > 0) {
            printf("   on %lld of these it fails, as it declares: logits beyond the range of exp\n",
                   (long long)t->declared);
        }
        if (t->skipped > 0) {
            printf("   skipped, first: %s\n", t->skip_reason);
        }
        if (t->failed > 0) {
            char text[200];
            fd_votes_text(&t->votes, t->suspects, text, sizeof text);
            printf("   over all failures it %s\n", text);
            if (t->shown < t->failed) {
                printf("   %lld of %lld failures shown; --csv FILE lists them, --case NAME shows one\n",
                       (long long)t->shown, (long long)t->failed);
            }
        }
    }
    int64_t vacuous = 0, undecided = 0;
    for (int k = 0; k < count; k++) {
        vacuous += tallies[k].vacuous;
        undecided += tallies[k].undecided;
    }
    printf("worst: largest error over its proved bound, of o and lse. z: largest error on\n"
           "random families, in standard deviations of the sigma model; the line is 6.\n"
           "given: what the bound is derived from; proof open: on paper, not yet in Coq\n"
           "%lld values with a vacuous bound (decided by tier 1, or skipped), %lld undecided\n",
           (long long)vacuous, (long long)undecided);
}

/* The guide's own check, in its unit and in ours. */
static void print_guide(const fd_case *c, const fd_outcome *outcomes, int count)
{
    printf("\n%s: the guide's check, batch 1, 32 heads, 16384 keys, head_dim 128, chunk 1024\n", c->name);
    printf("   the guide asks |difference| < 1e-4; the largest |o| difference to the oracle is\n");
    for (int k = 0; k < count; k++) {
        if (outcomes[k].verdict != FD_SKIP) {
            printf("   %02d %-15s %.2e = 1e-4 / %-6.4g = %.2f u gauge = %.2g of its proved bound\n",
                   outcomes[k].rung->number, outcomes[k].rung->name, outcomes[k].max_abs, 1e-4 / outcomes[k].max_abs,
                   outcomes[k].err_max, outcomes[k].ratio);
        }
    }
}

static bool wanted(const options *o, const fd_case *c)
{
    return c->size <= o->size && (o->case_name == NULL || strcmp(o->case_name, c->name) == 0) &&
           (o->family == NULL || strcmp(o->family, c->family) == 0);
}

/* A testcase of JUnit. */
static fd_status keep(fd_trial *junit, const fd_case *c, const fd_outcome *out, const char *looks_like)
{
    fd_trial_line line;
    fd_trial_line_of(out, &line);
    snprintf(line.name, sizeof line.name, "%s", c->name);
    snprintf(line.group, sizeof line.group, "%02d %.24s", out->rung->number, out->rung->name);
    snprintf(line.looks_like, sizeof line.looks_like, "%s", looks_like);
    snprintf(line.replay, sizeof line.replay, "%s verify --rung %d --case '%s'", fd_program, out->rung->number,
             c->name);
    return fd_trial_keep(junit, &line);
}

/* The case in memory; for rungs that all refuse it, which are asked first, only its outline. */
static fd_status create_instance(const fd_case *c, const fd_rung *const *rungs, int count, fd_instance *instance,
                                 char *why, size_t n)
{
    char reason[160];
    const fd_status status = fd_instance_outline(instance, c, why, n);
    for (int k = 0; k < count && status == FD_OK; k++) {
        if (fd_supports_here(rungs[k], &instance->problem, reason, sizeof reason) == FD_OK) {
            fd_instance_free(instance);
            return fd_instance_create(instance, c, why, n);
        }
    }
    return status;
}

static fd_status verify_case(const options *o, const fd_case *c, const fd_rung *const *rungs, int count,
                             const fd_rounding *rounding, tally *tallies, FILE *csv, fd_trial *junit, char *why,
                             size_t n)
{
    fd_instance instance;
    fd_outcome outcomes[MAX_RUNGS];
    fd_status status = create_instance(c, rungs, count, &instance, why, n);
    if (status != FD_OK) {
        return status;
    }
    status = fd_judge_tiers(&instance, rungs, count, rounding, o->level, outcomes, why, n);
    for (int k = 0; k < count && status == FD_OK; k++) {
        char text[200] = "";
        add(&tallies[k], c, &outcomes[k]);
        if (outcomes[k].verdict == FD_FAIL) {
            const fd_suspects here = fd_diagnose(&instance, &outcomes[k], FD_ALL_SUSPECTS);
            tallies[k].suspects = fd_suspects_both(tallies[k].suspects, here);
            fd_votes_add(&tallies[k].votes, here);
            fd_diagnosis_text(here, text, sizeof text);
            if (tallies[k].shown < MAX_FAILURES_SHOWN || o->case_name != NULL) {
                tallies[k].shown++;
                char replay[240];
                snprintf(replay, sizeof replay, "%s verify --rung %d", fd_program, rungs[k]->number);
                fd_progress("", 1, 1);
                fd_print_failure(c, &outcomes[k], text, replay);
            }
        }
        if (csv != NULL) {
            csv_row(csv, c, &outcomes[k]);
        }
        if (o->junit != NULL && keep(junit, c, &outcomes[k], text) != FD_OK) {
            snprintf(why, n, "no memory for the verdicts");
            status = FD_NO_MEMORY;
        }
    }
    if (status == FD_OK && strcmp(c->name, "guide-16k") == 0) {
        fd_progress("", 1, 1);
        print_guide(c, outcomes, count);
    }
    fd_outcomes_free(outcomes, count);
    fd_instance_free(&instance);
    return status;
}

int fd_cmd_verify(int argc, char **argv)
{
    options o;
    const int parsed = parse(argc, argv, &o);
    if (parsed >= 0) {
        return parsed;
    }

    char why[256] = "", path[512];
    const fd_rung *rungs[MAX_RUNGS];
    tally tallies[MAX_RUNGS] = {0};
    int count = 0;
    for (int k = 0; k < fd_ladder_count && count < MAX_RUNGS; k++) {
        bool take = fd_in_list(o.rungs, o.num_rungs, fd_ladder[k]->number);
        if (o.where != NULL && strcmp(o.where, "cpu") == 0) {
            take = take && fd_runs_on_host(fd_ladder[k]);
        } else if (take && !fd_runs_on_host(fd_ladder[k]) && fd_device_for(fd_ladder[k], why, sizeof why) == NULL) {
            fprintf(stderr, "verify: %02d %s cannot run: %s; --where cpu judges the others\n", fd_ladder[k]->number,
                    fd_ladder[k]->name, why);
            return FD_EXIT_NOTHING;
        } else if (o.where != NULL) {
            take = take && strcmp(o.where, fd_where(fd_ladder[k])) == 0;
        }
        if (take) {
            tallies[count].suspects = FD_ALL_SUSPECTS;
            rungs[count++] = fd_ladder[k];
        }
    }

    fd_case_table table = {0};
    fd_csv csv = {0};
    fd_trial junit = {.implementation = "ladder", .place = "any", .options = {.argc = argc, .argv = argv}};
    int exit_code = FD_EXIT_USAGE;
    if (count == 0) {
        fprintf(stderr, "verify: none of the rungs runs on %s in this program\n", o.where != NULL ? o.where : "it");
        return FD_EXIT_NOTHING;
    }
    if (fd_cases_read(fd_data_path("cases.csv", path, sizeof path), &table, why, sizeof why) != FD_OK ||
        fd_csv_check(o.junit, why, sizeof why) != FD_OK ||
        (o.csv != NULL && fd_csv_open(&csv, o.csv, why, sizeof why) != FD_OK)) {
        goto done;
    }
    if (o.csv != NULL) {
        fd_machine_record record;
        fd_machine_record_read(&record, "flashdecode", argc, argv);
        fd_machine_record_write(&record, csv.file, "# ");
        csv_head(csv.file);
    }

    const fd_libm_error libm = fd_libm_error_get(NULL);
    const fd_rounding rounding = fd_host_rounding(&libm);
    fd_print_hypotheses(&libm);
    int32_t chosen = 0, done = 0;
    for (int32_t i = 0; i < table.count; i++) {
        chosen += wanted(&o, &table.cases[i]);
    }
    if (chosen == 0) {
        snprintf(why, sizeof why, "no case matches; flashdecode oracle --list names them");
        goto done;
    }
    for (int32_t i = 0; i < table.count; i++) {
        if (wanted(&o, &table.cases[i])) {
            fd_progress("verify", done++, chosen);
            if (verify_case(&o, &table.cases[i], rungs, count, &rounding, tallies, csv.file, &junit, why, sizeof why) !=
                FD_OK) {
                goto done;
            }
        }
    }
    fd_progress("verify", 1, 1);
    if ((o.csv != NULL && fd_csv_commit(&csv, why, sizeof why) != FD_OK) ||
        (o.junit != NULL && fd_trial_write_junit(&junit, o.junit, why, sizeof why) != FD_OK)) {
        goto done;
    }

    int64_t passed = 0, failed = 0, skipped = 0;
    for (int k = 0; k < count; k++) {
        passed += tallies[k].passed;
        failed += tallies[k].failed;
        skipped += tallies[k].skipped;
    }
    print_summary(rungs, tallies, count);
    printf("%lld passed, %lld failed, %lld skipped\n", (long long)passed, (long long)failed, (long long)skipped);
    exit_code = fd_exit_code(passed, failed);
    why[0] = '\0';
done:
    if (why[0] != '\0') {
        fprintf(stderr, "verify: %s\n", why);
    }
    fd_csv_discard(&csv);
    fd_trial_free(&junit);
    fd_cases_free(&table);
    return exit_code;
}
