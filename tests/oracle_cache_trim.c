#define _POSIX_C_SOURCE 200809L

#include "oracle_cache_trim.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME_LENGTH 32 /* hexadecimal digits of a row's file */
#define ABANDONED 3600 /* seconds */

typedef struct entry {
    char name[NAME_LENGTH + 1];
    int64_t bytes;
    struct timespec used;
} entry;

static bool is_row(const char *name)
{
    return strlen(name) == NAME_LENGTH && strspn(name, "0123456789abcdef") == NAME_LENGTH;
}

static bool is_temporary(const char *name)
{
    const size_t prefix = strlen(FD_ORACLE_CACHE_TEMPORARY);
    return strlen(name) == prefix + 6 && strncmp(name, FD_ORACLE_CACHE_TEMPORARY, prefix) == 0;
}

static int by_use(const void *x, const void *y)
{
    const struct timespec a = ((const entry *)x)->used, b = ((const entry *)y)->used;
    return a.tv_sec != b.tv_sec ? (a.tv_sec > b.tv_sec) - (a.tv_sec < b.tv_sec)
                                : (a.tv_nsec > b.tv_nsec) - (a.tv_nsec < b.tv_nsec);
}

/* The rows in folder; their number and bytes. NULL if there is no memory to list them. */
static entry *list(DIR *folder, size_t *count, int64_t *bytes)
{
    entry *entries = NULL;
    size_t room = 0;
    const int at = dirfd(folder);
    *count = 0;
    *bytes = 0;
    for (struct dirent *d; (d = readdir(folder)) != NULL;) {
        struct stat status;
        const bool row = is_row(d->d_name);
        if ((!row && !is_temporary(d->d_name)) || fstatat(at, d->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(status.st_mode)) {
            continue;
        }
        if (!row) {
            if (status.st_mtim.tv_sec + ABANDONED < time(NULL)) {
                unlinkat(at, d->d_name, 0);
            }
            continue;
        }
        if (*count == room) {
            room = 2 * room + 256;
            entry *more = realloc(entries, room * sizeof *entries);
            if (more == NULL) {
                free(entries);
                return NULL;
            }
            entries = more;
        }
        entry *e = &entries[(*count)++];
        memcpy(e->name, d->d_name, sizeof e->name);
        e->bytes = (int64_t)status.st_size;
        e->used = status.st_mtim;
        *bytes += e->bytes;
    }
    return entries;
}

void fd_oracle_cache_trim(const char *path, int64_t limit)
{
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return;
    }
    size_t count;
    int64_t bytes;
    entry *entries = list(folder, &count, &bytes);
    if (entries != NULL && bytes > limit) {
        qsort(entries, count, sizeof *entries, by_use);
        for (size_t i = 0; i < count && bytes > limit / 8 * 7; i++) {
            unlinkat(dirfd(folder), entries[i].name, 0);
            bytes -= entries[i].bytes;
        }
    }
    free(entries);
    closedir(folder);
}
