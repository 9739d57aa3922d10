/* `flashdecode curves`: how small may a fault be before a tier no longer sees it? */
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "csv.h"
#include "gen.h"
#include "machine.h"
#include "parametric.h"
#include "sigma.h"

enum { TIERS = 3, LEVELS = FD_FAULT_BITS + 1, DTYPES = 3 };
static const char *const tier_names[TIERS] = {"exact", "proved", "statistical"};

/* ---- Inputs ------------------------------------------------------------------------------------ */

typedef struct input {
    const char *name, *family, *argument;
    int32_t heads_q, heads_kv, head_dim, kv_len, split_size;
    int32_t most_keys; /* log2 of the longest cache with a key left out */
    bool directed, fp32_only;
} input;

/* Each family at one length; a key is left out of caches of 2^4 keys and more. attained stands for one head of one number. */
static const input inputs[] = {
    {"gaussian", "gaussian", "", 4, 2, 64, 4096, 1024, 16, false, false},
    {"peaky:8", "peaky", "8", 4, 2, 64, 1024, 256, 12, true, false},
    {"ragged-spike", "ragged-spike", "", 4, 2, 64, 1031, 256, 12, true, false},
    {"sink", "sink", "", 4, 2, 64, 1025, 256, 12, true, false},
    {"flat-integer", "flat-integer", "", 4, 2, 64, 1024, 256, 12, true, false},
    {"attained", "attained", "", 1, 1, 1, 1024, 1024, 12, true, true},
};
enum { INPUTS = sizeof inputs / sizeof *inputs };

static fd_case case_of(const input *x, int32_t dtype, int32_t kv_len)
{
    fd_case c = {.dtype_q = dtype,
                 .dtype_kv = dtype,
                 .dtype_o = dtype,
                 .batch = 1,
                 .heads_q = x->heads_q,
                 .heads_kv = x->heads_kv,
                 .head_dim = x->head_dim,
                 .head_dim_v = x->head_dim,
                 .kv_lens = {kv_len},
                 .kv_len = kv_len,
                 .split_size = x->split_size,
                 .seed = 2026};
    snprintf(c.name, sizeof c.name, "curves %s %s n%d", x->name, fd_dtype_name(dtype), kv_len);
    snprintf(c.family, sizeof c.family, "%s", x->family);
    snprintf(c.argument, sizeof c.argument, "%s", x->argument);
    return c;
}

/* ---- One curve: what each tier says at the levels that were asked --------------------------------- */

typedef struct point {
    bool asked, judged[TIERS], detected[TIERS];
    double margin[TIERS]; /* of the tier's line; exact: infinite or 0 */
    double ulp;           /* median error of o, in units of its last place */
} point;

typedef struct curve {
    int32_t least, most; /* levels there are */
    point at[LEVELS];
} curve;

static void record(point *x, const fd_instance *instance, const fd_outcome *out)
{
    const bool failed = out->verdict == FD_FAIL;
    *x = (point){.asked = true, .ulp = out->ulp_p50};
    x->judged[0] = out->exact > 0;
    x->detected[0] = failed && out->tier == FD_TIER_EXACT;
    x->margin[0] = x->detected[0] ? HUGE_VAL : 0.0;
    /* Tier 2 also sees what tier 1 saw first, and so does tier 3. */
    x->judged[1] = true;
    x->margin[1] = fmax(out->ratio, out->lse_ratio);
    x->detected[1] = (failed && out->tier == FD_TIER_PROVED) || x->margin[1] > 1.0;
    x->judged[2] = fd_gen_random_family(&instance->c);
    x->margin[2] = fmax(out->z_max, out->z_lse) / FD_SIGMA_LIMIT;
    x->detected[2] = x->judged[2] && !(x->margin[2] <= 1.0);
}

/* The largest level that the tier detects below the first that it misses; least - 1: none. */
static int32_t detected_to(const curve *c, int tier)
{
    int32_t last = c->least - 1;
    for (int32_t level = c->least; level <= c->most; level++) {
        const point *x = &c->at[level];
        if (x->asked && !x->detected[tier]) {
            break;
        }
        last = x->asked ? level : last;
    }
    return last;
}

