/* trial_baseline.c: a check against a former one. What failed before and fails still is known; what passed must pass, with
 * errors that have not grown.
 *
 * The same arithmetic gives the same bits, so without a change an error does not move at all. A change of arithmetic moves
 * the largest error of a case up and down by chance; `growth` says how much of that is tolerated. Below one rounding (of the
 * gauge, for o; of a number of size 8, for lse) nothing is a regression then. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "commands.h"
#include "csv_read.h"
#include "machine.h"
#include "trial.h"

#define LEAST_ERROR 1.0         /* in units of u gauge */
#define LEAST_LSE_ERROR 0x1p-21 /* absolute */

typedef struct fd_baseline {
    fd_csv_table table;
    int32_t group, name, verdict, tier, err_max, lse_err; /* columns */
    int32_t over_median, over_p75, rung_over;             /* -1: a file without times */
    bool *met;                                            /* [rows] */
    int32_t next;                                         /* the row behind the last one found: most likely the next */
    char machine[200];                                    /* another machine, in words; "": this one */
} fd_baseline;

static fd_status refuse(fd_baseline *baseline, const char *path, const char *what, char *why, size_t n)
{
    snprintf(why, n, "%s: %s; make a new one with --csv", path, what);
    fd_baseline_free(baseline);
    return FD_INVALID;
}

/* Are its verdicts such? Of one that is none, nothing could be held. */
static bool has_verdicts(const fd_baseline *b)
{
    for (int32_t r = 0; r < b->table.rows; r++) {
        bool known = false;
        for (int32_t v = FD_PASS; v <= FD_SKIP; v++) {
            known = known || strcmp(fd_csv_at(&b->table, r, b->verdict), fd_verdict_name(v)) == 0;
        }
        if (!known) {
            return false;
        }
    }
    return true;
}

/* "cases 1" and "contract 1" of the versions line: with others, names mean other numbers. */
static bool same_cases(const char *versions)
{
    char cases[32], contract[32];
    snprintf(cases, sizeof cases, "cases %d,", FD_CASE_TABLE_VERSION);
    snprintf(contract, sizeof contract, "contract %u", FD_ABI);
    return strstr(versions, cases) != NULL && strstr(versions, contract) != NULL;
}

fd_status fd_trial_read_baseline(fd_trial *trial, char *why, size_t n)
{
    const char *path = trial->options.baseline;
    if (path == NULL) {
        return FD_OK;
    }
    fd_baseline *b = calloc(1, sizeof *b);
    if (b == NULL) {
        snprintf(why, n, "no memory for %s", path);
        return FD_NO_MEMORY;
    }
    const fd_status status = fd_csv_read(path, &b->table, why, n);
    if (status != FD_OK) {
        free(b);
        return status;
    }
    const char *versions = fd_csv_comment(&b->table, "versions"), *machine = fd_csv_comment(&b->table, "machine_id");
    b->group = fd_csv_column(&b->table, "group");
    b->name = fd_csv_column(&b->table, "case");
    b->verdict = fd_csv_column(&b->table, "verdict");
    b->tier = fd_csv_column(&b->table, "tier");
    b->err_max = fd_csv_column(&b->table, "err_max");
    b->lse_err = fd_csv_column(&b->table, "lse_err");
    b->over_median = fd_csv_column(&b->table, "over_median");
    b->over_p75 = fd_csv_column(&b->table, "over_p75");
    b->rung_over = fd_csv_column(&b->table, "rung_over");
    b->met = calloc((size_t)b->table.rows + 1, sizeof *b->met);
    if (versions == NULL || machine == NULL || b->met == NULL || b->group < 0 || b->name < 0 || b->verdict < 0 ||
        b->tier < 0 || b->err_max < 0 || b->lse_err < 0 || !has_verdicts(b)) {
        return refuse(b, path, "not written by `flashdecode check --csv`", why, n);
    }
    if (!same_cases(versions)) {
        return refuse(b, path, "made with another case table or contract", why, n);
    }
    fd_machine_record here;
    fd_machine_record_read(&here, "", 0, NULL);
    if (strcmp(here.machine_id, machine) != 0) {
        const char *processor = fd_csv_comment(&b->table, "processor"), *date = fd_csv_comment(&b->table, "date");
        snprintf(b->machine, sizeof b->machine, "%s, %s", processor != NULL ? processor : machine,
                 date != NULL ? date : "no date");
    }
    trial->baseline = b;
    return FD_OK;
}

void fd_baseline_device(struct fd_baseline *b, const char *device)
{
    const char *before = b != NULL ? fd_csv_comment(&b->table, "device") : NULL;
    before = before != NULL ? before : "";
    if (b != NULL && b->machine[0] == '\0' && strcmp(before, device) != 0) {
        snprintf(b->machine, sizeof b->machine, "%s", before[0] != '\0' ? before : "one without this GPU");
    }
}

void fd_baseline_free(struct fd_baseline *baseline)
{
    if (baseline != NULL) {
        fd_csv_free(&baseline->table);
        free(baseline->met);
        free(baseline);
    }
}

