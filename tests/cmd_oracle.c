/* `flashdecode oracle`: the exact answer of a row and its condition; the two oracles held against each other, and timed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "options.h"
#include "oracle_fast.h"
#include "oracle_survey.h"

#ifdef _OPENMP
#include <omp.h>
#endif

static const char usage[] = "usage: flashdecode oracle --case NAME [--row B,[T,]H] [--dims N] [--plain]\n"
                            "       flashdecode oracle --compare [--case NAME | --size SIZE] [options]\n"
                            "       flashdecode oracle --time [--compare | --fast | --plain] [options]\n"
                            "       flashdecode oracle --list\n"
                            "Prints what attention over a case's numbers is: lse, and for the first N output\n"
                            "elements o, its gauge sum p|v|, and the radius of the oracle's own error. The\n"
                            "row is computed twice, and the two must agree within the sum of the radii: by\n"
                            "the fast oracle, which the judge asks, and by the plain one, which is MPFR\n"
                            "throughout; --plain: by the plain one with 128 and with 192 bits.\n\n"
                            "  --compare    both oracles on every row of a case, or of all cases of a size\n"
                            "  --time       seconds of processor time and of the clock, and memory\n"
                            "  --size SIZE  small, class or full (default small)\n"
                            "  --rows N     at most N rows a case; another sample for another --turn N\n\n"
                            "Exit code: 0, 1 if the two disagree, 2 usage or bad input.\n";

typedef struct options {
    const char *name;
    int b, t, h;
    int32_t dims, size;
    bool list, compare, time, fast, plain;
    int64_t rows, turn;
} options;

static void list(const fd_case_table *table)
{
    for (int32_t i = 0; i < table->count; i++) {
        printf("%-6s %s\n", fd_size_names[table->cases[i].size], table->cases[i].name);
    }
}

static void print_row(const fd_oracle_row *row, int32_t dims)
{
    printf("kv_len %lld, lse %.17g (%a), radius %.3g\n", (long long)row->kv_len, row->lse, row->lse, row->lse_radius);
    printf("largest logit %.9g, largest gap %.9g, largest a = |sm_scale| sum |q k| %.9g\n", row->s_max, row->gap_max,
           row->a_max);
    printf("   i  o                        hex-float               gauge        radius/gauge\n");
    for (int32_t i = 0; i < dims && i < row->head_dim_v; i++) {
        printf("%4d  %-23.17g  %-22a  %.6e  %s%.1f\n", i, row->o[i], row->o[i], row->gauge[i],
               row->gauge[i] > 0.0 ? "2^" : "", row->gauge[i] > 0.0 ? log2(row->radius[i] / row->gauge[i]) : 0.0);
    }
}

/* The row that is printed, and the one that checks it. */
static fd_status ask_twice(const fd_problem *p, const options *o, fd_oracle_row *row, fd_oracle_row *check, char *why,
                           size_t n)
{
    const fd_status status = o->plain ? fd_oracle(p, o->b, o->t, o->h, FD_ORACLE_BITS, row, why, n)
                                      : fd_oracle_fast(p, o->b, o->t, o->h, row, why, n);
    return status != FD_OK ? status
                           : fd_oracle(p, o->b, o->t, o->h, FD_ORACLE_BITS + (o->plain ? 64 : 0), check, why, n);
}

