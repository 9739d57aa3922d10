/* csv.c: see csv.h. */
#define _POSIX_C_SOURCE 200809L

#include "csv.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static fd_status cannot_write(const char *path, char *why, size_t n)
{
    snprintf(why, n, "cannot write %s: %s; give a writable path", path, strerror(errno));
    return FD_INVALID;
}

/* Ctrl-C must not leave a half-written file behind. The path of the one being written; a handler may only do little. */
static char unfinished[sizeof((fd_csv *)0)->temporary];

static void interrupted(int signal_number)
{
    if (unfinished[0] != '\0') {
        unlink(unfinished);
    }
    _exit(128 + signal_number);
}

static void watch(const char *path)
{
    strcpy(unfinished, path);
    if (*path != '\0') {
        signal(SIGINT, interrupted);
        signal(SIGTERM, interrupted);
        signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is a full disk: write() says so */
    }
}

fd_status fd_csv_open(fd_csv *csv, const char *path, char *why, size_t n)
{
    struct stat status;
    *csv = (fd_csv){.file = NULL};
    if (strlen(path) == 0 || strlen(path) >= sizeof csv->path) {
        errno = strlen(path) == 0 ? ENOENT : ENAMETOOLONG;
        return cannot_write(path, why, n);
    }
    strcpy(csv->path, path);
    const bool is_stdout = strcmp(path, "-") == 0;
    const bool exists = !is_stdout && stat(path, &status) == 0;
    if (exists && S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        return cannot_write(path, why, n);
    }
    csv->in_place = is_stdout || (exists && !S_ISREG(status.st_mode));
    if (is_stdout) {
        const int copy = dup(STDOUT_FILENO);
        csv->file = copy < 0 ? NULL : fdopen(copy, "w");
    } else if (csv->in_place) {
        csv->file = fopen(path, "w");
    } else {
        snprintf(csv->temporary, sizeof csv->temporary, "%s.%ld.tmp", path, (long)getpid());
        watch(csv->temporary);
        csv->file = fopen(csv->temporary, "w");
    }
    return csv->file == NULL ? cannot_write(path, why, n) : FD_OK;
}

fd_status fd_csv_check(const char *path, char *why, size_t n)
{
    struct stat status;
    fd_csv csv;
    if (path == NULL || strcmp(path, "-") == 0 || (stat(path, &status) == 0 && !S_ISREG(status.st_mode))) {
        return FD_OK; /* a pipe is opened once; what is wrong with it shows then */
    }
    const fd_status good = fd_csv_open(&csv, path, why, n);
    fd_csv_discard(&csv);
    return good;
}

fd_status fd_csv_commit(fd_csv *csv, char *why, size_t n)
{
    const bool written = ferror(csv->file) == 0 && fflush(csv->file) == 0;
    const int reason = errno;
    const bool closed = fclose(csv->file) == 0;
    csv->file = NULL;
    if (!written || !closed) {
        errno = written ? errno : reason;
    } else if (csv->in_place || rename(csv->temporary, csv->path) == 0) {
        watch("");
        return FD_OK;
    }
    const fd_status status = cannot_write(csv->path, why, n);
    if (!csv->in_place) {
        unlink(csv->temporary);
    }
    return status;
}

void fd_csv_discard(fd_csv *csv)
{
    if (csv->file == NULL) {
        return;
    }
    fclose(csv->file);
    csv->file = NULL;
    if (!csv->in_place) {
        unlink(csv->temporary);
        watch("");
    }
}

void fd_csv_field(FILE *file, const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, file);
        return;
    }
    fputc('"', file);
    for (; *text != '\0'; text++) {
        if (*text == '"') {
            fputc('"', file);
        }
        fputc(*text, file);
    }
    fputc('"', file);
}
