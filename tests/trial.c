/* trial.c: the lines of `flashdecode check`: kept, printed, counted. */
#include "trial.h"

#include <stdlib.h>
#include <string.h>

#include "commands.h"

#define FAILURES_SHOWN 8 /* the rest is counted */
#define SKIPS_SHOWN 8    /* reasons */

static int64_t count_of(const fd_trial *trial, bool failed, bool skipped)
{
    int64_t n = 0;
    for (int32_t i = 0; i < trial->count; i++) {
        n += (trial->lines[i].verdict == FD_FAIL) == failed && (trial->lines[i].verdict == FD_SKIP) == skipped;
    }
    return n;
}

static void print_failure(const fd_trial *trial, const fd_trial_line *line, const char *detail)
{
    static const char *const tiers[] = {"none", "exact", "proved", "statistical", "metamorphic"};
    printf("FAIL %s: %s\n     tier: %s   case: %s\n", trial->implementation, line->reason, tiers[line->tier],
           line->name);
    if (detail != NULL && detail[0] != '\0') {
        printf("     %s\n", detail);
    }
    if (line->tier == FD_TIER_PROVED) {
        printf("     under: %s; the declaration or the kernel is wrong\n", line->declared);
    }
    if (line->looks_like[0] != '\0') {
        printf("     %s\n", line->looks_like);
    }
    if (line->replay[0] != '\0') {
        printf("     replay: %s\n", line->replay);
    }
}

fd_status fd_trial_add(fd_trial *trial, const fd_trial_line *line, const char *detail)
{
    if (trial->count == trial->capacity) {
        const int32_t capacity = trial->capacity > 0 ? 2 * trial->capacity : 256;
        fd_trial_line *lines = realloc(trial->lines, (size_t)capacity * sizeof *lines);
        if (lines == NULL) {
            return FD_NO_MEMORY;
        }
        trial->lines = lines;
        trial->capacity = capacity;
    }
    trial->lines[trial->count++] = *line;
    if (line->verdict == FD_FAIL && (count_of(trial, true, false) <= FAILURES_SHOWN || trial->options.case_name)) {
        fd_progress("", 1, 1);
        print_failure(trial, line, detail);
    }
    return FD_OK;
}

void fd_trial_line_of(const fd_outcome *out, fd_trial_line *line)
{
    *line = (fd_trial_line){.verdict = out->verdict,
                            .tier = out->tier,
                            .err_max = out->err_max,
                            .err_p50 = out->err_p50,
                            .bound = out->bound,
                            .ratio = out->ratio,
                            .lse_err = out->lse_err,
                            .lse_ratio = out->lse_ratio,
                            .z_max = out->z_max,
                            .z_lse = out->z_lse,
                            .vacuous = out->vacuous,
                            .undecided = out->undecided,
                            .seconds = -1.0};
    snprintf(line->reason, sizeof line->reason, "%s", out->reason);
    snprintf(line->declared, sizeof line->declared, "%s", out->declared);
}

/* The same reason, whatever numbers it names? */
static bool same_reason(const char *x, const char *y)
{
    const char *const digits = "0123456789";
    while (*x != '\0' && *y != '\0') {
        x += strspn(x, digits);
        y += strspn(y, digits);
        if (*x != *y) {
            return false;
        }
        x += *x != '\0';
        y += *y != '\0';
    }
    return *x == *y;
}

/* Each reason once, with its count and its first case. */
static void print_skips(const fd_trial *trial)
{
    int32_t reasons = 0, rest = 0;
    for (int32_t i = 0; i < trial->count; i++) {
        const fd_trial_line *line = &trial->lines[i];
        int32_t same = 0, first = i;
        for (int32_t k = 0; line->verdict == FD_SKIP && k < trial->count; k++) {
            const bool alike = trial->lines[k].verdict == FD_SKIP && same_reason(trial->lines[k].reason, line->reason);
            first = alike && k < first ? k : first;
            same += alike;
        }
        if (same > 0 && first == i && reasons++ < SKIPS_SHOWN) {
            printf("   skipped %d: %s (first: %s)\n", same, line->reason, line->name);
        } else if (same > 0 && first == i) {
            rest += same;
        }
    }
    if (rest > 0) {
        printf("   skipped %d for other reasons; --csv FILE lists them\n", rest);
    }
}

/* Each note once, with how many verdicts it holds for. */
static void print_notes(const fd_trial *trial)
{
    for (int32_t i = 0; i < trial->count; i++) {
        const char *note = trial->lines[i].notes;
        int64_t before = 0, all = 0;
        for (int32_t k = 0; k < trial->count; k++) {
            const bool same = strcmp(trial->lines[k].notes, note) == 0;
            all += same;
            before += same && k < i;
        }
        if (note[0] != '\0' && before == 0) {
            printf("   note, %lld of %d: %s\n", (long long)all, trial->count, note);
        }
    }
}

void fd_trial_summary(const fd_trial *trial)
{
    const long long failed = count_of(trial, true, false), skipped = count_of(trial, false, true);
    const fd_trial_line *worst = NULL;
    for (int32_t i = 0; i < trial->count; i++) {
        const fd_trial_line *line = &trial->lines[i];
        if (line->verdict != FD_SKIP && line->declared[0] != '\0' && (worst == NULL || line->ratio > worst->ratio)) {
            worst = line;
        }
    }
    printf("\n%s (%s)\n", trial->implementation, trial->place);
    if (worst != NULL) {
        printf("   largest error of o over its proved bound: %.4g, on %s\n   given: %s\n", worst->ratio, worst->name,
               worst->declared);
    }
    print_skips(trial);
    print_notes(trial);
    if (failed > 0 && trial->over_all[0] != '\0') {
        printf("   over all failures it %s\n", trial->over_all);
    }
    if (failed > FAILURES_SHOWN && trial->options.case_name == NULL) {
        printf("   %d of %lld failures shown; --csv FILE lists them, --case NAME shows one\n", FAILURES_SHOWN, failed);
    }
    if (trial->not_run > 0) {
        printf("   %lld not run: %s\n", (long long)trial->not_run, trial->not_run_why);
    }
    printf("%lld passed, %lld failed, %lld skipped\n", (long long)count_of(trial, false, false), failed,
           skipped + (long long)trial->not_run);
}

int fd_trial_exit_code(const fd_trial *trial)
{
    return fd_exit_code(count_of(trial, false, false), count_of(trial, true, false));
}

void fd_trial_free(fd_trial *trial)
{
    free(trial->lines);
    *trial = (fd_trial){.lines = NULL};
}