static int show(const fd_case *c, const options *o)
{
    char why[256] = "";
    fd_instance instance;
    fd_oracle_row row = {0}, check = {0};
    int exit_code = FD_EXIT_USAGE;
    if (fd_instance_create(&instance, c, why, sizeof why) != FD_OK) {
        fprintf(stderr, "oracle: %s\n", why);
        return exit_code;
    }
    const fd_problem *p = &instance.problem;
    if (o->b < 0 || o->b >= p->batch || o->t < 0 || o->t >= p->q_len || o->h < 0 || o->h >= p->heads_q) {
        snprintf(why, sizeof why, "row %d,%d,%d is outside batch %d, q_len %d, heads_q %d", o->b, o->t, o->h, p->batch,
                 p->q_len, p->heads_q);
    } else if (fd_oracle_row_init(&row, p->kv_capacity, p->head_dim_v) != FD_OK ||
               fd_oracle_row_init(&check, p->kv_capacity, p->head_dim_v) != FD_OK) {
        snprintf(why, sizeof why, "no memory for an oracle row of %d keys", c->kv_len);
    } else if (ask_twice(p, o, &row, &check, why, sizeof why) == FD_OK) {
        fd_disagreement d = {0};
        fd_oracle_compare(&row, &check, p->head_dim, &d);
        const bool good = fd_oracle_agree(&d);
        printf("%s, row b=%d t=%d h=%d\n", c->name, o->b, o->t, o->h);
        print_row(&row, o->dims);
        printf("%s agree within the radius: %s\n", o->plain ? "128 and 192 bits" : "the fast and the plain oracle",
               good ? "yes" : "NO");
        exit_code = good ? FD_EXIT_PASS : FD_EXIT_FAIL;
        why[0] = '\0';
    }
    if (why[0] != '\0') {
        fprintf(stderr, "oracle: %s\n", why);
    }
    fd_oracle_row_free(&row);
    fd_oracle_row_free(&check);
    fd_instance_free(&instance);
    return exit_code;
}

/* ---- Both, on many rows ------------------------------------------------------------------------ */

static int threads(void)
{
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}

static void print_time(const char *name, double seconds, const fd_survey_result *sum)
{
    printf("%-6s %8.3f s of processor time, %6.2f ns a product\n", name, seconds,
           seconds / fmax(1.0, (double)sum->products) * 1e9);
}

static int survey(const fd_case_table *table, const fd_case *only, const options *o)
{
    const fd_survey ask = {
        .fast = o->compare || !o->plain, .plain = o->compare || !o->fast, .rows = o->rows, .turn = o->turn};
    fd_survey_result sum = {0};
    char worst[96] = "";
    int64_t cases = 0, wrong = 0;
    double memory = 0.0;
    for (int32_t i = 0; i < table->count; i++) {
        const fd_case *c = &table->cases[i];
        if (only != NULL ? c != only : c->size > o->size) {
            continue;
        }
        char why[256] = "";
        fd_survey_result one = {0};
        if (fd_oracle_survey(c, &ask, &one, why, sizeof why) != FD_OK) {
            fprintf(stderr, "oracle: %s\n", why);
            return FD_EXIT_USAGE;
        }
        memory = fmax(memory, one.memory);
        cases++;
        wrong += !fd_oracle_agree(&one.d);
        if (!fd_oracle_agree(&one.d)) {
            printf("DISAGREE %s: %s[%lld], %.3g of the radii, %.3g of a unit elsewhere\n", c->name, one.d.where,
                   (long long)one.d.index, one.d.radii, one.d.other);
        }
        if (fmax(one.d.radii, one.d.other) > fmax(sum.d.radii, sum.d.other)) {
            snprintf(worst, sizeof worst, "%s", c->name);
        }
        sum.rows += one.rows;
        sum.keys += one.keys;
        sum.products += one.products;
        sum.wall += one.wall;
        sum.fast += one.fast;
        sum.plain += one.plain;
        fd_disagreement_add(&sum.d, &one.d);
        fd_progress("oracle", i + 1, table->count);
    }
    fd_progress("oracle", table->count, table->count);

    printf("%lld rows of %lld cases, %.4g products q k and p v\n", (long long)sum.rows, (long long)cases,
           (double)sum.products);
    if (o->time && ask.fast) {
        print_time("fast", sum.fast, &sum);
    }
    if (o->time && ask.plain) {
        print_time("plain", sum.plain, &sum);
    }
    if (o->time) {
        printf("clock  %8.3f s on %d threads; at most %.0f MiB beyond the inputs\n", sum.wall, threads(), memory);
    }
    if (o->compare) {
        printf(
            "largest disagreement: %.3g of the sum of the radii; of the fields without a radius %.3g of what they may "
            "differ by%s%s%s%s\n",
            sum.d.radii, sum.d.other, worst[0] != '\0' ? ": " : "", sum.d.where != NULL ? sum.d.where : "",
            worst[0] != '\0' ? " of " : "", worst);
        printf("%lld passed, %lld failed, 0 skipped\n", (long long)(cases - wrong), (long long)wrong);
    }
    return wrong > 0 ? FD_EXIT_FAIL : FD_EXIT_PASS;
}

