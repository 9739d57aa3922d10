/* `flashdecode killtable`: our tiers beside the rules that other projects publish. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "csv.h"
#include "execute.h"
#include "killtable.h"
#include "machine.h"
#include "mutants.h"
#include "options.h"

#define MAX_CASES 64
#define MAX_WORK ((int64_t)1 << 22) /* kv_len * batch * q_len * heads_q * head_dim of a case tried against a survivor */

static const char usage[] = "usage: flashdecode killtable [--csv FILE] [--help]\n"
                            "Applies published acceptance rules and our tiers to every wrong rung and every\n"
                            "right one, on Gaussian and on directed inputs.\n\n"
                            "Exit code: 0 ours catch every mutant and no right rung, 1 not so, 2 usage or bad\n"
                            "input.\n";

static void add_kill(fd_kill *kill, bool caught, double margin)
{
    kill->applied++;
    kill->caught += caught;
    kill->margin = fmax(kill->margin, margin);
}

/* What the rung left in o and lse, even if it wrote elsewhere as well, which no published rule would see. Memory that
 * is no token holds NaN. False if it returned an error. */
static bool run_unfenced(fd_instance *instance, const fd_rung *rung, float *o, float *lse)
{
    const fd_problem *p = &instance->problem;
    fd_plan *plan = NULL;
    char why[160] = "";
    if (fd_plan_for(rung, p, &plan, why, sizeof why) != FD_OK) {
        return false;
    }
    const fd_status status = fd_execute(rung, plan, instance, true, FD_POISON_NAN, o, lse, why, sizeof why);
    free(plan);
    for (int64_t row = 0; row < fd_row_count(p); row++) {
        int32_t b, t, h;
        fd_row_of_index(p, row, &b, &t, &h);
        for (int32_t i = 0; i < p->head_dim_v; i++) {
            o[row * p->head_dim_v + i] = fd_load(&p->o, fd_row_at(&p->o, b, t, h) + i);
        }
        lse[row] = fd_load(&p->lse, fd_row_at(&p->lse, b, t, h));
    }
    return status == FD_OK || strncmp(why, "run()", strlen("run()")) != 0;
}

/* A rule that rejects a right rung on this case says nothing about wrong ones: rejects_right[rule] is set by right
 * rungs, which come first, and takes the case out of the rule's account for mutants. */
static void apply(fd_kill_subject *s, fd_instance *instance, fd_outcome *out, const fd_rule_references *references,
                  int inputs, bool *rejects_right)
{
    const int32_t dtype = instance->problem.o.dtype;
    if (out->verdict == FD_SKIP || out->verdict == FD_EXPECTED_FAILURE) {
        return; /* wrong, and said so: neither a miss nor an alarm for anyone */
    }
    const bool failed = out->verdict == FD_FAIL,
               ran = !failed || out->tier != FD_TIER_EXACT || run_unfenced(instance, out->rung, out->o, out->lse);
    const double margin = fmax(out->ratio, out->lse_ratio);
    const bool beyond = margin > 1.0; /* tier 2 also sees what tier 1 saw first */
    add_kill(&s->tier[0][inputs][dtype], failed, margin);
    for (int t = 1; t < FD_KILL_TIERS; t++) {
        const bool seen = failed && (out->tier == t || (t == FD_TIER_PROVED && beyond));
        add_kill(&s->tier[t][inputs][dtype], seen, t == FD_TIER_PROVED ? margin : seen ? HUGE_VAL : 0.0);
    }
    const fd_rule_input x = {.o = out->o, .lse = out->lse, .dtype_o = dtype, .against = references};
    for (int k = 0; k < fd_rules_count; k++) {
        if ((fd_rules[k].dtypes & 1u << dtype) == 0 || (!s->right && rejects_right[k])) {
            continue;
        }
        const fd_rule_verdict v = ran ? fd_rules[k].judge(&x) : (fd_rule_verdict){true, HUGE_VAL};
        add_kill(&s->rule[k][inputs][dtype], v.caught, v.margin);
        rejects_right[k] = rejects_right[k] || (s->right && v.caught);
    }
}

