/* `flashdecode oracle`: the exact answer of a row, its condition, and the oracle checked against itself. */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "oracle.h"

static const char usage[] = "usage: flashdecode oracle --case NAME [--row B,H] [--row B,T,H] [--dims N]\n"
                            "       flashdecode oracle --list\n"
                            "Prints what attention over a case's numbers is: lse, and for the first N output\n"
                            "elements o, its gauge sum p|v|, and the radius of the oracle's own error. The\n"
                            "row is computed twice, with 128 and 192 bits, and the two must agree within the\n"
                            "radius.\n\n"
                            "Exit code: 0, 1 if the two disagree, 2 usage or bad input.\n";

static void list(const fd_case_table *table)
{
    static const char *const sizes[] = {"small", "class", "full"};
    for (int32_t i = 0; i < table->count; i++) {
        printf("%-6s %s\n", sizes[table->cases[i].size], table->cases[i].name);
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

/* Do two rows agree within the radius of the first? */
static bool agree(const fd_oracle_row *x, const fd_oracle_row *y)
{
    bool good = x->kv_len == 0 || fabs((x->lse - y->lse) + (x->lse_lo - y->lse_lo)) <= x->lse_radius;
    for (int32_t i = 0; i < x->head_dim_v; i++) {
        good = good && fabs((x->o[i] - y->o[i]) + (x->o_lo[i] - y->o_lo[i])) <= x->radius[i];
    }
    return good;
}

static int show(const fd_case *c, int32_t b, int32_t t, int32_t h, int32_t dims)
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
    if (b < 0 || b >= p->batch || t < 0 || t >= p->q_len || h < 0 || h >= p->heads_q) {
        snprintf(why, sizeof why, "row %d,%d,%d is outside batch %d, q_len %d, heads_q %d", b, t, h, p->batch, p->q_len,
                 p->heads_q);
    } else if (fd_oracle_row_init(&row, p->kv_capacity, p->head_dim_v) != FD_OK ||
               fd_oracle_row_init(&check, p->kv_capacity, p->head_dim_v) != FD_OK) {
        snprintf(why, sizeof why, "no memory for an oracle row of %d keys", c->kv_len);
    } else if (fd_oracle(p, b, t, h, FD_ORACLE_BITS, &row, why, sizeof why) == FD_OK &&
               fd_oracle(p, b, t, h, FD_ORACLE_BITS + 64, &check, why, sizeof why) == FD_OK) {
        const bool good = agree(&row, &check);
        printf("%s, row b=%d t=%d h=%d\n", c->name, b, t, h);
        print_row(&row, dims);
        printf("%d and %d bits agree within the radius: %s\n", FD_ORACLE_BITS, FD_ORACLE_BITS + 64,
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

/* B,H, or B,T,H. */
static bool take_row(const char *text, int *b, int *t, int *h)
{
    int end = 0;
    if (sscanf(text, "%d,%d,%d%n", b, t, h, &end) == 3 && text[end] == '\0') {
        return true;
    }
    *t = 0;
    return sscanf(text, "%d,%d%n", b, h, &end) == 2 && text[end] == '\0';
}

int fd_cmd_oracle(int argc, char **argv)
{
    static const struct option longs[] = {{"case", required_argument, NULL, 'c'}, {"row", required_argument, NULL, 'r'},
                                          {"dims", required_argument, NULL, 'd'}, {"list", no_argument, NULL, 'l'},
                                          {"help", no_argument, NULL, 'h'},       {NULL, 0, NULL, 0}};
    const char *name = NULL;
    int b = 0, t = 0, h = 0, dims = 8;
    bool listing = false;
    for (int c; (c = getopt_long(argc, argv, "h", longs, NULL)) != -1;) {
        if (c == 'h') {
            fputs(usage, stdout);
            return FD_EXIT_PASS;
        }
        if (c == 'c') {
            name = optarg;
        } else if (c == 'l') {
            listing = true;
        } else if (c == 'd' && sscanf(optarg, "%d", &dims) == 1 && dims > 0) {
            continue;
        } else if (!(c == 'r' && take_row(optarg, &b, &t, &h))) {
            fputs(usage, stderr);
            return FD_EXIT_USAGE;
        }
    }
    if ((name == NULL) != listing || optind < argc) {
        fputs(usage, stderr);
        return FD_EXIT_USAGE;
    }

    char why[256], path[512];
    fd_case_table table = {0};
    int exit_code = FD_EXIT_USAGE;
    if (fd_cases_read(fd_data_path("cases.csv", path, sizeof path), &table, why, sizeof why) != FD_OK) {
        fprintf(stderr, "oracle: %s\n", why);
        return exit_code;
    }
    if (listing) {
        list(&table);
        exit_code = FD_EXIT_PASS;
    } else {
        int32_t i = 0;
        while (i < table.count && strcmp(table.cases[i].name, name) != 0) {
            i++;
        }
        if (i < table.count) {
            exit_code = show(&table.cases[i], b, t, h, dims);
        } else {
            fprintf(stderr, "oracle: no case '%s'; --list names them\n", name);
        }
    }
    fd_cases_free(&table);
    return exit_code;
}