static bool is_judged(const curve *c, int tier)
{
    return c->at[c->least].judged[tier];
}

/* Did a smaller fault show where a larger one did not? */
static bool is_monotone(const curve *c, int tier)
{
    const int32_t last = detected_to(c, tier);
    for (int32_t level = last + 1; level <= c->most; level++) {
        if (c->at[level].asked && c->at[level].detected[tier]) {
            return false;
        }
    }
    return true;
}

static void ask(const curve *c, int32_t level, bool *wanted)
{
    wanted[level] = wanted[level] || (level >= c->least && level <= c->most && !c->at[level].asked);
}

/* Bisection: both ends, then the middle between the last level detected and the first missed, then their neighbours,
 * which tell whether the order that a bisection takes for granted is there. */
static void ask_next(const curve *c, bool wanted[LEVELS])
{
    if (!c->at[c->least].asked) {
        ask(c, c->least, wanted);
        ask(c, c->most, wanted);
        return;
    }
    for (int tier = 0; tier < TIERS; tier++) {
        const int32_t last = detected_to(c, tier);
        int32_t missed = last + 1;
        while (missed <= c->most && !c->at[missed].asked) {
            missed++;
        }
        if (!is_judged(c, tier)) {
            continue;
        }
        if (missed - last > 1) {
            ask(c, last + (missed - last) / 2, wanted);
        } else {
            ask(c, last > c->least ? last - 1 : c->least, wanted);
            ask(c, missed < c->most ? missed + 1 : c->most, wanted);
        }
    }
}

/* ---- Judging ------------------------------------------------------------------------------------- */

typedef struct wanted_list {
    int count;
    point *to[FD_PARAMETRIC_SLOTS];
    const fd_rung *rungs[FD_PARAMETRIC_SLOTS];
} wanted_list;

static fd_status judge_list(fd_instance *instance, const wanted_list *list, const fd_rounding *rounding, char *why,
                            size_t n)
{
    fd_outcome outcomes[FD_PARAMETRIC_SLOTS];
    const fd_status status = fd_judge(instance, list->rungs, list->count, rounding, outcomes, why, n);
    for (int k = 0; k < list->count && status == FD_OK; k++) {
        record(list->to[k], instance, &outcomes[k]);
    }
    fd_outcomes_free(outcomes, list->count);
    return status;
}

/* All kinds but the key left out, on one instance, a round of every bisection at a time: the oracle is the dear part. */
static fd_status search(const input *x, int32_t dtype, const fd_rounding *rounding, curve curves[FD_NUM_FAULTS],
                        char *why, size_t n)
{
    const fd_case c = case_of(x, dtype, x->kv_len);
    fd_instance instance;
    fd_status status = fd_instance_create(&instance, &c, why, n);
    if (status != FD_OK) {
        return status;
    }
    for (bool more = true; more && status == FD_OK;) {
        wanted_list list = {.count = 0};
        for (int32_t fault = 0; fault < FD_NUM_FAULTS; fault++) {
            bool wanted[LEVELS] = {false};
            if (fault != FD_FAULT_KEY) {
                ask_next(&curves[fault], wanted);
            }
            for (int32_t level = 0; level < LEVELS && list.count < FD_PARAMETRIC_SLOTS; level++) {
                if (wanted[level]) {
                    list.to[list.count] = &curves[fault].at[level];
                    list.rungs[list.count] = fd_parametric(list.count, fault, level);
                    list.count++;
                }
            }
        }
        more = list.count > 0;
        status = more ? judge_list(&instance, &list, rounding, why, n) : FD_OK;
    }
    fd_instance_free(&instance);
    return status;
}