/* ---- Options ----------------------------------------------------------------------------------- */

/* B,H, or B,T,H. */
static bool take_row(const char *command, const fd_option *option, const char *text)
{
    options *o = option->to[0];
    int end = 0;
    if (sscanf(text, "%d,%d,%d%n", &o->b, &o->t, &o->h, &end) == 3 && text[end] == '\0') {
        return true;
    }
    o->t = 0;
    return (sscanf(text, "%d,%d%n", &o->b, &o->h, &end) == 2 && text[end] == '\0') ||
           fd_bad_value(command, option, text, "give batch and query head, such as 0,1, or batch, query row and head");
}

/* -1: go on; else the exit code, and everything is said. */
static int parse(int argc, char **argv, options *o)
{
    *o = (options){.dims = 8, .size = FD_SMALL};
    const fd_option table[] = {
        fd_opt_text("case", &o->name),
        fd_opt_own("row", take_row, o),
        fd_opt_number("dims", &o->dims, 1, INT32_MAX),
        fd_opt_size(&o->size),
        fd_opt_long("rows", &o->rows, 1, INT32_MAX),
        fd_opt_long("turn", &o->turn, 0, INT32_MAX),
        fd_opt_flag("list", &o->list),
        fd_opt_flag("compare", &o->compare),
        fd_opt_flag("time", &o->time),
        fd_opt_flag("fast", &o->fast),
        fd_opt_flag("plain", &o->plain),
        {.name = NULL},
    };
    const int parsed = fd_options_parse(argc, argv, usage, table);
    if (parsed >= 0) {
        return parsed;
    }
    const bool many = o->compare || o->time;
    if (o->fast && o->plain) {
        return fd_bad_usage("oracle", "--fast and --plain exclude each other", "leave one out");
    }
    if (o->list && (o->name != NULL || many)) {
        return fd_bad_usage("oracle", "--list goes with no other option", "leave the others out");
    }
    if (!o->list && o->name == NULL && !many) {
        return fd_bad_usage("oracle", "nothing is asked for", "give --case NAME, --compare, --time or --list");
    }
    return -1;
}

int fd_cmd_oracle(int argc, char **argv)
{
    options o;
    const int parsed = parse(argc, argv, &o);
    if (parsed >= 0) {
        return parsed;
    }
    char why[256], path[512];
    fd_case_table table = {0};
    int exit_code = FD_EXIT_USAGE;
    if (fd_cases_read(fd_data_path("cases.csv", path, sizeof path), &table, why, sizeof why) != FD_OK) {
        fprintf(stderr, "oracle: %s\n", why);
        return exit_code;
    }
    const fd_case *only = NULL;
    for (int32_t i = 0; o.name != NULL && only == NULL && i < table.count; i++) {
        only = strcmp(table.cases[i].name, o.name) == 0 ? &table.cases[i] : NULL;
    }
    if (o.list) {
        list(&table);
        exit_code = FD_EXIT_PASS;
    } else if (o.name != NULL && only == NULL) {
        fprintf(stderr, "oracle: no case '%s'; --list names them\n", o.name);
    } else {
        exit_code = o.compare || o.time ? survey(&table, only, &o) : show(only, &o);
    }
    fd_cases_free(&table);
    return exit_code;
}