/* -1: not there. A name stands once in a group; were it there twice, the first counts. */
static int32_t row_of(fd_baseline *b, const fd_trial_line *line)
{
    for (int32_t i = 0; i < b->table.rows; i++) {
        const int32_t r = (b->next + i) % b->table.rows;
        if (strcmp(fd_csv_at(&b->table, r, b->name), line->name) == 0 &&
            strcmp(fd_csv_at(&b->table, r, b->group), line->group) == 0) {
            b->next = r + 1;
            return r;
        }
    }
    return -1;
}

/* A regression of an error: reason and verdict say so. `least`: below it nothing counts, unless any growth does. */
static void hold_error(const char *what, double before, double now, double growth, double least, fd_trial_line *line)
{
    const double limit = growth > 1.0 ? fmax(growth * before, least) : before;
    if (line->standing == FD_STANDING_WORSE || now <= limit) {
        return;
    }
    line->verdict = FD_FAIL;
    line->standing = FD_STANDING_WORSE;
    snprintf(line->reason, sizeof line->reason, "%s grew from %.6g to %.6g; the baseline allows %.6g", what, before,
             now, limit);
    snprintf(line->against, sizeof line->against, "%s was %.6g", what, before);
}

/* Times are compared on one machine only, as times over the reading of the same bytes in the same run. */
static void hold_time(const fd_baseline *b, int32_t row, fd_trial_line *line)
{
    const char *median = fd_csv_at(&b->table, row, b->over_median), *p75 = fd_csv_at(&b->table, row, b->over_p75);
    const double before = strtod(median, NULL), quartile = strtod(p75, NULL);
    const double rung = strtod(fd_csv_at(&b->table, row, b->rung_over), NULL), now = line->time.over_median;
    if (line->time.repeats == 0 || median[0] == '\0' || b->machine[0] != '\0' || line->standing == FD_STANDING_WORSE) {
        return;
    }
    /* over rung 05: products in place of quotients, so that 0, not timed, excuses nothing */
    if (line->time.over_p25 <= quartile || now <= FD_TIME_GROWTH * before ||
        now * rung < FD_TIME_GROWTH * before * line->time.rung_over) {
        return;
    }
    line->verdict = FD_FAIL;
    line->standing = FD_STANDING_WORSE;
    snprintf(line->reason, sizeof line->reason, "slower: %.4gx the reading of k and v, %.4gx before",
             line->time.over_median, before);
    snprintf(line->against, sizeof line->against,
             "three quarters of its runs took less than %.4gx, now three quarters take more than %.4gx", quartile,
             line->time.over_p25);
}

void fd_baseline_hold(struct fd_baseline *b, double growth, fd_trial_line *line)
{
    const int32_t row = row_of(b, line);
    if (row < 0) {
        if (line->verdict == FD_FAIL) {
            line->standing = FD_STANDING_WORSE;
            snprintf(line->against, sizeof line->against, "not in the baseline");
        }
        return;
    }
    const char *before = fd_csv_at(&b->table, row, b->verdict), *tier = fd_csv_at(&b->table, row, b->tier);
    const bool failed = strcmp(before, "fail") == 0, skipped = strcmp(before, "skip") == 0;
    b->met[row] = true;
    if (line->verdict == FD_FAIL) {
        /* A failure of an earlier tier than the known one is another failure: broken where it was imprecise. */
        const bool known = failed && line->tier >= (int32_t)fd_tier_named(tier);
        line->standing = known ? FD_STANDING_KNOWN : FD_STANDING_WORSE;
        snprintf(line->against, sizeof line->against, "was: %s%s%s", before, failed ? ", tier " : "",
                 failed ? tier : "");
    } else if (line->verdict == FD_SKIP) {
        if (!failed && !skipped) { /* a verdict that was had is lost */
            line->verdict = FD_FAIL;
            line->standing = FD_STANDING_WORSE;
            snprintf(line->against, sizeof line->against, "was: %s; is skipped", before);
        }
    } else if (failed) {
        line->standing = FD_STANDING_FIXED;
        snprintf(line->against, sizeof line->against, "failed, tier %s", tier);
    } else if (!skipped) {
        hold_error("the largest error of o, in u gauge,", strtod(fd_csv_at(&b->table, row, b->err_max), NULL),
                   line->err_max, growth, LEAST_ERROR, line);
        hold_error("the largest error of lse", strtod(fd_csv_at(&b->table, row, b->lse_err), NULL), line->lse_err,
                   growth, LEAST_LSE_ERROR, line);
        hold_time(b, row, line);
    }
}

int32_t fd_baseline_unmet(const struct fd_baseline *b)
{
    int32_t unmet = 0;
    for (int32_t r = 0; r < b->table.rows; r++) {
        unmet += !b->met[r];
    }
    return unmet;
}

const char *fd_baseline_machine(const struct fd_baseline *b)
{
    return b->machine;
}
