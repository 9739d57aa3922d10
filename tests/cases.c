/* cases.c: reads data/cases.csv, strictly. A line is a cross product; a case's name says everything that distinguishes
 * it, and its seed is mixed with the name, so that no two cases see the same numbers. */
#include "cases.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "gen.h"

enum column { NAME, FAMILY, ARGUMENT, DTYPES, HEADS, HEAD_DIM, KV_LEN, SPLIT_SIZE, LAYOUT, SIZE, PLOT, SEED, COLUMNS };
static const char *const column_name[COLUMNS] = {"name",   "family",     "argument", "dtypes", "heads", "head_dim",
                                                 "kv_len", "split_size", "layout",   "size",   "plot",  "seed"};

#define ITEMS_MAX 64                       /* of one list */
#define CASES_MAX 20000                    /* of one table */
#define FILE_BYTES_MAX (1 << 20)           /* of one table */
#define VERSION_LINE "# fd-cases version " /* then FD_CASE_TABLE_VERSION */

typedef struct reader {
    const char *path;
    int32_t line, column; /* column -1: the line as a whole */
    fd_case_table *table;
    int32_t *lines;   /* of each case */
    int32_t capacity; /* of table->cases and lines */
    char *why;
    size_t n;
} reader;

static fd_status fail(const reader *r, const char *format, ...)
{
    char text[300], column[32] = "";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (r->column >= 0) {
        snprintf(column, sizeof column, "column %s: ", column_name[r->column]);
    }
    snprintf(r->why, r->n, "%s:%d: %s%s", r->path, r->line, column, text);
    return FD_INVALID;
}

/* ---- One value ---- */

/* A decimal number 0 .. max without sign or leading zero, up to one of `ends` or the end of the text. */
static bool take_number(const char **text, const char *ends, uint64_t max, uint64_t *value)
{
    const char *s = *text;
    uint64_t x = 0;
    if (*s < '0' || *s > '9' || (s[0] == '0' && s[1] >= '0' && s[1] <= '9')) {
        return false;
    }
    for (; *s >= '0' && *s <= '9'; s++) {
        const uint64_t digit = (uint64_t)(*s - '0');
        if (x > (max - digit) / 10) {
            return false;
        }
        x = 10 * x + digit;
    }
    if (*s != '\0' && strchr(ends, *s) == NULL) {
        return false;
    }
    *text = s;
    *value = x;
    return true;
}

/* One number, or two with `between`; the second is the first if it is absent. */
static bool take_pair(const char *text, char between, int32_t *first, int32_t *second)
{
    const char ends[] = {between, '\0'};
    uint64_t x, y;
    if (!take_number(&text, ends, INT32_MAX, &x)) {
        return false;
    }
    y = x;
    if (*text == between) {
        text++;
        if (!take_number(&text, "", INT32_MAX, &y)) {
            return false;
        }
    }
    *first = (int32_t)x;
    *second = (int32_t)y;
    return *text == '\0';
}

/* heads_q:heads_kv, then qROWS if there is more than plain decode, then c if masked, cAHEAD if not strictly. */
static bool take_heads(const char *text, fd_case *c)
{
    uint64_t heads_q, heads_kv, rows = 1, ahead = 0;
    if (!take_number(&text, ":", INT32_MAX, &heads_q) || *text++ != ':' ||
        !take_number(&text, "q", INT32_MAX, &heads_kv)) {
        return false;
    }
    if (*text == 'q') {
        text++;
        if (!take_number(&text, "c", INT32_MAX, &rows)) {
            return false;
        }
        c->causal = *text == 'c';
        text += c->causal;
        if (*text != '\0' && !take_number(&text, "", INT32_MAX, &ahead)) {
            return false;
        }
    }
    c->heads_q = (int32_t)heads_q;
    c->heads_kv = (int32_t)heads_kv;
    c->q_len = (int32_t)rows;
    c->ahead = (int32_t)ahead;
    return heads_q > 0 && heads_kv > 0 && rows > 0;
}

static bool take_dtype(char letter, int32_t *dtype)
{
    *dtype = letter == 'f' ? FD_F32 : letter == 'h' ? FD_F16 : FD_BF16;
    return letter == 'f' || letter == 'h' || letter == 'b';
}

