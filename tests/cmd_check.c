/* `flashdecode check`: judge a plug-in or tensors. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claims_options.h"
#include "commands.h"
#include "csv.h"
#include "options.h"
#include "trial.h"

#define OWN_MAX 16 /* options that are not claims, at most */
#define CLAIMS_MAX 32

static const char usage[] =
    "usage: flashdecode check TARGET [options]\n"
    "Judges an implementation that is not of this project. TARGET is one of\n\n"
    "  LIB.so            a plug-in: exports fd_plugin() of fd.h\n"
    "  DIR               tensors of cases: `flashdecode cases DIR` wrote the inputs,\n"
    "                    the implementation added o, and lse\n"
    "  FILE.safetensors  one problem of your own: q, k, v, o, and what describes them\n"
    "                    (tutorials/dumps.md)\n\n"
    "  --smoke           a case of each family, in a few seconds\n"
    "  --size SIZE       small, class or full (default small)\n"
    "  --case NAME       only this case\n"
    "  --family NAME     only this family of cases\n"
    "  --level LEVEL     exact, proved, statistical: tiers up to this one;\n"
    "                    metamorphic: that tier alone; all (default)\n"
    "  --seconds N       that one run of a plug-in may take (default 10)\n"
    "  --megabytes N     of memory that its process may take (default 4096; 0: any)\n"
    "  --sanitize        a GPU plug-in under compute-sanitizer, too\n"
    "  --time            of a plug-in, too: against reading k and v (on a GPU: with\n"
    "                    the program that make gpu builds)\n"
    "  --name NAME       what verdicts call it (default: what it calls itself)\n"
    "  --csv FILE        one line a verdict\n"
    "  --junit FILE      the same as JUnit XML\n"
    "  --baseline FILE   a former --csv: fail on what became worse only\n"
    "  --growth X        an error that has grown by less is not worse (default\n"
    "                    2; 1: the same arithmetic, so the same bits)\n"
    "  --help\n\n"
    "What TARGET says of its own arithmetic, in place of what it declares itself:\n\n" FD_CLAIMS_OPTIONS_HELP
    "\nExit code: 0 all pass (skips are counted), 1 a verdict against TARGET (a crash\n"
    "or a hang included), 2 usage or bad input, 77 nothing could run.\n";

/* What the options are read into, where fd_trial_options has another form. */
typedef struct claims {
    fd_arith *arith;
    bool *declared;
} claims;

static bool take_claim(const char *command, const fd_option *option, const char *text)
{
    const claims *c = option->to[0];
    char why[200];
    if (fd_claims_option(option->name, text, c->arith, why, sizeof why) != FD_OK) {
        fprintf(stderr, "flashdecode %s: %s\n", command, why);
        return false;
    }
    *c->declared = true;
    return true;
}

