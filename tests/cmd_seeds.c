/* `flashdecode seeds`: right rungs on random instances, and how far out they come. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "csv.h"
#include "gen.h"
#include "ladder.h"
#include "machine.h"
#include "options.h"
#include "seeds.h"
#include "sigma.h"

#define MAX_RUNGS 64
#define SEEDS_MAX 1000000000
#define STREAM 77 /* of the numbers that choose an instance's shape */

/* ---- Instances --------------------------------------------------------------------------------- */

typedef struct dice {
    uint64_t seed, rolled;
} dice;

static int32_t roll(dice *d, int32_t sides)
{
    return (int32_t)(fd_random_bits(d->seed, STREAM, d->rolled++) % (uint64_t)sides);
}

/* 1 .. most, small numbers as often as large ones. */
static int32_t roll_size(dice *d, int32_t most)
{
    return 1 + roll(d, 1 + roll(d, most));
}

void fd_seed_case(int64_t seed, fd_case *c)
{
    static const struct {
        const char *family, *argument;
    } families[] = {{"gaussian", ""}, {"gaussian", ""},     {"gaussian", ""},     {"peaky", "8"},
                    {"peaky", "40"},  {"ragged-spike", ""}, {"negative", "-120"}, {"negative", "-46000"}};
    static const int32_t dtypes[][3] = {
        {FD_F32, FD_F32, FD_F32}, {FD_BF16, FD_BF16, FD_BF16}, {FD_F16, FD_F16, FD_F16}, {FD_BF16, FD_BF16, FD_F32}};
    dice d = {.seed = (uint64_t)seed + 1};
    const int f = roll(&d, 8), types = roll(&d, 4);
    *c = (fd_case){.dtype_q = dtypes[types][0], .dtype_kv = dtypes[types][1], .dtype_o = dtypes[types][2]};
    c->batch = 1 + (roll(&d, 4) == 0);
    c->heads_kv = 1 + (roll(&d, 4) == 0);
    c->heads_q = c->heads_kv * (1 + roll(&d, 2) * roll(&d, 3));
    c->head_dim = roll_size(&d, 32);
    c->head_dim_v = roll(&d, 4) == 0 ? roll_size(&d, 32) : c->head_dim;
    for (int32_t b = 0; b < c->batch; b++) {
        c->kv_lens[b] = b > 0 && roll(&d, 8) == 0 ? 0 : roll_size(&d, 400);
        c->kv_len = c->kv_lens[b] > c->kv_len ? c->kv_lens[b] : c->kv_len;
    }
    c->split_size = roll(&d, 3) == 0 ? 0 : roll_size(&d, 128);
    c->layout = roll(&d, 4) == 0 ? FD_LAYOUT_BHSD : FD_LAYOUT_BSHD;
    c->seed = fd_random_bits(d.seed, STREAM, d.rolled);
    snprintf(c->name, sizeof c->name, "seed %lld", (long long)seed);
    snprintf(c->family, sizeof c->family, "%s", families[f].family);
    snprintf(c->argument, sizeof c->argument, "%s", families[f].argument);
}

/* ---- Judging ----------------------------------------------------------------------------------- */

static void add(fd_seed_tally *t, int64_t seed, const fd_outcome *out)
{
    t->instances += out->verdict != FD_SKIP;
    t->failed += out->verdict == FD_FAIL;
    t->judged += out->z_judged;
    t->squares += out->z_squares;
    for (int k = 0; k < FD_Z_LEVELS; k++) {
        t->above[k] += out->z_above[k];
    }
    /* Ties go to the lower seed, so that the result does not depend on the threads. */
    if (out->z_judged > 0 && (out->z_max > t->z || (out->z_max == t->z && seed < t->z_seed) || t->z_seed < 0)) {
        t->z = out->z_max;
        t->z_seed = seed;
    }
    if (out->z_judged > 0 &&
        (out->z_lse > t->z_lse || (out->z_lse == t->z_lse && seed < t->z_lse_seed) || t->z_lse_seed < 0)) {
        t->z_lse = out->z_lse;
        t->z_lse_seed = seed;
    }
}