/* All subjects on one case. */
static fd_status judge_case(const fd_rule_case *x, const fd_rounding *rounding, fd_kill_table *table, char *why,
                            size_t n)
{
    fd_instance instance;
    fd_rule_references references = {.rows = 0};
    const fd_rung *rungs[FD_KILL_SUBJECTS];
    bool rejects_right[FD_KILL_RULES] = {false};
    fd_outcome *outcomes = calloc(FD_KILL_SUBJECTS, sizeof *outcomes);
    snprintf(why, n, "%s: no memory for the outcomes", x->c.name);
    fd_status status = outcomes == NULL ? FD_NO_MEMORY : fd_instance_create(&instance, &x->c, why, n);
    if (status != FD_OK) {
        free(outcomes);
        return status;
    }
    for (int k = 0; k < table->count; k++) {
        rungs[k] = table->subjects[k].rung;
    }
    status = fd_rule_references_create(&instance.problem, &references, why, n);
    if (status == FD_OK) {
        status = fd_judge(&instance, rungs, table->count, rounding, outcomes, why, n);
    }
    for (int pass = 0; pass < 2; pass++) {
        for (int k = 0; k < table->count && status == FD_OK; k++) {
            if (table->subjects[k].right == (pass == 0)) {
                apply(&table->subjects[k], &instance, &outcomes[k], &references, x->inputs, rejects_right);
            }
        }
    }
    fd_outcomes_free(outcomes, table->count);
    free(outcomes);
    fd_rule_references_free(&references);
    fd_instance_free(&instance);
    return status;
}

static fd_kill_table *all_subjects(void)
{
    fd_kill_table *table = calloc(1, sizeof *table);
    for (int k = 0; table != NULL && k < fd_mutants_count + fd_parents_count; k++) {
        fd_kill_subject *s = &table->subjects[table->count++];
        s->right = k >= fd_mutants_count;
        s->rung = s->right ? fd_parents[k - fd_mutants_count] : fd_mutants[k];
        if (s->right) {
            snprintf(s->name, sizeof s->name, "rung %02d %s", s->rung->number, s->rung->name);
        } else {
            snprintf(s->name, sizeof s->name, "%s", s->rung->name);
        }
    }
    return table;
}

/* Mutants that no case has killed yet, as a table of their own that shares nothing with the first. */
static void copy_survivors(const fd_kill_table *from, fd_kill_table *to)
{
    const int count = from->count; /* from may be to */
    to->count = 0;
    for (int k = 0; k < count; k++) {
        fd_kill_subject s = from->subjects[k];
        if (!s.right && fd_kill_sum(s.tier[0], -1).caught == 0) {
            to->subjects[to->count++] = s;
        }
    }
}

/* The chosen directed cases are few. If they leave a mutant alive, the first small case of the table that kills one
 * joins them, for every rule: no rule is judged on inputs that the others have not seen. */
static fd_status chase_survivors(const fd_case_table *cases, const fd_rounding *rounding, fd_kill_table *table,
                                 char *why, size_t n)
{
    fd_kill_table *alive = calloc(1, sizeof *alive);
    fd_status status = alive == NULL ? FD_NO_MEMORY : FD_OK;
    if (status == FD_OK) {
        copy_survivors(table, alive);
    }
    for (int32_t i = 0; i < cases->count && status == FD_OK && alive->count > 0; i++) {
        const fd_case *c = &cases->cases[i];
        const fd_rule_case x = {*c, FD_INPUTS_DIRECTED};
        if (c->size != FD_SMALL || (int64_t)c->kv_len * c->batch * c->q_len * c->heads_q * c->head_dim > MAX_WORK) {
            continue;
        }
        const int before = alive->count;
        fd_progress("survivors", i, cases->count);
        status = judge_case(&x, rounding, alive, why, n);
        copy_survivors(alive, alive);
        if (status == FD_OK && alive->count < before) {
            printf("added to the directed cases, for a mutant that the others leave alive: %s\n", c->name);
            status = judge_case(&x, rounding, table, why, n);
        }
    }
    fd_progress("survivors", 1, 1);
    free(alive);
    return status;
}

