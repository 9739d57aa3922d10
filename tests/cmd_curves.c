/* `flashdecode curves`: how small may a fault be before a tier no longer sees it? */
#include <stdlib.h>

#include "commands.h"
#include "csv.h"
#include "curves.h"
#include "machine.h"
#include "options.h"

static const char *const tier_names[FD_CURVE_TIERS] = {"exact", "proved", "statistical"};

/* ---- Table and CSV ------------------------------------------------------------------------------- */

typedef fd_curve fd_curves[FD_CURVE_INPUTS][FD_CURVE_DTYPES][FD_NUM_FAULTS];

/* The furthest of the inputs of one kind, or NULL. */
static const fd_curve *furthest(fd_curves *all, int32_t fault, int32_t dtype, int tier, bool directed,
                                const char **name)
{
    const fd_curve *best = NULL;
    for (int x = 0; x < FD_CURVE_INPUTS; x++) {
        const fd_curve *c = &(*all)[x][dtype][fault];
        if (fd_curve_inputs[x].directed == directed && c->most > 0 && fd_curve_judged(c, tier) &&
            (best == NULL || fd_curve_detected_to(c, tier) > fd_curve_detected_to(best, tier))) {
            best = c;
            *name = fd_curve_inputs[x].name;
        }
    }
    return best;
}

/* "-": the tier never speaks or sees nothing. */
static void print_cell(const fd_curve *c, int32_t fault, int tier)
{
    const int32_t level = c == NULL ? 0 : fd_curve_detected_to(c, tier);
    char text[24] = "-";
    if (c != NULL && level >= c->least) {
        const char *mark = level == c->most ? "+" : fd_curve_monotone(c, tier) ? "" : "*";
        if (fault == FD_FAULT_KEY) {
            snprintf(text, sizeof text, "1/%ld%s", 1L << level, mark);
        } else {
            snprintf(text, sizeof text, fault == FD_FAULT_SCALE || fault == FD_FAULT_WEIGHTS ? "2^-%d%s" : "%d bits%s",
                     level, mark);
        }
    }
    printf("%10s", text);
}

static void print_table(fd_curves *all)
{
    static const char *const letters[FD_CURVE_DTYPES] = {"fff", "hhh", "bbb"};
    printf("\nThe smallest fault detected            Gaussian            directed\n"
           "fault           dtypes    proved  statist.     exact    proved  statist.   that is  median of o\n");
    for (int32_t fault = 0; fault < FD_NUM_FAULTS; fault++) {
        for (int32_t dtype = 0; dtype < FD_CURVE_DTYPES; dtype++) {
            const fd_curve *smallest = NULL;
            int32_t level = 0;
            printf("%-15s %-6s", fd_fault_name(fault), letters[dtype]);
            for (int cell = 0; cell < 5; cell++) {
                const int tier = cell < 2 ? cell + 1 : cell - 2;
                const char *name;
                const fd_curve *c = furthest(all, fault, dtype, tier, cell >= 2, &name);
                print_cell(c, fault, tier);
                if (c != NULL && fd_curve_detected_to(c, tier) >= c->least && fd_curve_detected_to(c, tier) > level) {
                    smallest = c;
                    level = fd_curve_detected_to(c, tier);
                }
            }
            if (smallest != NULL) {
                printf("  %8.2g%%  %.2g ulp", 100.0 * fd_fault_size(level), smallest->at[level].ulp);
            }
            printf("\n");
        }
    }
    printf(
        "\n`that is`: the smallest of the row as a relative error, and the median error of o with it, in units of the\n"
        "last place of its type. +: the smallest tried. *: not in order, some smaller fault shows as well. -: none.\n"
        "Directed: the best of its families; the exact tier speaks on flat-integer only, the statistical one on\n"
        "peaky and ragged-spike only.\n");
}