static fd_status judge_seed(int64_t seed, const fd_rung *const *rungs, int num_rungs, const fd_rounding *rounding,
                            fd_seed_tally *tallies, char *why, size_t n)
{
    fd_case c;
    fd_instance instance;
    fd_outcome outcomes[MAX_RUNGS];
    fd_seed_case(seed, &c);
    fd_status status = fd_instance_create(&instance, &c, why, n);
    if (status != FD_OK) {
        return status;
    }
    status = fd_judge(&instance, rungs, num_rungs, rounding, outcomes, why, n);
    for (int k = 0; k < num_rungs && status == FD_OK; k++) {
#pragma omp critical(fd_seeds)
        {
            add(&tallies[k], seed, &outcomes[k]);
            if (outcomes[k].verdict == FD_FAIL) {
                char replay[280];
                snprintf(replay, sizeof replay, "%s seeds --first %lld --count 1; rung %02d on", fd_program,
                         (long long)seed, rungs[k]->number);
                fd_print_failure(&c, &outcomes[k], NULL, replay);
            }
        }
    }
    fd_outcomes_free(outcomes, num_rungs);
    fd_instance_free(&instance);
    return status;
}

fd_status fd_seeds_run(int64_t first, int64_t count, const fd_rung *const *rungs, int num_rungs,
                       const fd_rounding *rounding, fd_seed_tally *tallies, char *why, size_t n)
{
    fd_status status = FD_OK;
    int64_t done = 0;
    for (int k = 0; k < num_rungs; k++) {
        tallies[k] = (fd_seed_tally){.z_seed = -1, .z_lse_seed = -1};
    }
#pragma omp parallel for schedule(dynamic, 4)
    for (int64_t i = 0; i < count; i++) {
        char reason[200] = "";
        const fd_status mine = judge_seed(first + i, rungs, num_rungs, rounding, tallies, reason, sizeof reason);
#pragma omp critical(fd_seeds)
        {
            if (mine != FD_OK && status == FD_OK) {
                status = mine;
                snprintf(why, n, "%s", reason);
            }
            if (++done % 50 == 0) {
                fd_progress("seeds", done, count);
            }
        }
    }
    fd_progress("seeds", 1, 1);
    return status;
}

/* ---- The command ------------------------------------------------------------------------------- */

static const char usage[] = "usage: flashdecode seeds [options]\n"
                            "Judges the rungs of the ladder on small random instances, and counts how far out\n"
                            "they come, in standard deviations of the sigma model, beside what independent\n"
                            "normal errors would do.\n\n"
                            "  --count N    instances (default 10000)\n"
                            "  --first N    the first seed (default 0)\n"
                            "  --csv FILE   one line a rung\n"
                            "  --help\n\n"
                            "Exit code: 0 none above 6 standard deviations and no other failure, 1 some, 2\n"
                            "usage or bad input.\n";

/* P(|x| > z), x normal. */
static double tail(double z)
{
    return erfc(z / sqrt(2.0));
}