/* first..last, or one number. */
static bool take_range(const char **text, uint64_t *first, uint64_t *last)
{
    if (!take_number(text, "+.", INT32_MAX, first)) {
        return false;
    }
    *last = *first;
    if (**text != '.') {
        return true;
    }
    *text += 2;
    return (*text)[-1] == '.' && take_number(text, "+", INT32_MAX, last) && *first <= *last;
}

static fd_status parse_kv_len(const reader *r, const char *text, fd_case *c)
{
    const char *s = text;
    for (;;) {
        uint64_t x, last;
        if (!take_range(&s, &x, &last)) {
            return fail(r, "'%s' is not a length or FIRST..LAST, or several joined by +, each 0 .. %d", text,
                        INT32_MAX);
        }
        for (; x <= last; x++) {
            if (c->batch == FD_CASE_BATCH_MAX) {
                return fail(r, "'%s' has more than %d sequences", text, FD_CASE_BATCH_MAX);
            }
            c->kv_lens[c->batch++] = (int32_t)x;
            c->kv_len = (int32_t)x > c->kv_len ? (int32_t)x : c->kv_len;
        }
        if (*s == '\0') {
            return FD_OK;
        }
        s++;
    }
}

static fd_status parse_value(reader *r, enum column column, const char *text, fd_case *c)
{
    uint64_t x;
    r->column = (int32_t)column;
    if (*text == '\0' && column != NAME && column != ARGUMENT) {
        return fail(r, "is empty");
    }
    switch (column) {
    case FAMILY:
    case ARGUMENT: {
        char *to = column == FAMILY ? c->family : c->argument;
        const size_t room = column == FAMILY ? sizeof c->family : sizeof c->argument;
        if (strlen(text) >= room) {
            return fail(r, "'%s' is longer than %zu characters", text, room - 1);
        }
        memcpy(to, text, strlen(text) + 1);
        return FD_OK;
    }
    case DTYPES:
        if (strlen(text) != 3 || !take_dtype(text[0], &c->dtype_q) || !take_dtype(text[1], &c->dtype_kv) ||
            !take_dtype(text[2], &c->dtype_o)) {
            return fail(r, "'%s' is not three letters of f, h, b for q, kv and o", text);
        }
        return FD_OK;
    case HEADS:
        if (!take_heads(text, c)) {
            return fail(r, "'%s' is not heads_q:heads_kv, then perhaps qROWS, then perhaps c or cAHEAD", text);
        }
        return c->heads_q % c->heads_kv == 0
                   ? FD_OK
                   : fail(r, "heads_q %d is not a multiple of heads_kv %d", c->heads_q, c->heads_kv);
    case HEAD_DIM:
        if (!take_pair(text, '/', &c->head_dim, &c->head_dim_v) || c->head_dim < 1 || c->head_dim_v < 1) {
            return fail(r, "'%s' is not head_dim or head_dim/head_dim_v", text);
        }
        return FD_OK;
    case KV_LEN:
        return parse_kv_len(r, text, c);
    case SPLIT_SIZE:
        if (!take_number(&text, "", INT32_MAX, &x)) {
            return fail(r, "'%s' is not a number 0 .. %d", text, INT32_MAX);
        }
        c->split_size = (int32_t)x;
        return FD_OK;
    case LAYOUT:
        c->layout = strcmp(text, "bhsd") == 0 ? FD_LAYOUT_BHSD : FD_LAYOUT_BSHD;
        return c->layout == FD_LAYOUT_BHSD || strcmp(text, "bshd") == 0 ? FD_OK
                                                                        : fail(r, "'%s' is not bshd or bhsd", text);
    case SIZE:
        c->size = strcmp(text, "full") == 0 ? FD_FULL : strcmp(text, "class") == 0 ? FD_CLASS : FD_SMALL;
        return c->size != FD_SMALL || strcmp(text, "small") == 0 ? FD_OK
                                                                 : fail(r, "'%s' is not small, class or full", text);
    case PLOT:
        c->plot = strcmp(text, "1") == 0;
        return c->plot || strcmp(text, "0") == 0 ? FD_OK : fail(r, "'%s' is not 0 or 1", text);
    case SEED:
        return take_number(&text, "", UINT64_MAX, &c->seed) ? FD_OK : fail(r, "'%s' is not a 64-bit number", text);
    default:
        return FD_OK;
    }
}

/* ---- One case ---- */