/* -1: go on; else the exit code, and everything is said. */
static int parse(int argc, char **argv, fd_trial_options *o)
{
    static const char *const levels[] = {"exact", "proved", "statistical", "metamorphic", "all", NULL};
    static const enum fd_tier tiers[][2] = {{FD_TIER_EXACT, FD_TIER_EXACT},
                                            {FD_TIER_EXACT, FD_TIER_PROVED},
                                            {FD_TIER_EXACT, FD_TIER_STATISTICAL},
                                            {FD_TIER_METAMORPHIC, FD_TIER_METAMORPHIC},
                                            {FD_TIER_EXACT, FD_TIER_METAMORPHIC}};
    int32_t level = 4;
    char why[200] = "";
    *o = (fd_trial_options){.size = FD_SMALL,
                            .claims = fd_claims_none(),
                            .seconds = 10,
                            .megabytes = 4096,
                            .growth = 2.0,
                            .argc = argc,
                            .argv = argv};
    claims taken = {&o->claims, &o->declared};
    fd_option table[OWN_MAX + CLAIMS_MAX] = {
        fd_operand(fd_opt_text("TARGET", &o->target)),
        fd_opt_flag("smoke", &o->smoke),
        fd_opt_size(&o->size),
        fd_opt_text("case", &o->case_name),
        fd_opt_text("family", &o->family),
        fd_opt_word("level", &level, levels),
        fd_opt_number("seconds", &o->seconds, 1, INT_MAX),
        fd_opt_long("megabytes", &o->megabytes, 0, INT_MAX),
        fd_opt_flag("sanitize", &o->sanitize),
        fd_opt_flag("time", &o->time),
        fd_opt_text("name", &o->name),
        fd_opt_text("csv", &o->csv),
        fd_opt_text("junit", &o->junit),
        fd_opt_text("baseline", &o->baseline),
        fd_opt_real("growth", &o->growth, 1),
    };
    int own = 0;
    while (table[own].name != NULL) {
        own++;
    }
    for (int k = 0; k < CLAIMS_MAX - 1 && fd_claims_option_names[k] != NULL; k++) {
        table[own + k] = fd_opt_own(fd_claims_option_names[k], take_claim, &taken);
    }
    const int parsed = fd_options_parse(argc, argv, usage, table);
    o->lowest = tiers[level][0];
    o->highest = tiers[level][1];
    if (parsed < 0 && fd_claims_options_check(&o->claims, why, sizeof why) != FD_OK) {
        fprintf(stderr, "flashdecode check: %s\n", why);
        return FD_EXIT_USAGE;
    }
    return parsed;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static fd_status write_files(const fd_trial *trial, char *why, size_t n)
{
    const char *csv = trial->options.csv, *junit = trial->options.junit;
    const fd_status first = csv == NULL ? FD_OK : fd_trial_write_csv(trial, csv, why, n);
    const fd_status second = junit == NULL ? FD_OK : fd_trial_write_junit(trial, junit, why, n);
    return first != FD_OK ? first : second;
}

/* What is written must not be what is read, nor the other thing that is written; a baseline may be replaced by its
 * successor. */
static fd_status check_files(const fd_trial_options *o, char *why, size_t n)
{
    const struct {
        const char *option, *file, *other, *is;
    } pairs[] = {{"csv", o->csv, o->target, "the file to be judged"},
                 {"junit", o->junit, o->target, "the file to be judged"},
                 {"junit", o->junit, o->baseline, "the baseline"},
                 {"junit", o->junit, o->csv, "the --csv file"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (fd_csv_same_file(pairs[i].file, pairs[i].other)) {
            snprintf(why, n, "--%s %.200s is %s; name another file", pairs[i].option, pairs[i].file, pairs[i].is);
            return FD_INVALID;
        }
    }
    const fd_status status = fd_csv_check(o->csv, why, n);
    return status == FD_OK ? fd_csv_check(o->junit, why, n) : status;
}

int fd_cmd_check(int argc, char **argv)
{
    fd_trial trial = {.lines = NULL};
    char why[512] = "";
    const int parsed = parse(argc, argv, &trial.options);
    if (parsed >= 0) {
        return parsed;
    }
    const fd_trial_options *o = &trial.options;
    fd_status status = check_files(o, why, sizeof why);
    if (status == FD_OK && o->time && !ends_with(o->target, ".so")) {
        snprintf(why, sizeof why, "--time is for plug-ins: tensors do not run");
        status = FD_INVALID;
    }
    status = status == FD_OK ? fd_trial_read_baseline(&trial, why, sizeof why) : status;
    if (status == FD_OK) {
        status = ends_with(o->target, ".so") ? fd_trial_plugin(&trial, why, sizeof why)
                                             : fd_trial_dump(&trial, why, sizeof why);
    }
    fd_progress("", 1, 1);
    int exit_code = status == FD_NO_DEVICE ? FD_EXIT_NOTHING : FD_EXIT_USAGE;
    if (status == FD_OK) {
        fd_trial_summary(&trial);
        exit_code = fd_trial_exit_code(&trial);
        status = write_files(&trial, why, sizeof why);
        exit_code = status == FD_OK || exit_code == FD_EXIT_FAIL ? exit_code : FD_EXIT_USAGE;
    }
    if (status != FD_OK) {
        fflush(stdout);
        fprintf(stderr, "check: %s\n", why);
    }
    fd_trial_free(&trial);
    return exit_code;
}
