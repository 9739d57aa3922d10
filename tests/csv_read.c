/* csv_read.c: see csv_read.h. The text is cut in place: a field is never longer than what it was read from. */
#include "csv_read.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define BYTES_MAX (64 << 20)

typedef struct cutter {
    char *at; /* next byte to read */
    int32_t line;
    bool ended; /* the field that was cut last is the last of its row */
    bool open;  /* its quotes were not closed */
} cutter;

static char *read_text(const char *path, size_t *bytes, char *why, size_t n)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        snprintf(why, n, "cannot read %s: %s; name a CSV file that --csv wrote", path, strerror(errno));
        return NULL;
    }
    char *text = NULL;
    size_t room = 1 << 16;
    for (*bytes = 0;; room *= 2) {
        char *more = room <= BYTES_MAX ? realloc(text, room + 1) : NULL;
        if (more == NULL) {
            snprintf(why, n, "cannot read %s: longer than %d MiB", path, BYTES_MAX >> 20);
            break;
        }
        text = more;
        *bytes += fread(text + *bytes, 1, room - *bytes, file);
        if (*bytes < room) {
            if (ferror(file) != 0) {
                snprintf(why, n, "cannot read %s: %s; name a CSV file that --csv wrote", path, strerror(errno));
                break;
            }
            fclose(file);
            text[*bytes] = '\0';
            return text;
        }
    }
    free(text);
    fclose(file);
    return NULL;
}

/* The next field, and the cutter behind it. */
static char *cut_field(cutter *c)
{
    char *const start = c->at, *to = start;
    bool quoted = *c->at == '"';
    c->at += quoted;
    for (; *c->at != '\0' && (quoted || (*c->at != ',' && *c->at != '\n')); c->at++) {
        if (quoted && *c->at == '"') {
            if (c->at[1] != '"') {
                quoted = false;
                continue;
            }
            c->at++;
        }
        c->line += *c->at == '\n';
        *to++ = *c->at;
    }
    c->ended = *c->at != ',';
    c->open = quoted;
    c->line += *c->at == '\n';
    c->at += *c->at != '\0';
    if (c->ended && to > start && to[-1] == '\r') {
        to--;
    }
    *to = '\0';
    return start;
}

static fd_status no_memory(const char *path, char *why, size_t n)
{
    snprintf(why, n, "no memory for %s", path);
    return FD_NO_MEMORY;
}

fd_status fd_csv_read(const char *path, fd_csv_table *table, char *why, size_t n)
{
    size_t bytes = 0, fields = 0;
    *table = (fd_csv_table){.text = read_text(path, &bytes, why, n)};
    if (table->text == NULL) {
        return FD_INVALID;
    }
    const bool holds_nul = strlen(table->text) != bytes; /* no text, so no table */
    cutter c = {.at = table->text, .line = 1};
    c.at += strncmp(c.at, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* a spreadsheet's byte order mark */
    for (size_t i = 0; i < bytes; i++) {                   /* an upper bound of what the arrays must hold */
        fields += table->text[i] == ',' || table->text[i] == '\n';
    }
    table->comment = calloc(fields + 2, sizeof *table->comment);
    table->name = calloc(fields + 2, sizeof *table->name);
    table->field = calloc(fields + 2, sizeof *table->field);
    if (table->comment == NULL || table->name == NULL || table->field == NULL) {
        fd_csv_free(table);
        return no_memory(path, why, n);
    }
    while (*c.at == '#') {
        char *end = strchr(c.at, '\n');
        table->comment[table->comments++] = c.at + 1 + (c.at[1] == ' ');
        c.at = end != NULL ? end + 1 : c.at + strlen(c.at);
        c.line++;
        if (end != NULL) {
            end[end > table->text && end[-1] == '\r' ? -1 : 0] = '\0';
        }
    }
    while (*c.at != '\0' && !c.ended) {
        table->name[table->columns++] = cut_field(&c);
    }
    if (table->columns < 2 || holds_nul) {
        snprintf(why, n, "%s: no row of column names; name a CSV file that --csv wrote", path);
        fd_csv_free(table);
        return FD_INVALID;
    }
    while (*c.at != '\0') {
        const int32_t line = c.line;
        int32_t column = 0;
        for (c.ended = false; !c.ended; column++) {
            char *field = cut_field(&c);
            if (column < table->columns) {
                table->field[table->rows * table->columns + column] = field;
            }
        }
        if (column != table->columns || c.open) {
            snprintf(why, n, "%s, line %d: %d fields under %d names%s: is the file cut off?", path, line, column,
                     table->columns, c.open ? ", quotes that do not end" : "");
            fd_csv_free(table);
            return FD_INVALID;
        }
        table->rows++;
    }
    return FD_OK;
}

void fd_csv_free(fd_csv_table *table)
{
    free(table->text);
    free(table->comment);
    free(table->name);
    free(table->field);
    *table = (fd_csv_table){.text = NULL};
}

int32_t fd_csv_column(const fd_csv_table *table, const char *name)
{
    for (int32_t i = 0; i < table->columns; i++) {
        if (strcmp(table->name[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

const char *fd_csv_at(const fd_csv_table *table, int32_t row, int32_t column)
{
    return column < 0 ? "" : table->field[row * table->columns + column];
}

const char *fd_csv_comment(const fd_csv_table *table, const char *key)
{
    const size_t length = strlen(key);
    for (int32_t i = 0; i < table->comments; i++) {
        if (strncmp(table->comment[i], key, length) == 0 && strncmp(table->comment[i] + length, ": ", 2) == 0) {
            return table->comment[i] + length + 2;
        }
    }
    return NULL;
}
