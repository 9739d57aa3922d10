/* csv.h: result files. A file appears under its name complete or not at all: it is written beside its place and
 * renamed when everything has reached the disk. */
#ifndef FD_CSV_H
#define FD_CSV_H

#include <stdbool.h>
#include <stdio.h>

#include "fd.h"

typedef struct fd_csv {
    FILE *file; /* where the caller writes; errors are found by fd_csv_commit */
    char path[1024], temporary[1056];
    bool in_place; /* "-", a device or a pipe: nothing to rename */
} fd_csv;

/* Opens a file for writing; "-" is standard output. FD_OK, or FD_INVALID with one line in why. */
fd_status fd_csv_open(fd_csv *csv, const char *path, char *why, size_t n);

/* Could that file be opened? To know before a long run; leaves nothing behind. NULL: nothing is asked for. FD_OK, or
 * FD_INVALID with one line in why. */
fd_status fd_csv_check(const char *path, char *why, size_t n);

/* Would one overwrite the other? Never two pipes, or "-". NULL is legal. */
bool fd_csv_same_file(const char *a, const char *b);

/* Closes and renames. On failure (a full disk) the old file is untouched. FD_OK, or FD_INVALID with one line. */
fd_status fd_csv_commit(fd_csv *csv, char *why, size_t n);

/* Closes and forgets; legal after fd_csv_commit and for a zeroed struct. */
void fd_csv_discard(fd_csv *csv);

/* Writes one field, quoted where RFC 4180 asks for it; what is no UTF-8 and most control characters become '?'. */
void fd_csv_field(FILE *file, const char *text);

#endif /* FD_CSV_H */
