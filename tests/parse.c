/* parse.c: see parse.h. */
#include "parse.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "ladder.h"

#define HEADS_MAX 65536

bool fd_bad_option(const char *command, const char *what, const char *got, const char *expected)
{
    fprintf(stderr, "flashdecode %s: %s %s; %s\n", command, what, got, expected);
    return false;
}

/* A number from least to most, up to `until` or the end of the text, which *end receives. Signs other than a minus, and
 * blanks, are no numbers. */
static bool number_at(const char *text, char until, int64_t least, int64_t most, int64_t *number, const char **end)
{
    char *stop;
    errno = 0;
    const long long value = strtoll(text, &stop, 10);
    *end = stop;
    *number = value;
    return stop != text && *text != '+' && !isspace((unsigned char)*text) && (*stop == until || *stop == '\0') &&
           errno == 0 && value >= least && value <= most;
}

bool fd_parse_number(const char *command, const char *option, const char *text, int64_t least, int64_t most,
                     int32_t *number)
{
    const char *end;
    int64_t value;
    if (!number_at(text, '\0', least, most, &value, &end)) {
        char expected[80];
        snprintf(expected, sizeof expected, "give a number from %" PRId64 " to %" PRId64, least, most);
        return fd_bad_option(command, option, text, expected);
    }
    *number = (int32_t)value;
    return true;
}

bool fd_parse_list(const char *command, const char *option, const char *text, int64_t least, int64_t most,
                   int64_t *list, int *count)
{
    const char *end = text;
    for (const char *at = text; *count < FD_LIST_MAX && number_at(at, ',', least, most, &list[*count], &end);
         at = end + 1) {
        (*count)++;
        if (*end == '\0') {
            return true;
        }
    }
    char expected[120];
    snprintf(expected, sizeof expected, "give up to %d numbers from %" PRId64 " to %" PRId64 ", with commas between",
             FD_LIST_MAX, least, most);
    return fd_bad_option(command, option, text, expected);
}

bool fd_parse_rungs(const char *command, const char *text, int64_t *list, int *count)
{
    const int before = *count;
    if (!fd_parse_list(command, "--rung", text, 1, INT32_MAX, list, count)) {
        return false;
    }
    for (int i = before; i < *count; i++) {
        if (fd_ladder_find((int32_t)list[i]) == NULL) {
            return fd_bad_option(command, "--rung", text, "there is no such rung; flashdecode ladder lists them");
        }
    }
    return true;
}

bool fd_in_list(const int64_t *list, int count, int64_t number)
{
    bool found = count == 0;
    for (int i = 0; i < count; i++) {
        found |= list[i] == number;
    }
    return found;
}

bool fd_parse_heads(const char *command, const char *text, int32_t *heads_q, int32_t *heads_kv)
{
    const char *end;
    int64_t q, kv;
    if (!number_at(text, ':', 1, HEADS_MAX, &q, &end) || *end != ':' ||
        !number_at(end + 1, '\0', 1, HEADS_MAX, &kv, &end) || q % kv != 0) {
        return fd_bad_option(command, "--heads", text,
                             "give Q:KV, such as 32:8: Q at most 65536, and a multiple of KV");
    }
    *heads_q = (int32_t)q;
    *heads_kv = (int32_t)kv;
    return true;
}

bool fd_parse_dtypes(const char *command, const char *text, int32_t *dtype_q, int32_t *dtype_kv, int32_t *dtype_o)
{
    static const char letters[] = "fhb"; /* in the order of fd_dtype */
    int32_t *const dtypes[3] = {dtype_q, dtype_kv, dtype_o};
    if (strlen(text) != 3 || strspn(text, letters) != 3) {
        return fd_bad_option(command, "--dtype", text, "give three letters of f, h, b, such as fff or bbf");
    }
    for (int i = 0; i < 3; i++) {
        *dtypes[i] = (int32_t)(strchr(letters, text[i]) - letters);
    }
    return true;
}

bool fd_parse_where(const char *command, const char *text, const char **where)
{
    *where = text;
    return strcmp(text, "cpu") == 0 || strcmp(text, "emu") == 0 || strcmp(text, "gpu") == 0 ||
           fd_bad_option(command, "--where", text, "give cpu, emu or gpu");
}

bool fd_parse_size(const char *command, const char *text, int *size)
{
    *size = fd_size_named(text);
    return *size >= 0 || fd_bad_option(command, "--size", text, "give small, class or full");
}

bool fd_bad_word(const char *command, int argc, char **argv, int option)
{
    if (option == -1 && optind < argc) {
        return fd_bad_option(command, argv[optind], "is not expected", "--help lists the options");
    }
    return option == -1 || fd_bad_option(command, argv[optind - 1], option == ':' ? "needs a value" : "is no option",
                                         "--help lists them");
}
