/* killtable.c: the table on a terminal and as CSV. */
#include "killtable.h"

#include <math.h>
#include <string.h>

#include "csv.h"

#define NAME_WIDTH 23

const char *fd_kill_tier_name(int tier)
{
    static const char *const names[FD_KILL_TIERS] = {"ours", "exact", "proved", "statistical", "metamorphic"};
    return names[tier];
}

fd_kill fd_kill_sum(fd_kill kills[FD_NUM_INPUTS][FD_KILL_DTYPES], int inputs)
{
    fd_kill sum = {0, 0, 0.0};
    for (int x = 0; x < FD_NUM_INPUTS; x++) {
        for (int d = 0; d < FD_KILL_DTYPES && (inputs < 0 || inputs == x); d++) {
            sum.applied += kills[x][d].applied;
            sum.caught += kills[x][d].caught;
            sum.margin = fmax(sum.margin, kills[x][d].margin);
        }
    }
    return sum;
}

/* ---- Terminal ---------------------------------------------------------------------------------- */

/* Two letters: Gaussian, directed. */
static void print_cell(fd_kill kills[FD_NUM_INPUTS][FD_KILL_DTYPES], bool right, FILE *out)
{
    char text[FD_NUM_INPUTS + 1] = "";
    for (int x = 0; x < FD_NUM_INPUTS; x++) {
        const fd_kill kill = fd_kill_sum(kills, x);
        text[x] = kill.applied == 0 ? ' ' : kill.caught == 0 ? '-' : right ? '!' : 'c';
    }
    fprintf(out, "%5s", text);
}

static void print_margin(double margin, int width, FILE *out)
{
    if (margin > 0.0 && margin < 0.01) {
        fprintf(out, "%*s", width, "<.01");
    } else if (margin < 1.0) { /* never rounded up to 1 */
        fprintf(out, "%*.2f", width, floor(margin * 100.0) / 100.0);
    } else {
        fprintf(out, margin < 9.95 ? "%*.1f" : margin < 9999.5 ? "%*.0f" : "%*.0e", width, margin);
    }
}

static void print_subject(fd_kill_subject *s, FILE *out)
{
    char by[FD_KILL_TIERS] = "";
    for (int t = 1, at = 0; t < FD_KILL_TIERS; t++) {
        if (fd_kill_sum(s->tier[t], -1).caught > 0) {
            by[at++] = "?EPSM"[t];
        }
    }
    fprintf(out, "%-*.*s", NAME_WIDTH, NAME_WIDTH, s->name);
    for (int k = 0; k < fd_rules_count; k++) {
        print_cell(s->rule[k], s->right, out);
    }
    print_cell(s->tier[0], s->right, out);
    fprintf(out, "%4s", by);
    const fd_kill proved = fd_kill_sum(s->tier[FD_TIER_PROVED], -1);
    if (by[0] != '\0' && proved.caught == 0) {
        fprintf(out, "%8s", "-"); /* seen by tiers that have no bound to be over */
    } else {
        print_margin(proved.margin, 8, out);
    }
    fputc('\n', out);
}

typedef struct total {
    int mutants, alarms,
        chances;   /* mutants caught; right rungs' alarms, and cases in which there could have been one */
    double margin; /* of right rungs */
} total;

static total add(fd_kill_table *table, int rule /* -1: ours */, int inputs)
{
    total sum = {0, 0, 0, 0.0};
    for (int x = 0; x < table->count; x++) {
        fd_kill_subject *s = &table->subjects[x];
        const fd_kill kill = fd_kill_sum(rule < 0 ? s->tier[0] : s->rule[rule], inputs);
        sum.mutants += !s->right && kill.caught > 0;
        sum.alarms += s->right ? kill.caught : 0;
        sum.chances += s->right ? kill.applied : 0;
        sum.margin = s->right ? fmax(sum.margin, kill.margin) : sum.margin;
    }
    return sum;
}