/* A key left out of 2^level: every level has a cache of its own. */
static fd_status search_keys(const input *x, int32_t dtype, const fd_rounding *rounding, curve *c, char *why, size_t n)
{
    fd_status status = FD_OK;
    for (bool more = true; more && status == FD_OK;) {
        bool wanted[LEVELS] = {false};
        more = false;
        ask_next(c, wanted);
        for (int32_t level = 0; level < LEVELS && status == FD_OK; level++) {
            if (!wanted[level]) {
                continue;
            }
            const fd_case keys = case_of(x, dtype, (int32_t)1 << level);
            const wanted_list list = {1, {&c->at[level]}, {fd_parametric(0, FD_FAULT_KEY, level)}};
            fd_instance instance;
            more = true;
            status = fd_instance_create(&instance, &keys, why, n);
            if (status == FD_OK) {
                status = judge_list(&instance, &list, rounding, why, n);
                fd_instance_free(&instance);
            }
        }
    }
    return status;
}

/* ---- Table and CSV ------------------------------------------------------------------------------- */

typedef curve all_curves[INPUTS][DTYPES][FD_NUM_FAULTS];

/* The furthest of the inputs of one kind, or NULL. */
static const curve *furthest(all_curves *all, int32_t fault, int32_t dtype, int tier, bool directed, const char **name)
{
    const curve *best = NULL;
    for (int x = 0; x < INPUTS; x++) {
        const curve *c = &(*all)[x][dtype][fault];
        if (inputs[x].directed == directed && c->most > 0 && is_judged(c, tier) &&
            (best == NULL || detected_to(c, tier) > detected_to(best, tier))) {
            best = c;
            *name = inputs[x].name;
        }
    }
    return best;
}

/* 2^-12 0.024%; "-": the tier never speaks or sees nothing. */
static void print_cell(const curve *c, int32_t fault, int tier)
{
    const int32_t level = c == NULL ? 0 : detected_to(c, tier);
    char text[24] = "-";
    if (c != NULL && level >= c->least) {
        const char *mark = is_monotone(c, tier) ? "" : "*";
        if (fault == FD_FAULT_KEY) {
            snprintf(text, sizeof text, "1/%ld%s", 1L << level, mark);
        } else {
            snprintf(text, sizeof text, fault == FD_FAULT_SCALE || fault == FD_FAULT_WEIGHTS ? "2^-%d%s" : "%d bits%s",
                     level, mark);
        }
    }
    printf("%10s", text);
}

