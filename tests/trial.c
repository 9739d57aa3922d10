/* trial.c: the lines of `flashdecode check`: kept, printed, counted. */
#include "trial.h"

#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "text.h"

#define FAILURES_SHOWN 8 /* the rest is counted */
#define SKIPS_SHOWN 8    /* reasons */

static const char *const tiers[] = {"none", "exact", "proved", "statistical", "metamorphic"};

const char *fd_tier_name(int32_t tier)
{
    return tiers[tier];
}

enum fd_tier fd_tier_named(const char *name)
{
    for (int t = FD_TIER_EXACT; t <= FD_TIER_METAMORPHIC; t++) {
        if (strcmp(name, tiers[t]) == 0) {
            return (enum fd_tier)t;
        }
    }
    return FD_TIER_NONE;
}

const char *fd_verdict_name(int32_t verdict)
{
    static const char *const verdicts[] = {"pass", "fail", "expected-failure", "skip"};
    return verdicts[verdict];
}

static bool known(const fd_trial_line *line)
{
    return line->standing == FD_STANDING_KNOWN;
}

/* Known failures are neither: they are counted with what was skipped. */
static int64_t count_of(const fd_trial *trial, bool failed, bool skipped)
{
    int64_t n = 0;
    for (int32_t i = 0; i < trial->count; i++) {
        const fd_trial_line *line = &trial->lines[i];
        n += (line->verdict == FD_FAIL && !known(line)) == failed &&
             (line->verdict == FD_SKIP || known(line)) == skipped;
    }
    return n;
}

static void print_failure(fd_trial *trial, const fd_trial_line *line)
{
    printf("FAIL %s: %s\n     tier: %s   case: %s\n", fd_trial_name(trial), line->reason, fd_tier_name(line->tier),
           line->name);
    if (line->standing == FD_STANDING_WORSE) {
        printf("     baseline: %s\n", line->against);
    }
    if (line->detail[0] != '\0') {
        printf("     %s\n", line->detail);
    }
    if (line->tier == FD_TIER_PROVED && strcmp(trial->under, line->declared) != 0) {
        snprintf(trial->under, sizeof trial->under, "%s", line->declared);
        printf("     under: %s; the declaration or the kernel is wrong\n", line->declared);
    }
    if (line->looks_like[0] != '\0') {
        printf("     %s\n", line->looks_like);
    }
    if (line->replay[0] != '\0') {
        printf("     replay: %s\n", line->replay);
    }
}

fd_status fd_trial_keep(fd_trial *trial, const fd_trial_line *line)
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
    fd_trial_line *kept = &trial->lines[trial->count++];
    char *const texts[] = {kept->name, kept->reason, kept->looks_like, kept->replay, kept->notes};
    *kept = *line;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fd_text_clean(texts[i]); /* names of files, words of plug-ins, either cut anywhere */
    }
    return FD_OK;
}

void fd_trial_replay(char *text, size_t n, const char *target, const char *options, const char *case_name)
{
    char word[FD_TEXT_WORD];
    const bool named = case_name != NULL;
    snprintf(text, n, "%s check %s%s%s%s%s%s", fd_program, fd_text_word(target, word), options[0] != '\0' ? " " : "",
             options, named ? " --case '" : "", named ? case_name : "", named ? "'" : "");
}

fd_status fd_trial_add(fd_trial *trial, const fd_trial_line *added, const char *detail)
{
    fd_status status = fd_trial_keep(trial, added);
    if (status != FD_OK) {
        return status;
    }
    fd_trial_line *line = &trial->lines[trial->count - 1];
    snprintf(line->detail, sizeof line->detail, "%s", detail != NULL ? detail : "");
    fd_text_clean(line->detail);
    if (trial->baseline != NULL) {
        fd_baseline_hold(trial->baseline, trial->options.growth, line);
    }
    if (line->verdict == FD_FAIL && !known(line) &&
        (count_of(trial, true, false) <= FAILURES_SHOWN || trial->options.case_name)) {
        fd_progress("", 1, 1);
        print_failure(trial, line);
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

/* What became of the baseline's verdicts; those that are fixed by name, for they want a new baseline. */
static void print_standings(const fd_trial *trial)
{
    int32_t counts[FD_STANDING_WORSE + 1] = {0};
    for (int32_t i = 0; i < trial->count; i++) {
        const fd_trial_line *line = &trial->lines[i];
        counts[line->standing]++;
        if (line->standing == FD_STANDING_FIXED && counts[FD_STANDING_FIXED] <= FAILURES_SHOWN) {
            printf("   passes now: %s\n", line->name);
        }
        if (known(line) && counts[FD_STANDING_KNOWN] <= FAILURES_SHOWN) {
            printf("   known: %s: %s\n", line->name, line->reason);
        }
    }
    printf(
        "   against the baseline: %d worse, %d known failures (counted as skipped), %d pass now, %d not asked for this "
        "time\n",
        counts[FD_STANDING_WORSE], counts[FD_STANDING_KNOWN], counts[FD_STANDING_FIXED],
        fd_baseline_unmet(trial->baseline));
    if (fd_baseline_machine(trial->baseline)[0] != '\0') {
        printf("   the baseline is of another machine: %s\n", fd_baseline_machine(trial->baseline));
    }
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

static void print_times(const fd_trial *trial)
{
    for (int32_t i = 0; i < trial->count; i++) {
        const fd_trial_time *t = &trial->lines[i].time;
        if (t->repeats > 0) {
            printf("   %s: %.3g ms, %.4gx the reading of k and v (half of %d runs: %.4gx to %.4gx)",
                   trial->lines[i].name, 1e-6 * t->ns_median, t->over_median, t->repeats, t->over_p25, t->over_p75);
            if (t->rung_over > 0.0) {
                printf("; rung 05 %.4gx", t->rung_over);
            }
            putchar('\n');
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
    printf("\n%s (%s)\n", fd_trial_name(trial), trial->place);
    if (worst != NULL) {
        printf("   largest error of o over its proved bound: %.4g, on %s\n   given: %s\n", worst->ratio, worst->name,
               worst->declared);
    }
    print_skips(trial);
    if (trial->unasked[0] != '\0') {
        printf("   not judged: it takes %s, and no case has that\n", trial->unasked);
    }
    print_notes(trial);
    print_times(trial);
    if (failed > 0 && trial->over_all[0] != '\0') {
        printf("   over all failures it %s\n", trial->over_all);
    }
    if (failed > FAILURES_SHOWN && trial->options.case_name == NULL) {
        printf("   %d of %lld failures shown; --csv FILE lists them, --case NAME shows one\n", FAILURES_SHOWN, failed);
    }
    if (trial->not_run > 0) {
        printf("   %lld not run: %s\n", (long long)trial->not_run, trial->not_run_why);
    }
    if (trial->baseline != NULL) {
        print_standings(trial);
    }
    printf("%lld passed, %lld failed, %lld skipped\n", (long long)count_of(trial, false, false), failed,
           skipped + (long long)trial->not_run);
}

int fd_trial_exit_code(const fd_trial *trial)
{
    int64_t passed = count_of(trial, false, false);
    for (int32_t i = 0; i < trial->count; i++) {
        passed += known(&trial->lines[i]); /* it ran */
    }
    return fd_exit_code(passed, count_of(trial, true, false));
}

void fd_trial_free(fd_trial *trial)
{
    free(trial->lines);
    fd_baseline_free(trial->baseline);
    *trial = (fd_trial){.lines = NULL};
}
