/* resume.h: a result file that grows a row at a time, for measurements that may be cut off: begun again, they skip the
 * rows that are there. (csv.h writes files that appear complete or not at all.) */
#ifndef FD_RESUME_H
#define FD_RESUME_H

#include <stdbool.h>
#include <stdio.h>

#include "fd.h"

typedef struct fd_resume {
    FILE *file; /* comments may be written here, whole lines of them */
    char *rows; /* what was there, and is added, "\n" before each line */
    size_t bytes;
    bool fresh; /* the header was written now */
    char path[1024];
} fd_resume;

/* Opens or makes the file. A last line without its end was cut off while written, and goes. FD_INVALID with one line if
 * there is a header that is not `head` (one line, without its end), or the file cannot be written. */
fd_status fd_resume_open(fd_resume *resume, const char *path, const char *head, char *why, size_t n);

/* Is there a row that begins so? */
bool fd_resume_has(const fd_resume *resume, const char *prefix);

/* Adds one row, given without its end; it is in the file when this returns. */
fd_status fd_resume_add(fd_resume *resume, const char *row, char *why, size_t n);

void fd_resume_close(fd_resume *resume); /* legal for a zeroed struct */

#endif /* FD_RESUME_H */