static void report(const fd_rung *const *rungs, const fd_seed_tally *tallies, int count, FILE *csv)
{
    printf("\nrung                 instances    values  failed  rms z  largest z of o (seed)  of lse (seed)\n");
    for (int k = 0; k < count; k++) {
        const fd_seed_tally *t = &tallies[k];
        printf("%02d %-15s %12lld %9lld %7lld  %5.2f  %5.2f (%lld)  %5.2f (%lld)\n   above", rungs[k]->number,
               rungs[k]->name, (long long)t->instances, (long long)t->judged, (long long)t->failed,
               sqrt(t->squares / fmax((double)t->judged, 1.0)), t->z, (long long)t->z_seed, t->z_lse,
               (long long)t->z_lse_seed);
        for (int x = 0; x < FD_Z_LEVELS; x++) {
            printf("  %d: %lld (%.3g)", FD_Z_FROM + x, (long long)t->above[x], (double)t->judged * tail(FD_Z_FROM + x));
        }
        printf("\n");
        if (csv != NULL) {
            fprintf(csv, "%d,", rungs[k]->number);
            fd_csv_field(csv, rungs[k]->name);
            fprintf(csv, ",%lld,%lld,%lld,%.4g,%.6g,%lld,%.6g,%lld", (long long)t->instances, (long long)t->failed,
                    (long long)t->judged, sqrt(t->squares / fmax((double)t->judged, 1.0)), t->z, (long long)t->z_seed,
                    t->z_lse, (long long)t->z_lse_seed);
            for (int x = 0; x < FD_Z_LEVELS; x++) {
                fprintf(csv, ",%lld,%.6g", (long long)t->above[x], (double)t->judged * tail(FD_Z_FROM + x));
            }
            fprintf(csv, "\n");
        }
    }
    printf("above 3, 4, 5, 6 standard deviations: how many values, and (how many a normal distribution would have)\n");
}

/* A whole number least .. 10^9. */
int fd_cmd_seeds(int argc, char **argv)
{
    const char *csv_path = NULL;
    int64_t first = 0, count = 10000;
    const fd_option table[] = {fd_opt_long("count", &count, 1, SEEDS_MAX),
                               fd_opt_long("first", &first, 0, SEEDS_MAX),
                               fd_opt_text("csv", &csv_path),
                               {.name = NULL}};
    const int parsed = fd_options_parse(argc, argv, usage, table);
    if (parsed >= 0) {
        return parsed;
    }

    const int num_rungs = fd_ladder_cpu_count < MAX_RUNGS ? fd_ladder_cpu_count : MAX_RUNGS;
    fd_seed_tally tallies[MAX_RUNGS];
    char why[256] = "";
    fd_csv csv = {0};
    int exit_code = FD_EXIT_USAGE;
    if (csv_path != NULL && fd_csv_open(&csv, csv_path, why, sizeof why) != FD_OK) {
        goto done;
    }
    const fd_libm_error libm = fd_libm_error_get(NULL);
    const fd_rounding rounding = fd_host_rounding(&libm);
    fd_print_hypotheses(&libm);
    if (fd_seeds_run(first, count, fd_ladder, num_rungs, &rounding, tallies, why, sizeof why) != FD_OK) {
        goto done;
    }
    if (csv_path != NULL) {
        fd_machine_record machine;
        fd_machine_record_read(&machine, "flashdecode", argc, argv);
        fd_machine_record_write(&machine, csv.file, "# ");
        fprintf(csv.file, "# seeds: %lld from %lld; judge %d, sigma %d\n", (long long)count, (long long)first,
                FD_JUDGE_VERSION, FD_SIGMA_VERSION);
        fputs("rung,name,instances,failed,values,z_rms,z_max,z_seed,z_lse,z_lse_seed,above_3,normal_3,above_4,normal_4,"
              "above_5,"
              "normal_5,above_6,normal_6\n",
              csv.file);
    }
    report(fd_ladder, tallies, num_rungs, csv.file);
    if (csv_path != NULL && fd_csv_commit(&csv, why, sizeof why) != FD_OK) {
        goto done;
    }
    int64_t passed = 0, failed = 0;
    for (int k = 0; k < num_rungs; k++) {
        passed += tallies[k].instances - tallies[k].failed;
        failed += tallies[k].failed;
    }
    printf("%lld passed, %lld failed, %lld skipped\n", (long long)passed, (long long)failed,
           (long long)(count * num_rungs - passed - failed));
    exit_code = fd_exit_code(passed, failed);
    why[0] = '\0';
done:
    if (why[0] != '\0') {
        fprintf(stderr, "seeds: %s\n", why);
    }
    fd_csv_discard(&csv);
    return exit_code;
}
