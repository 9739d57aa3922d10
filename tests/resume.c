/* resume.c: see resume.h. */
#define _POSIX_C_SOURCE 200809L /* ftruncate, fileno */

#include "resume.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static fd_status refuse(const fd_resume *r, const char *what, const char *detail, char *why, size_t n)
{
    snprintf(why, n, "%s: %s%s%s", r->path, what, detail[0] != '\0' ? ": " : "", detail);
    return FD_INVALID;
}

/* The whole file behind a "\n", so that every line has one before it; zero-terminated. */
static bool read_all(fd_resume *r)
{
    long size = -1;
    if (fseek(r->file, 0, SEEK_END) == 0) {
        size = ftell(r->file);
    }
    if (size < 0 || fseek(r->file, 0, SEEK_SET) != 0) {
        return false;
    }
    r->rows = (char *)malloc((size_t)size + 2);
    if (r->rows == NULL || fread(r->rows + 1, 1, (size_t)size, r->file) != (size_t)size) {
        return false;
    }
    r->rows[0] = '\n';
    r->bytes = (size_t)size + 1;
    while (r->bytes > 1 && r->rows[r->bytes - 1] != '\n') {
        r->bytes--;
    }
    r->rows[r->bytes] = '\0';
    return true;
}

/* The first line that is no comment; NULL if there is none. */
static const char *first_row(const char *rows)
{
    for (const char *at = rows; at != NULL; at = strchr(at + 1, '\n')) {
        if (at[1] != '#' && at[1] != '\0') {
            return at + 1;
        }
    }
    return NULL;
}

fd_status fd_resume_open(fd_resume *r, const char *path, const char *head, char *why, size_t n)
{
    *r = (fd_resume){.file = NULL};
    snprintf(r->path, sizeof r->path, "%s", path);
    struct stat there;
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) {
        return refuse(r, "is no regular file; name one, which keeps its rows and gets more", "", why, n);
    }
    fd_status status = FD_OK;
    r->file = fopen(path, "r+b");
    r->file = r->file == NULL && errno == ENOENT ? fopen(path, "w+b") : r->file;
    if (r->file == NULL) {
        return refuse(r, "cannot be written", strerror(errno), why, n);
    }
    if (!read_all(r)) {
        status = refuse(r, "cannot be read", "", why, n);
    } else if (fflush(r->file) != 0 || ftruncate(fileno(r->file), (off_t)(r->bytes - 1)) != 0 ||
               fseek(r->file, 0, SEEK_END) != 0) {
        status = refuse(r, "cannot be shortened by the row that was cut off", strerror(errno), why, n);
    } else {
        const char *row = first_row(r->rows);
        const size_t length = strlen(head);
        r->fresh = row == NULL;
        if (row != NULL && (strncmp(row, head, length) != 0 || row[length] != '\n')) {
            status = refuse(r, "has other columns; move it away, or name another file", "", why, n);
        } else if (row == NULL) {
            status = fd_resume_add(r, head, why, n);
        }
    }
    if (status != FD_OK) {
        fd_resume_close(r);
    }
    return status;
}

bool fd_resume_has(const fd_resume *r, const char *prefix)
{
    const size_t length = strlen(prefix);
    for (const char *at = r->rows; at != NULL; at = strchr(at + 1, '\n')) {
        if (strncmp(at + 1, prefix, length) == 0) {
            return true;
        }
    }
    return false;
}

fd_status fd_resume_add(fd_resume *r, const char *row, char *why, size_t n)
{
    const size_t length = strlen(row);
    char *rows = (char *)realloc(r->rows, r->bytes + length + 2);
    if (rows == NULL) {
        refuse(r, "no memory for another row", "", why, n);
        return FD_NO_MEMORY;
    }
    r->rows = rows;
    memcpy(rows + r->bytes, row, length);
    rows[r->bytes + length] = '\n';
    rows[r->bytes + length + 1] = '\0';
    if (fwrite(rows + r->bytes, 1, length + 1, r->file) != length + 1 || fflush(r->file) != 0) {
        return refuse(r, "cannot be written", strerror(errno), why, n);
    }
    r->bytes += length + 1;
    return FD_OK;
}

void fd_resume_close(fd_resume *r)
{
    if (r->file != NULL) {
        fclose(r->file);
    }
    free(r->rows);
    *r = (fd_resume){.file = NULL};
}
