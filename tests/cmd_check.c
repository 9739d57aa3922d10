/* `flashdecode check`: judge a plug-in or tensors. */
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claims_options.h"
#include "commands.h"
#include "csv.h"
#include "parse.h"
#include "trial.h"

#define CLAIM 256 /* getopt's value of the first claims option */
#define CLAIMS_MAX 32

static const char usage[] = "usage: flashdecode check TARGET [options]\n"
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
                            "What TARGET says of its own arithmetic, in place of what it declares itself:\n\n";

static const char usage_end[] = "\nExit code: 0 all pass (skips are counted), 1 a verdict against TARGET (a crash\n"
                                "or a hang included), 2 usage or bad input, 77 nothing could run.\n";

static bool take_level(const char *name, fd_trial_options *o)
{
    static const struct {
        const char *name;
        enum fd_tier lowest, highest;
    } levels[] = {{"exact", FD_TIER_EXACT, FD_TIER_EXACT},
                  {"proved", FD_TIER_EXACT, FD_TIER_PROVED},
                  {"statistical", FD_TIER_EXACT, FD_TIER_STATISTICAL},
                  {"metamorphic", FD_TIER_METAMORPHIC, FD_TIER_METAMORPHIC},
                  {"all", FD_TIER_EXACT, FD_TIER_METAMORPHIC}};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        if (strcmp(name, levels[i].name) == 0) {
            o->lowest = levels[i].lowest;
            o->highest = levels[i].highest;
            return true;
        }
    }
    return false;
}

static bool take_growth(const char *text, double *growth)
{
    char *end;
    *growth = strtod(text, &end);
    return *text != '\0' && *end == '\0' && *growth >= 1.0 && *growth < HUGE_VAL;
}

/* -1: go on; else the exit code, and everything is said. */
static int parse(int argc, char **argv, fd_trial_options *o)
{
    static const struct option longs[] = {{"smoke", no_argument, NULL, 'k'},
                                          {"size", required_argument, NULL, 's'},
                                          {"case", required_argument, NULL, 'c'},
                                          {"family", required_argument, NULL, 'f'},
                                          {"level", required_argument, NULL, 'l'},
                                          {"seconds", required_argument, NULL, 't'},
                                          {"megabytes", required_argument, NULL, 'm'},
                                          {"sanitize", no_argument, NULL, 'z'},
                                          {"csv", required_argument, NULL, 'o'},
                                          {"junit", required_argument, NULL, 'j'},
                                          {"baseline", required_argument, NULL, 'b'},
                                          {"growth", required_argument, NULL, 'g'},
                                          {"time", no_argument, NULL, 'T'},
                                          {"name", required_argument, NULL, 'n'},
                                          {"help", no_argument, NULL, 'h'}};
    enum { OWN = sizeof longs / sizeof *longs };
    struct option all[OWN + CLAIMS_MAX + 1] = {{0}};
    char why[200] = "";
    memcpy(all, longs, sizeof longs);
    for (int k = 0; k < CLAIMS_MAX && fd_claims_option_names[k] != NULL; k++) {
        all[OWN + k] = (struct option){fd_claims_option_names[k], required_argument, NULL, CLAIM + k};
    }
    *o = (fd_trial_options){.size = FD_SMALL,
                            .lowest = FD_TIER_EXACT,
                            .highest = FD_TIER_METAMORPHIC,
                            .claims = fd_claims_none(),
                            .seconds = 10,
                            .megabytes = 4096,
                            .growth = 2.0,
                            .argc = argc,
                            .argv = argv};
    for (int c; (c = getopt_long(argc, argv, "h", all, NULL)) != -1;) {
        int32_t number = 0;
        int size = 0;
        switch (c) {
        case 'k':
            o->smoke = true;
            break;
        case 's':
            if (!fd_parse_size("check", optarg, &size)) {
                return FD_EXIT_USAGE;
            }
            o->size = size;
            break;
        case 'c':
            o->case_name = optarg;
            break;
        case 'f':
            o->family = optarg;
            break;
        case 'l':
            if (!take_level(optarg, o)) {
                fprintf(stderr, "check: no level '%s': exact, proved, statistical, metamorphic or all\n", optarg);
                return FD_EXIT_USAGE;
            }
            break;
        case 't':
            if (!fd_parse_number("check", "--seconds", optarg, 1, INT_MAX, &o->seconds)) {
                return FD_EXIT_USAGE;
            }
            break;
        case 'm':
            if (!fd_parse_number("check", "--megabytes", optarg, 0, INT_MAX, &number)) {
                return FD_EXIT_USAGE;
            }
            o->megabytes = number;
            break;
        case 'z':
            o->sanitize = true;
            break;
        case 'T':
            o->time = true;
            break;
        case 'n':
            o->name = optarg;
            break;
        case 'o':
            o->csv = optarg;
            break;
        case 'j':
            o->junit = optarg;
            break;
        case 'b':
            o->baseline = optarg;
            break;
        case 'g':
            if (!take_growth(optarg, &o->growth)) {
                fprintf(stderr, "check: --growth %s: a number from 1\n", optarg);
                return FD_EXIT_USAGE;
            }
            break;
        case 'h':
            printf("%s%s%s", usage, fd_claims_options_help, usage_end);
            return FD_EXIT_PASS;
        default:
            if (c < CLAIM) {
                fputs(usage, stderr);
                return FD_EXIT_USAGE;
            }
            o->declared = true;
            if (fd_claims_option(fd_claims_option_names[c - CLAIM], optarg, &o->claims, why, sizeof why) != FD_OK) {
                fprintf(stderr, "check: %s\n", why);
                return FD_EXIT_USAGE;
            }
        }
    }
    if (fd_claims_options_check(&o->claims, why, sizeof why) != FD_OK) {
        fprintf(stderr, "check: %s\n", why);
        return FD_EXIT_USAGE;
    }
    if (optind + 1 != argc) {
        fprintf(stderr, "check: %s; see --help\n", optind == argc ? "names no target" : "more than one target");
        return FD_EXIT_USAGE;
    }
    o->target = argv[optind];
    return -1;
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

int fd_cmd_check(int argc, char **argv)
{
    fd_trial trial = {.lines = NULL};
    char why[512] = "";
    const int parsed = parse(argc, argv, &trial.options);
    if (parsed >= 0) {
        return parsed;
    }
    const fd_trial_options *o = &trial.options;
    fd_status status = fd_csv_check(o->csv, why, sizeof why);
    status = status == FD_OK ? fd_csv_check(o->junit, why, sizeof why) : status;
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
