/* trial_files.c: the lines of a check as CSV: a record of machine, command and hypotheses, then a line a verdict. Errors
 * have 17 digits, so that a baseline knows the bits. */
#include "commands.h"
#include "csv.h"
#include "machine.h"
#include "sigma.h"
#include "trial.h"

static void head(const fd_trial *trial, FILE *f)
{
    fd_machine_record record;
    fd_machine_record_read(&record, "flashdecode", trial->options.argc, trial->options.argv);
    fd_machine_record_write(&record, f, "# ");
    fprintf(f, "# versions: judge %d, bound %d, sigma %d, cases %d, contract %u\n", FD_JUDGE_VERSION, FD_BOUND_VERSION,
            FD_SIGMA_VERSION, FD_CASE_TABLE_VERSION, FD_ABI);
    if (trial->device[0] != '\0') {
        fprintf(f, "# device: %s\n", trial->device);
    }
    if (trial->not_run > 0) {
        fprintf(f, "# not_run: %lld, %s\n", (long long)trial->not_run, trial->not_run_why);
    }
    fputs("implementation,where,group,case,verdict,tier,err_max,err_p50,bound,ratio,lse_err,lse_ratio,z_max,z_lse,"
          "vacuous,undecided,seconds,ns_median,ns_p25,ns_p75,repeats,bytes,floor_ns,over_median,over_p25,over_p75,"
          "rung_over,standing,declared,reason,looks_like,notes,replay\n",
          f);
}

static void row(const fd_trial *trial, const fd_trial_line *line, FILE *f)
{
    static const char *const standings[] = {"", "fixed", "known", "worse"};
    const char *const names[] = {fd_trial_name(trial), trial->place, line->group, line->name};
    const double numbers[] = {line->err_max, line->err_p50,   line->bound, line->ratio,
                              line->lse_err, line->lse_ratio, line->z_max, line->z_lse};
    const char *const texts[] = {line->declared, line->reason, line->looks_like, line->notes, line->replay};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        fd_csv_field(f, names[i]);
        fputc(',', f);
    }
    fprintf(f, "%s,%s", fd_verdict_name(line->verdict), fd_tier_name(line->tier));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        fprintf(f, ",%.17g", numbers[i]);
    }
    fprintf(f, ",%lld,%lld,", (long long)line->vacuous, (long long)line->undecided);
    if (line->seconds >= 0.0) {
        fprintf(f, "%.3f", line->seconds);
    }
    const fd_trial_time *t = &line->time;
    if (t->repeats > 0) {
        fprintf(f, ",%.9g,%.9g,%.9g,%d,%lld,%.9g,%.9g,%.9g,%.9g,%.9g", t->ns_median, t->ns_p25, t->ns_p75, t->repeats,
                (long long)t->bytes, t->floor_ns, t->over_median, t->over_p25, t->over_p75, t->rung_over);
    } else {
        fputs(",,,,,,,,,,", f);
    }
    fprintf(f, ",%s", standings[line->standing]);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fputc(',', f);
        fd_csv_field(f, texts[i]);
    }
    fputc('\n', f);
}

fd_status fd_trial_write_csv(const fd_trial *trial, const char *path, char *why, size_t n)
{
    fd_csv csv;
    fd_status status = fd_csv_open(&csv, path, why, n);
    if (status != FD_OK) {
        return status;
    }
    head(trial, csv.file);
    for (int32_t i = 0; i < trial->count; i++) {
        row(trial, &trial->lines[i], csv.file);
    }
    status = fd_csv_commit(&csv, why, n);
    fd_csv_discard(&csv);
    return status;
}