static uint64_t hash_text(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text != '\0'; text++) {
        hash = (hash ^ (uint64_t)(unsigned char)*text) * 0x100000001b3u;
    }
    return hash;
}

static fd_status add_case(reader *r, fd_case *c, char *const value[COLUMNS])
{
    int length;
    char split[24] = "";
    if (c->split_size > 0) {
        snprintf(split, sizeof split, "/s%d", c->split_size);
    }
    if (value[NAME][0] != '\0') {
        length = snprintf(c->name, sizeof c->name, "%s", value[NAME]);
    } else {
        length = snprintf(c->name, sizeof c->name, "%s%s%s/%s/h%s/d%s/n%s%s%s", c->family,
                          c->argument[0] != '\0' ? ":" : "", c->argument, value[DTYPES], value[HEADS], value[HEAD_DIM],
                          value[KV_LEN], split, c->layout == FD_LAYOUT_BHSD ? "/bhsd" : "");
    }
    r->column = NAME;
    if (length < 0 || (size_t)length >= sizeof c->name) {
        return fail(r, "'%s...' is longer than %zu characters; give a shorter name", c->name, sizeof c->name - 1);
    }
    for (int32_t x = 0; x < r->table->count; x++) {
        if (strcmp(r->table->cases[x].name, c->name) == 0) {
            return fail(r, "'%s' is there already, from line %d", c->name, r->lines[x]);
        }
    }
    char why[256];
    r->column = -1;
    if (fd_gen_check(c, why, sizeof why) != FD_OK) {
        r->column = FAMILY;
        return fail(r, "%s", why);
    }
    if (r->table->count == CASES_MAX) {
        return fail(r, "more than %d cases", CASES_MAX);
    }
    if (r->table->count == r->capacity) {
        const int32_t capacity = r->capacity == 0 ? 256 : 2 * r->capacity;
        fd_case *cases = (fd_case *)realloc(r->table->cases, (size_t)capacity * sizeof *cases);
        if (cases != NULL) {
            r->table->cases = cases;
        }
        int32_t *lines = (int32_t *)realloc(r->lines, (size_t)capacity * sizeof *lines);
        if (lines != NULL) {
            r->lines = lines;
        }
        if (cases == NULL || lines == NULL) {
            snprintf(r->why, r->n, "%s: no memory for %d cases", r->path, capacity);
            return FD_NO_MEMORY;
        }
        r->capacity = capacity;
    }
    c->seed ^= hash_text(c->name);
    r->lines[r->table->count] = r->line;
    r->table->cases[r->table->count++] = *c;
    return FD_OK;
}

/* ---- One line ---- */

typedef struct list {
    char *item[ITEMS_MAX];
    int32_t count;
} list;

/* Cuts `text` at each `separator`, in place. An empty text is one empty item. */
static bool cut(char *text, char separator, int32_t max, char **item, int32_t *count)
{
    *count = 0;
    for (;;) {
        if (*count == max) {
            return false;
        }
        item[(*count)++] = text;
        text = strchr(text, separator);
        if (text == NULL) {
            return true;
        }
        *text++ = '\0';
    }
}

static fd_status read_line(reader *r, char *line)
{
    char *field[COLUMNS];
    int32_t fields;
    list lists[COLUMNS];
    int64_t product = 1;
    r->column = -1;
    if (!cut(line, ',', COLUMNS, field, &fields) || fields != COLUMNS) {
        return fail(r, "%s%d fields, not %d: is the line cut off?", fields == COLUMNS ? "more than " : "", fields,
                    COLUMNS);
    }
    for (int32_t x = 0; x < COLUMNS; x++) {
        r->column = x;
        const char separator = x >= ARGUMENT && x <= LAYOUT ? ' ' : '\n'; /* the others are no lists */
        if (!cut(field[x], separator, ITEMS_MAX, lists[x].item, &lists[x].count)) {
            return fail(r, "more than %d items", ITEMS_MAX);
        }
        product *= lists[x].count;
        product = product > CASES_MAX ? CASES_MAX + 1 : product;
    }
    r->column = -1;
    if (product > CASES_MAX) {
        return fail(r, "the lists of this line make more than %d cases", CASES_MAX);
    }
    r->column = NAME;
    if (field[NAME][0] != '\0' && product != 1) {
        return fail(r, "'%s' names %lld cases; only a line without lists can have a name", field[NAME],
                    (long long)product);
    }
    for (int64_t x = 0; x < product; x++) { /* the last column varies fastest */
        fd_case c = {.name = ""};
        char *value[COLUMNS];
        int64_t rest = x;
        for (int32_t y = COLUMNS - 1; y >= 0; y--) {
            value[y] = lists[y].item[rest % lists[y].count];
            rest /= lists[y].count;
        }
        for (int32_t y = 0; y < COLUMNS; y++) {
            const fd_status status = parse_value(r, (enum column)y, value[y], &c);
            if (status != FD_OK) {
                return status;
            }
        }
        const fd_status status = add_case(r, &c, value);
        if (status != FD_OK) {
            return status;
        }
    }
    return FD_OK;
}

