/* csv_read.h: reads result files of csv.h back: "# key: value" lines on top, a row of names, rows of fields as RFC 4180
 * quotes them. */
#ifndef FD_CSV_READ_H
#define FD_CSV_READ_H

#include <stdint.h>

#include "fd.h"

typedef struct fd_csv_table {
    char *text;     /* the file, cut into fields */
    char **comment; /* [comments] lines without their "# " */
    char **name;    /* [columns] */
    char **field;   /* [rows, columns] */
    int32_t comments, columns, rows;
} fd_csv_table;

/* FD_OK; FD_INVALID (no such file, no table, a row of another length: one line in why that names file and line) or
 * FD_NO_MEMORY. After a failure nothing needs freeing. */
fd_status fd_csv_read(const char *path, fd_csv_table *table, char *why, size_t n);
void fd_csv_free(fd_csv_table *table);

/* Index of a column; -1 if there is none of that name. */
int32_t fd_csv_column(const fd_csv_table *table, const char *name);

/* Field of a row; "" for column -1. */
const char *fd_csv_at(const fd_csv_table *table, int32_t row, int32_t column);

/* What stands behind "key: " on top; NULL if nothing does. */
const char *fd_csv_comment(const fd_csv_table *table, const char *key);

#endif /* FD_CSV_READ_H */