static void print_totals(fd_kill_table *table, FILE *out)
{
    static const struct {
        const char *name;
        int inputs, what; /* 0: mutants, 1: alarms, 2: margin */
    } lines[] = {{"caught, Gaussian", 0, 0},       {"caught, directed", 1, 0},       {"caught on either", -1, 0},
                 {"false alarms, Gaussian", 0, 1}, {"false alarms, directed", 1, 1}, {"right rungs' margin", -1, 2}};
    for (size_t x = 0; x < sizeof lines / sizeof *lines; x++) {
        fprintf(out, "%-*s", NAME_WIDTH, lines[x].name);
        for (int k = 0; k <= fd_rules_count; k++) {
            const total sum = add(table, k < fd_rules_count ? k : -1, lines[x].inputs);
            if (lines[x].what == 2) {
                print_margin(sum.margin, 5, out);
            } else {
                fprintf(out, "%5d", lines[x].what == 1 ? sum.alarms : sum.mutants);
            }
        }
        fputc('\n', out);
    }
}

static void print_heads(FILE *out)
{
    for (int line = 0; line < 2; line++) {
        fprintf(out, "%-*s", NAME_WIDTH, line == 1 ? "mutant" : "");
        for (int k = 0; k < fd_rules_count; k++) {
            fprintf(out, "%5s", fd_rules[k].head[line]);
        }
        fprintf(out, "%5s%4s%8s\n", line == 1 ? "ours" : "", line == 1 ? "by" : "", line == 1 ? "margin" : "");
    }
}

static void print_legend(FILE *out)
{
    fputs("\nTwo letters a cell, for Gaussian and for directed inputs: c caught, - missed, ! false alarm; blank: the\n"
          "rule is not meant for these types. Of our judge: the tiers that see it (E exact, P proved, S statistical)\n"
          "and the largest error over the proved bound. Every rule gets its best case: the exact answer to compare\n"
          "with, fp32, fp16 and bf16, and outputs made with NaN in all unused memory, which few suites do. Where a\n"
          "rung fails as it declares, nothing is an alarm. False alarms count pairs of a right rung and a case; what\n"
          "the rule says of mutants on such a case is not counted for it.\n\n",
          out);
    for (int k = 0; k < fd_rules_count; k++) {
        const fd_rule *r = &fd_rules[k];
        fprintf(out, "%-5s%-5s%s: %s\n          %s\n", r->head[0], r->head[1], r->name, r->says, r->source);
    }
}

void fd_kill_print(fd_kill_table *table, FILE *out)
{
    print_heads(out);
    for (int x = 0; x < table->count; x++) {
        if (x > 0 && table->subjects[x].right && !table->subjects[x - 1].right) {
            fputc('\n', out);
        }
        print_subject(&table->subjects[x], out);
    }
    fputc('\n', out);
    print_totals(table, out);
    print_legend(out);
}

/* ---- CSV --------------------------------------------------------------------------------------- */

static void csv_rows(const char *subject, const char *rule, fd_kill kills[FD_NUM_INPUTS][FD_KILL_DTYPES], FILE *out)
{
    for (int x = 0; x < FD_NUM_INPUTS; x++) {
        for (int d = 0; d < FD_KILL_DTYPES; d++) {
            if (kills[x][d].applied > 0) {
                fd_csv_field(out, subject);
                fputc(',', out);
                fd_csv_field(out, rule);
                fprintf(out, ",%s,%s,%d,%.6g\n", fd_inputs_name(x), fd_dtype_name(d), kills[x][d].caught,
                        kills[x][d].margin);
            }
        }
    }
}

void fd_kill_csv(fd_kill_table *table, FILE *out)
{
    for (int k = 0; k < fd_rules_count; k++) {
        const fd_rule *r = &fd_rules[k];
        fprintf(out, "# rule: %s | %s %s | %s | %s\n", r->name, r->head[0], r->head[1], r->says, r->source);
    }
    fputs("mutant,rule,inputs,dtype,caught,margin\n", out);
    for (int x = 0; x < table->count; x++) {
        fd_kill_subject *s = &table->subjects[x];
        for (int k = 0; k < fd_rules_count; k++) {
            csv_rows(s->name, fd_rules[k].name, s->rule[k], out);
        }
        for (int t = 0; t < FD_KILL_TIERS; t++) {
            if (t <= FD_TIER_PROVED || fd_kill_sum(s->tier[t], -1).caught > 0) {
                csv_rows(s->name, fd_kill_tier_name(t), s->tier[t], out);
            }
        }
    }
}