static void print_table(all_curves *all)
{
    static const char *const letters[DTYPES] = {"fff", "hhh", "bbb"};
    printf("\nThe smallest fault detected            Gaussian            directed\n"
           "fault           dtypes    proved  statist.     exact    proved  statist.   that is  median of o\n");
    for (int32_t fault = 0; fault < FD_NUM_FAULTS; fault++) {
        for (int32_t dtype = 0; dtype < DTYPES; dtype++) {
            const curve *smallest = NULL;
            int32_t level = 0;
            printf("%-15s %-6s", fd_fault_name(fault), letters[dtype]);
            for (int cell = 0; cell < 5; cell++) {
                const int tier = cell < 2 ? cell + 1 : cell - 2;
                const char *name;
                const curve *c = furthest(all, fault, dtype, tier, cell >= 2, &name);
                print_cell(c, fault, tier);
                if (c != NULL && detected_to(c, tier) >= c->least && detected_to(c, tier) > level) {
                    smallest = c;
                    level = detected_to(c, tier);
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
        "last place of its type. *: a smaller fault shows as well, between larger ones that do not. -: never.\n");
}

static void write_csv(all_curves *all, FILE *file)
{
    fputs("fault,dtype,tier,inputs,level,detected,margin\n", file);
    for (int32_t fault = 0; fault < FD_NUM_FAULTS; fault++) {
        for (int32_t dtype = 0; dtype < DTYPES; dtype++) {
            for (int at = 0; at < INPUTS * TIERS; at++) {
                const int x = at / TIERS, tier = at % TIERS;
                const curve *c = &(*all)[x][dtype][fault];
                for (int32_t level = c->least; level <= c->most; level++) {
                    if (c->at[level].asked && c->at[level].judged[tier]) {
                        fprintf(file, "%s,%s,%s,%s,%d,%d,%.6g\n", fd_fault_name(fault), fd_dtype_name(dtype),
                                tier_names[tier], inputs[x].name, level, c->at[level].detected[tier],
                                c->at[level].margin[tier]);
                    }
                }
            }
        }
    }
}

/* Pairs of a kind and dtypes whose grossest fault no tier sees on Gaussian inputs. */
static int64_t count_unseen(all_curves *all)
{
    int64_t unseen = 0;
    for (int32_t fault = 0; fault < FD_NUM_FAULTS; fault++) {
        for (int32_t dtype = 0; dtype < DTYPES; dtype++) {
            const curve *c = &(*all)[0][dtype][fault];
            const point *gross = &c->at[c->least];
            if (!gross->detected[1] && !gross->detected[2]) {
                printf("not detected at all: %s, %s\n", fd_fault_name(fault), fd_dtype_name(dtype));
                unseen++;
            }
        }
    }
    return unseen;
}

static fd_status search_all(const fd_rounding *rounding, all_curves *all, char *why, size_t n)
{
    fd_status status = FD_OK;
    for (int x = 0; x < INPUTS; x++) {
        for (int32_t dtype = 0; dtype < (inputs[x].fp32_only ? 1 : DTYPES) && status == FD_OK; dtype++) {
            curve *curves = (*all)[x][dtype];
            fd_progress("curves", x * DTYPES + dtype, INPUTS * DTYPES);
            for (int32_t fault = 0; fault < FD_NUM_FAULTS; fault++) {
                const bool bits = fault != FD_FAULT_SCALE && fault != FD_FAULT_WEIGHTS;
                curves[fault].least = fault == FD_FAULT_KEY ? 4 : 1;
                curves[fault].most = fault == FD_FAULT_KEY ? inputs[x].most_keys : FD_FAULT_BITS - bits;
            }
            status = search(&inputs[x], dtype, rounding, curves, why, n);
            status = status == FD_OK ? search_keys(&inputs[x], dtype, rounding, &curves[FD_FAULT_KEY], why, n) : status;
        }
    }
    fd_progress("curves", 1, 1);
    return status;
}

/* ---- The command --------------------------------------------------------------------------------- */

static const char usage[] =
    "usage: flashdecode curves [--csv FILE] [--help]\n"
    "Gives rung 05 faults of adjustable size, and finds by bisection the smallest that each tier of the\n"
    "judge detects, on Gaussian and on directed inputs, for fp32, fp16 and bf16.\n\n"
    "Exit code: 0 every fault is seen when it is large, 1 one is not, 2 usage or bad input.\n";

int fd_cmd_curves(int argc, char **argv)
{
    static const struct option longs[] = {
        {"csv", required_argument, NULL, 'o'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    const char *csv_path = NULL;
    for (int c; (c = getopt_long(argc, argv, "h", longs, NULL)) != -1;) {
        if (c == 'o') {
            csv_path = optarg;
        } else {
            fputs(usage, c == 'h' ? stdout : stderr);
            return c == 'h' ? FD_EXIT_PASS : FD_EXIT_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "curves: unexpected argument '%s'; see --help\n", argv[optind]);
        return FD_EXIT_USAGE;
    }

    char why[256] = "no memory for the curves";
    fd_csv csv = {0};
    int exit_code = FD_EXIT_USAGE;
    all_curves *all = calloc(1, sizeof *all);
    if (all == NULL || (csv_path != NULL && fd_csv_open(&csv, csv_path, why, sizeof why) != FD_OK)) {
        goto done;
    }
    const fd_libm_error libm = fd_libm_error_get(NULL);
    const fd_rounding rounding = fd_host_rounding(&libm);
    fd_print_hypotheses(&libm);
    if (search_all(&rounding, all, why, sizeof why) != FD_OK) {
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
    const int64_t unseen = count_unseen(all), passed = (int64_t)FD_NUM_FAULTS * DTYPES - unseen;
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
