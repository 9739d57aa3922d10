/* csv.c: see csv.h. */
#define _XOPEN_SOURCE 700 /* realpath */

#include "csv.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interrupt.h"
#include "text.h"

static fd_status cannot_write(const char *path, char *why, size_t n)
{
    snprintf(why, n, "cannot write %s: %s; give a writable path", path, strerror(errno));
    return FD_INVALID;
}

/* Renaming would replace a symbolic link: its target is what is meant. */
static void follow(char *path, size_t n)
{
    struct stat link;
    char *target = lstat(path, &link) == 0 && S_ISLNK(link.st_mode) ? realpath(path, NULL) : NULL;
    if (target != NULL && strlen(target) < n) {
        strcpy(path, target);
    }
    free(target);
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
    follow(csv->path, sizeof csv->path);
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
        snprintf(csv->temporary, sizeof csv->temporary, "%s.%ld.tmp", csv->path, (long)getpid());
        unlink(csv->temporary);
        fd_interrupt_deletes(csv->temporary);
        signal(SIGXFSZ, SIG_IGN);                /* a limit on file sizes is a full disk: write() says so */
        csv->file = fopen(csv->temporary, "wx"); /* in /tmp, somebody's link of that name must not be followed */
    }
    return csv->file == NULL ? cannot_write(path, why, n) : FD_OK;
}

fd_status fd_csv_check(const char *path, char *why, size_t n)
{
    struct stat status;
    fd_csv csv;
    const bool exists = path != NULL && strcmp(path, "-") != 0 && stat(path, &status) == 0;
    if (path == NULL || strcmp(path, "-") == 0 || (exists && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))) {
        return FD_OK; /* a pipe is opened once; what is wrong with it shows then */
    }
    const fd_status good = fd_csv_open(&csv, path, why, n);
    fd_csv_discard(&csv);
    return good;
}

bool fd_csv_same_file(const char *a, const char *b)
{
    struct stat x, y;
    if (a == NULL || b == NULL || strcmp(a, "-") == 0 || strcmp(b, "-") == 0) {
        return false;
    }
    if (stat(a, &x) != 0 || stat(b, &y) != 0) {
        return strcmp(a, b) == 0; /* neither is there yet, perhaps */
    }
    return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

fd_status fd_csv_commit(fd_csv *csv, char *why, size_t n)
{
    const bool failed = ferror(csv->file) != 0; /* in an earlier write, whose errno is gone */
    const bool written = !failed && fflush(csv->file) == 0;
    const int reason = errno;
    const bool closed = fclose(csv->file) == 0;
    csv->file = NULL;
    if (!written || !closed) {
        errno = written ? errno : reason;
    } else if (csv->in_place || rename(csv->temporary, csv->path) == 0) {
        fd_interrupt_deletes("");
        return FD_OK;
    }
    const fd_status status = cannot_write(csv->path, why, n);
    if (failed) {
        snprintf(why, n, "cannot write %s: is the disk full? give a path with room", csv->path);
    }
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
        fd_interrupt_deletes("");
    }
}

void fd_csv_field(FILE *file, const char *text)
{
    const bool quoted = strpbrk(text, ",\"\r\n") != NULL;
    if (quoted) {
        fputc('"', file);
    }
    while (*text != '\0') {
        const int length = fd_text_character(text);
        if (length == 0) { /* who reads a table wants UTF-8 */
            fputc('?', file);
        } else {
            fwrite(text, 1, (size_t)length, file);
        }
        if (*text == '"') {
            fputc('"', file);
        }
        text += length > 0 ? length : 1;
    }
    if (quoted) {
        fputc('"', file);
    }
}
