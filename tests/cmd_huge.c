/* `flashdecode huge`: every rung past 2^31 elements and 2^32 bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "csv.h"
#include "execute.h"
#include "huge.h"
#include "huge_cases.h"
#include "ladder.h"
#include "machine.h"
#include "options.h"

static const char usage[] = "usage: flashdecode huge [--rung N] [--where PLACE] [--csv FILE]\n"
                            "Runs rungs where an offset in 32 bits leads somewhere else: small problems whose\n"
                            "rows lie gibibytes apart, which any machine has the addresses for, and on a GPU\n"
                            "caches and workspaces of more than 2^31 elements. Judged bit for bit.\n\n"
                            "  --rung N       only this rung (repeatable)\n"
                            "  --where PLACE  only rungs that run there: cpu, emu or gpu\n"
                            "  --csv FILE     one line a rung and problem\n"
                            "  --help\n\n"
                            "Exit code: 0 all pass (skips are counted), 1 a failure, 2 usage or bad input, 77\n"
                            "nothing could run.\n";

typedef struct session {
    const char *where, *csv_path;
    int64_t rungs[FD_LIST_MAX];
    int num_rungs;
    FILE *csv;
    int64_t passed, failed, skipped;
} session;

static int parse(int argc, char **argv, session *s)
{
    const fd_option table[] = {
        fd_opt_rungs(s->rungs, &s->num_rungs),
        fd_opt_where(&s->where),
        fd_opt_text("csv", &s->csv_path),
        {.name = NULL},
    };
    return fd_options_parse(argc, argv, usage, table);
}

static void add(session *s, const fd_rung *rung, const char *problem, const fd_huge_outcome *out)
{
    static const char *const verdicts[] = {"pass", "fail", "expected-failure", "skip"};
    s->passed += out->verdict == FD_PASS;
    s->failed += out->verdict == FD_FAIL;
    s->skipped += out->verdict == FD_SKIP;
    if (out->verdict == FD_FAIL) {
        fd_progress("", 1, 1);
        printf("FAIL %02d %s, %s: %s\n     replay: %s huge --rung %d\n", rung->number, rung->name, problem, out->reason,
               fd_program, rung->number);
    }
    if (s->csv != NULL) {
        fprintf(s->csv, "%d,%s,", rung->number, fd_where(rung));
        fd_csv_field(s->csv, problem);
        fprintf(s->csv, ",%lld,%lld,%s,", (long long)out->elements, (long long)out->bytes, verdicts[out->verdict]);
        fd_csv_field(s->csv, out->reason);
        fputc('\n', s->csv);
    }
}

/* One line a rung, and the first skip that a lack of memory, not the rung, is the reason for. */
static fd_status run_rung(session *s, const fd_rung *rung, char *why, size_t n)
{
    const int64_t passed = s->passed, failed = s->failed, skipped = s->skipped;
    char problem[160], reason[240] = "";
    fd_huge_outcome out;
    fd_status status = FD_OK;
    for (int i = 0; i < fd_huge_case_count * FD_HUGE_AXES && status == FD_OK; i++) {
        const fd_case *c = &fd_huge_cases[i / FD_HUGE_AXES];
        const enum fd_huge_axis axis = (enum fd_huge_axis)(i % FD_HUGE_AXES);
        if (!fd_huge_has_axis(c, axis)) {
            continue;
        }
        snprintf(problem, sizeof problem, "far %s: %s", fd_huge_axis_names[axis], c->name);
        fd_progress(problem, i, fd_huge_case_count * FD_HUGE_AXES);
        status = fd_huge_far(rung, c, axis, &out, why, n);
        if (status == FD_OK) {
            add(s, rung, problem, &out);
            snprintf(reason, sizeof reason, "%s", out.verdict == FD_SKIP ? out.reason : reason);
        }
    }
    for (int i = 0; i < fd_huge_dense_count && status == FD_OK && strcmp(fd_where(rung), "gpu") == 0; i++) {
        fd_progress(fd_huge_denses[i].name, i, fd_huge_dense_count);
        status = fd_huge_dense(rung, &fd_huge_denses[i], &out, why, n);
        if (status == FD_OK) {
            add(s, rung, fd_huge_denses[i].name, &out);
            snprintf(reason, sizeof reason, "%s", out.verdict == FD_SKIP ? out.reason : reason);
        }
    }
    fd_progress("", 1, 1);
    printf("%02d %-18s %s %4lld pass %3lld fail %4lld skip%s%s\n", rung->number, rung->name, fd_where(rung),
           (long long)(s->passed - passed), (long long)(s->failed - failed), (long long)(s->skipped - skipped),
           reason[0] != '\0' ? "; last skip: " : "", reason);
    return status;
}

int fd_cmd_huge(int argc, char **argv)
{
    session s = {.where = NULL};
    fd_csv csv = {.file = NULL};
    char why[1280] = "";
    const int parsed = parse(argc, argv, &s);
    if (parsed >= 0) {
        return parsed;
    }
    fd_status status = s.csv_path != NULL ? fd_csv_open(&csv, s.csv_path, why, sizeof why) : FD_OK;
    if (csv.file != NULL) {
        fd_machine_record record;
        fd_machine_record_read(&record, "flashdecode", argc, argv);
        fd_machine_record_write(&record, csv.file, "# ");
        fputs("rung,where,problem,elements,bytes,verdict,reason\n", csv.file);
        s.csv = csv.file;
    }
    fd_limit_emulation(0);
    for (int k = 0; k < fd_ladder_count && status == FD_OK; k++) {
        const fd_rung *rung = fd_ladder[k];
        const char *where = fd_where(rung);
        if (!fd_in_list(s.rungs, s.num_rungs, rung->number) || (s.where != NULL && strcmp(s.where, where) != 0)) {
            continue;
        }
        if (strcmp(where, "-") == 0) {
            (void)fd_device_for(rung, why, sizeof why);
            printf("%02d %-18s -    not run: %s\n", rung->number, rung->name, why);
            s.skipped++;
            why[0] = '\0';
            continue;
        }
        status = run_rung(&s, rung, why, sizeof why);
    }
    if (status == FD_OK && csv.file != NULL) {
        status = fd_csv_commit(&csv, why, sizeof why);
    }
    fd_csv_discard(&csv);
    if (status != FD_OK) {
        fprintf(stderr, "huge: %s\n", why);
        return FD_EXIT_USAGE;
    }
    printf("%lld passed, %lld failed, %lld skipped\n", (long long)s.passed, (long long)s.failed, (long long)s.skipped);
    return fd_exit_code(s.passed, s.failed);
}
