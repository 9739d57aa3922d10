/* trial_junit.c: the lines of a check as JUnit XML, which CI systems and graders read: a testsuite a group, a testcase a
 * verdict, known failures and skips as <skipped>, hypotheses and the machine record as properties. */
#include <math.h>
#include <stdbool.h>

#include "commands.h"
#include "csv.h"
#include "junit.h"
#include "machine.h"
#include "sigma.h"
#include "text.h"
#include "trial.h"

void fd_xml_text(FILE *file, const char *text)
{
    while (*text != '\0') {
        const int length = fd_text_character(text);
        if (length == 0) { /* control characters, and bytes that are no UTF-8: no reference can name them */
            fprintf(file, "\\x%02x", (unsigned char)*text++);
        } else if (length == 1 && strchr("&<>\"'\t\n\r", *text) != NULL) {
            fprintf(file, "&#%d;", *text++); /* tab and newline would become spaces in an attribute */
        } else {
            fwrite(text, 1, (size_t)length, file);
            text += length;
        }
    }
}

static void attribute(FILE *f, const char *name, const char *text)
{
    fprintf(f, " %s=\"", name);
    fd_xml_text(f, text);
    fputc('"', f);
}

static bool known(const fd_trial_line *line)
{
    return line->standing == FD_STANDING_KNOWN;
}

typedef struct counts {
    int64_t tests, failures, skipped;
    double seconds; /* of the lines that know theirs */
} counts;

static counts count(const fd_trial *trial, const char *group)
{
    counts c = {0};
    for (int32_t i = 0; i < trial->count; i++) {
        const fd_trial_line *line = &trial->lines[i];
        if (group == NULL || strcmp(line->group, group) == 0) {
            c.tests++;
            c.failures += line->verdict == FD_FAIL && !known(line);
            c.skipped += line->verdict == FD_SKIP || known(line);
            c.seconds += line->seconds > 0.0 ? line->seconds : 0.0;
        }
    }
    return c;
}

static void write_counts(FILE *f, counts c)
{
    fprintf(f, " tests=\"%lld\" failures=\"%lld\" errors=\"0\" skipped=\"%lld\" time=\"%.3f\"", (long long)c.tests,
            (long long)c.failures, (long long)c.skipped, c.seconds);
}

static void property(FILE *f, const char *name, const char *value)
{
    fputs("      <property", f);
    attribute(f, "name", name);
    attribute(f, "value", value);
    fputs("/>\n", f);
}

static void write_properties(FILE *f, const fd_trial *trial, const fd_machine_record *r)
{
    char versions[128];
    snprintf(versions, sizeof versions, "judge %d, bound %d, sigma %d, cases %d, contract %u", FD_JUDGE_VERSION,
             FD_BOUND_VERSION, FD_SIGMA_VERSION, FD_CASE_TABLE_VERSION, FD_ABI);
    fputs("    <properties>\n", f);
    property(f, "implementation", fd_trial_name(trial));
    property(f, "where", trial->place);
    property(f, "versions", versions);
    property(f, "machine_id", r->machine_id);
    property(f, "processor", r->processor);
    property(f, "system", r->system);
    property(f, "compiler", r->compiler);
    property(f, "libc", r->libc);
    property(f, "commit", r->commit);
    property(f, "command", r->command);
    fputs("    </properties>\n", f);
}

static void line_of_text(FILE *f, const char *name, const char *text)
{
    if (text[0] != '\0') {
        fprintf(f, "%s", name);
        fd_xml_text(f, text);
        fputs("&#10;", f);
    }
}

static void write_case(FILE *f, const fd_trial_line *line)
{
    fputs("    <testcase", f);
    attribute(f, "name", line->name);
    attribute(f, "classname", line->group);
    if (line->seconds >= 0.0) {
        fprintf(f, " time=\"%.3f\"", line->seconds);
    }
    fputs(">\n", f);
    if (line->declared[0] != '\0' || line->notes[0] != '\0') {
        fputs("      <properties>\n", f);
        property(f, "given", line->declared);
        property(f, "notes", line->notes);
        fputs("      </properties>\n", f);
    }
    if (line->verdict == FD_FAIL && !known(line)) {
        fputs("      <failure", f);
        attribute(f, "message", line->reason);
        attribute(f, "type", fd_tier_name(line->tier));
        fputc('>', f);
        line_of_text(f, "", line->reason);
        line_of_text(f, "", line->detail);
        line_of_text(f, "baseline: ", line->against);
        line_of_text(f, "", line->looks_like);
        line_of_text(f, "given: ", line->declared);
        line_of_text(f, "replay: ", line->replay);
        fputs("</failure>\n", f);
    } else if (line->verdict == FD_SKIP || known(line)) {
        char message[sizeof line->reason + sizeof line->against];
        snprintf(message, sizeof message, "%s%s", known(line) ? "known failure: " : "", line->reason);
        fputs("      <skipped", f);
        attribute(f, "message", message);
        fputs("/>\n", f);
    }
    fputs("    </testcase>\n", f);
}

static void write_not_run(FILE *f, const fd_trial *trial)
{
    char message[300];
    snprintf(message, sizeof message, "%lld not run: %s", (long long)trial->not_run, trial->not_run_why);
    fputs("  <testsuite name=\"not run\" tests=\"1\" failures=\"0\" errors=\"0\" skipped=\"1\" time=\"0\">\n"
          "    <testcase name=\"not run\" classname=\"not run\">\n      <skipped",
          f);
    attribute(f, "message", message);
    fputs("/>\n    </testcase>\n  </testsuite>\n", f);
}

static void write_all(FILE *f, const fd_trial *trial)
{
    fd_machine_record record;
    fd_machine_record_read(&record, "flashdecode", trial->options.argc, trial->options.argv);
    counts all = count(trial, NULL);
    all.tests += trial->not_run > 0;
    all.skipped += trial->not_run > 0;
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites", f);
    attribute(f, "name", fd_trial_name(trial));
    write_counts(f, all);
    fputs(">\n", f);
    for (int32_t i = 0; i < trial->count; i++) {
        const char *group = trial->lines[i].group;
        bool first = true;
        for (int32_t k = 0; k < i && first; k++) {
            first = strcmp(trial->lines[k].group, group) != 0;
        }
        if (!first) {
            continue;
        }
        fputs("  <testsuite", f);
        attribute(f, "name", group);
        write_counts(f, count(trial, group));
        fprintf(f, " timestamp=\"%.19s\">\n", record.date); /* without the Z, as the schema wants it */
        write_properties(f, trial, &record);
        for (int32_t k = i; k < trial->count; k++) {
            if (strcmp(trial->lines[k].group, group) == 0) {
                write_case(f, &trial->lines[k]);
            }
        }
        fputs("  </testsuite>\n", f);
    }
    if (trial->not_run > 0) {
        write_not_run(f, trial);
    }
    fputs("</testsuites>\n", f);
}

fd_status fd_trial_write_junit(const fd_trial *trial, const char *path, char *why, size_t n)
{
    fd_csv file; /* whole or not at all, like any result */
    fd_status status = fd_csv_open(&file, path, why, n);
    if (status != FD_OK) {
        return status;
    }
    write_all(file.file, trial);
    status = fd_csv_commit(&file, why, n);
    fd_csv_discard(&file);
    return status;
}