static void write_csv(fd_curves *all, FILE *file)
{
    fputs("fault,dtype,tier,inputs,level,detected,margin\n", file);
    for (int32_t fault = 0; fault < FD_NUM_FAULTS; fault++) {
        for (int32_t dtype = 0; dtype < FD_CURVE_DTYPES; dtype++) {
            for (int at = 0; at < FD_CURVE_INPUTS * FD_CURVE_TIERS; at++) {
                const int x = at / FD_CURVE_TIERS, tier = at % FD_CURVE_TIERS;
                const fd_curve *c = &(*all)[x][dtype][fault];
                for (int32_t level = c->least; level <= c->most; level++) {
                    if (c->at[level].asked && c->at[level].judged[tier]) {
                        fprintf(file, "%s,%s,%s,%s,%d,%d,%.6g\n", fd_fault_name(fault), fd_dtype_name(dtype),
                                tier_names[tier], fd_curve_inputs[x].name, level, c->at[level].detected[tier],
                                c->at[level].margin[tier]);
                    }
                }
            }
        }
    }
}

/* Pairs of a kind and dtypes whose grossest fault no tier sees on Gaussian inputs. */
static int64_t count_unseen(fd_curves *all)
{
    int64_t unseen = 0;
    for (int32_t fault = 0; fault < FD_NUM_FAULTS; fault++) {
        for (int32_t dtype = 0; dtype < FD_CURVE_DTYPES; dtype++) {
            const fd_curve *c = &(*all)[0][dtype][fault];
            const fd_point *gross = &c->at[c->least];
            if (!gross->detected[1] && !gross->detected[2]) {
                printf("not detected at all: %s, %s\n", fd_fault_name(fault), fd_dtype_name(dtype));
                unseen++;
            }
        }
    }
    return unseen;
}

/* ---- The command --------------------------------------------------------------------------------- */

static const char usage[] = "usage: flashdecode curves [--csv FILE] [--help]\n"
                            "Gives rung 05 faults of adjustable size, and finds by bisection the smallest\n"
                            "that each tier of the judge detects, on Gaussian and on directed inputs, for\n"
                            "fp32, fp16 and bf16.\n\n"
                            "Exit code: 0 every fault is seen when it is large, 1 one is not, 2 usage or bad\n"
                            "input.\n";

int fd_cmd_curves(int argc, char **argv)
{
    const char *csv_path = NULL;
    const int parsed =
        fd_options_parse(argc, argv, usage, (fd_option[]){fd_opt_text("csv", &csv_path), {.name = NULL}});
    if (parsed >= 0) {
        return parsed;
    }

    char why[256] = "no memory for the curves";
    fd_csv csv = {0};
    int exit_code = FD_EXIT_USAGE;
    fd_curves *all = calloc(1, sizeof *all);
    if (all == NULL || (csv_path != NULL && fd_csv_open(&csv, csv_path, why, sizeof why) != FD_OK)) {
        goto done;
    }
    const fd_libm_error libm = fd_libm_error_get(NULL);
    const fd_rounding rounding = fd_host_rounding(&libm);
    fd_print_hypotheses(&libm);
    if (fd_curves_search(&rounding, all, why, sizeof why) != FD_OK) {
        goto done;
    }
    print_table(all);
    if (csv_path != NULL) {
        fd_machine_record machine;
        fd_machine_record_read(&machine, "flashdecode", argc, argv);
        fd_machine_record_write(&machine, csv.file, "# ");
        write_csv(all, csv.file);
        if (fd_csv_commit(&csv, why, sizeof why) != FD_OK) {
            goto done;
        }
    }
    const int64_t unseen = count_unseen(all), passed = (int64_t)FD_NUM_FAULTS * FD_CURVE_DTYPES - unseen;
    printf("%lld passed, %lld failed, 0 skipped\n", (long long)passed, (long long)unseen);
    exit_code = fd_exit_code(passed, unseen);
done:
    if (exit_code == FD_EXIT_USAGE) {
        fprintf(stderr, "curves: %s\n", why);
    }
    fd_csv_discard(&csv);
    free(all);
    return exit_code;
}
