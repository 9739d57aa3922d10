/* trial_files.c: the lines of a check as CSV and as JUnit XML. */
#include "trial.h"

fd_status fd_trial_write_csv(const fd_trial *trial, const char *path, char *why, size_t n)
{
    (void)trial;
    snprintf(why, n, "%s: not written yet", path);
    return FD_UNSUPPORTED;
}

fd_status fd_trial_write_junit(const fd_trial *trial, const char *path, char *why, size_t n)
{
    (void)trial;
    snprintf(why, n, "%s: not written yet", path);
    return FD_UNSUPPORTED;
}