static fd_status run(const fd_case_table *cases, const fd_rounding *rounding, fd_kill_table *table, char *why, size_t n)
{
    fd_rule_case *chosen = calloc(MAX_CASES, sizeof *chosen);
    int count = 0;
    snprintf(why, n, "no memory for the cases");
    fd_status status = chosen == NULL ? FD_NO_MEMORY : fd_rule_cases(cases, chosen, MAX_CASES, &count, why, n);
    for (int x = 0; x < count && status == FD_OK; x++) {
        fd_progress("kill table", x, count);
        status = judge_case(&chosen[x], rounding, table, why, n);
    }
    fd_progress("kill table", 1, 1);
    free(chosen);
    return status != FD_OK ? status : chase_survivors(cases, rounding, table, why, n);
}

/* Says which subjects ours got wrong; counts the others. */
static int64_t count_failures(fd_kill_table *table)
{
    int64_t failed = 0;
    for (int k = 0; k < table->count; k++) {
        fd_kill_subject *s = &table->subjects[k];
        const fd_kill ours = fd_kill_sum(s->tier[0], -1);
        if (s->right == (ours.caught > 0)) {
            printf("FAIL %s: %s\n", s->name, s->right ? "a right rung is rejected" : "no tier catches this mutant");
            failed++;
        }
    }
    return failed;
}

int fd_cmd_killtable(int argc, char **argv)
{
    const char *csv_path = NULL;
    const int parsed =
        fd_options_parse(argc, argv, usage, (fd_option[]){fd_opt_text("csv", &csv_path), {.name = NULL}});
    if (parsed >= 0) {
        return parsed;
    }
    if (fd_mutants_count + fd_parents_count > FD_KILL_SUBJECTS || fd_rules_count > FD_KILL_RULES) {
        fprintf(stderr, "killtable: more mutants and rungs, or rules, than tests/killtable.h has room for\n");
        return FD_EXIT_USAGE;
    }

    char why[256] = "no memory for the table", path[512];
    fd_case_table cases = {0};
    fd_csv csv = {0};
    int exit_code = FD_EXIT_USAGE;
    fd_kill_table *table = all_subjects();
    if (table == NULL ||
        fd_cases_read(fd_data_path("cases.csv", path, sizeof path), &cases, why, sizeof why) != FD_OK ||
        (csv_path != NULL && fd_csv_open(&csv, csv_path, why, sizeof why) != FD_OK)) {
        goto done;
    }
    const fd_libm_error libm = fd_libm_error_get(NULL);
    const fd_rounding rounding = fd_host_rounding(&libm);
    fd_print_hypotheses(&libm);
    if (run(&cases, &rounding, table, why, sizeof why) != FD_OK) {
        goto done;
    }
    printf("\n");
    fd_kill_print(table, stdout);
    if (csv_path != NULL) {
        fd_machine_record machine;
        fd_machine_record_read(&machine, "flashdecode", argc, argv);
        fd_machine_record_write(&machine, csv.file, "# ");
        fd_kill_csv(table, csv.file);
        if (fd_csv_commit(&csv, why, sizeof why) != FD_OK) {
            goto done;
        }
    }
    printf("\n");
    const int64_t failed = count_failures(table);
    printf("%lld passed, %lld failed, 0 skipped\n", (long long)(table->count - failed), (long long)failed);
    exit_code = fd_exit_code(table->count - failed, failed);
    why[0] = '\0';
done:
    if (exit_code == FD_EXIT_USAGE) {
        fprintf(stderr, "killtable: %s\n", why);
    }
    fd_csv_discard(&csv);
    fd_cases_free(&cases);
    free(table);
    return exit_code;
}