/* ---- The file ---- */

static fd_status read_file(reader *r, char **text)
{
    size_t bytes;
    FILE *file = fopen(r->path, "rb");
    *text = (char *)malloc(FILE_BYTES_MAX + 1);
    if (file == NULL || *text == NULL) {
        snprintf(r->why, r->n, "%s: %s", r->path,
                 file == NULL ? "cannot be opened; set FD_DATA to the folder data of the project" : "no memory");
        if (file != NULL) {
            fclose(file);
        }
        return *text == NULL ? FD_NO_MEMORY : FD_INVALID;
    }
    bytes = fread(*text, 1, FILE_BYTES_MAX + 1, file);
    const bool failed = ferror(file) != 0;
    fclose(file);
    r->column = -1;
    r->line = 1;
    if (failed || bytes > FILE_BYTES_MAX) {
        return fail(r, failed ? "cannot be read" : "the file is above %d bytes: no case table", FILE_BYTES_MAX);
    }
    if (bytes == 0) {
        return fail(r, "the file is empty");
    }
    for (size_t x = 0; x < bytes; x++) {
        if ((*text)[x] == '\0' || (*text)[x] == '\r' || (*text)[x] == '"') {
            return fail(r, "a NUL, carriage return or quote, which this table does not use");
        }
        r->line += (*text)[x] == '\n';
    }
    if ((*text)[bytes - 1] != '\n') {
        return fail(r, "no newline at the end: is the file cut off?");
    }
    (*text)[bytes] = '\0';
    return FD_OK;
}

/* The columns' names, joined. */
static bool is_head(const char *line)
{
    char head[160] = "";
    for (int32_t x = 0; x < COLUMNS; x++) {
        const size_t at = strlen(head);
        snprintf(head + at, sizeof head - at, "%s%s", x == 0 ? "" : ",", column_name[x]);
    }
    return strcmp(line, head) == 0;
}

static fd_status read_lines(reader *r, char *text)
{
    char version[40];
    bool head = false;
    snprintf(version, sizeof version, VERSION_LINE "%d", FD_CASE_TABLE_VERSION);
    for (r->line = 1; *text != '\0'; r->line++) {
        char *line = text;
        text = strchr(text, '\n'); /* read_file has seen to it that there is one */
        *text++ = '\0';
        r->column = -1;
        if (r->line == 1 && strcmp(line, version) != 0) {
            return fail(r, "'%.60s' is not '%s', the version that this program reads", line, version);
        }
        if (line[0] == '#' || line[0] == '\0') {
            continue;
        }
        if (!head) {
            if (!is_head(line)) {
                return fail(r, "the first line that is no comment must name the columns, from 'name' to 'seed'");
            }
            head = true;
            continue;
        }
        const fd_status status = read_line(r, line);
        if (status != FD_OK) {
            return status;
        }
    }
    r->line--;
    return r->table->count > 0 ? FD_OK : fail(r, "no case in the table");
}

fd_status fd_cases_read(const char *path, fd_case_table *table, char *why, size_t n)
{
    char *text = NULL;
    *table = (fd_case_table){.cases = NULL};
    reader r = {.path = path, .table = table, .why = why, .n = n};
    fd_status status = read_file(&r, &text);
    if (status == FD_OK) {
        status = read_lines(&r, text);
    }
    if (status != FD_OK) {
        fd_cases_free(table);
    }
    free(r.lines);
    free(text);
    return status;
}

void fd_cases_free(fd_case_table *table)
{
    free(table->cases);
    *table = (fd_case_table){.cases = NULL};
}
