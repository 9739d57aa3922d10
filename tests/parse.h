/* parse.h: what the options of several commands have in common. Each function says what is wrong with an option, in one
 * line on stderr behind the command's name, and returns false. */
#ifndef FD_PARSE_H
#define FD_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#define FD_LIST_MAX 64 /* numbers in a list */

/* "flashdecode COMMAND: WHAT GOT; EXPECTED". Returns false. */
bool fd_bad_option(const char *command, const char *what, const char *got, const char *expected);

/* A number from least to most. */
bool fd_parse_number(const char *command, const char *option, const char *text, int64_t least, int64_t most,
                     int32_t *number);

/* Numbers from least to most with commas between them, appended to list[FD_LIST_MAX], of which *count are taken. */
bool fd_parse_list(const char *command, const char *option, const char *text, int64_t least, int64_t most,
                   int64_t *list, int *count);

/* The same, of numbers of rungs in the ladder. */
bool fd_parse_rungs(const char *command, const char *text, int64_t *list, int *count);

/* Was the rung asked for? No list means all. */
bool fd_in_list(const int64_t *list, int count, int64_t number);

/* "32:8": query heads and KV heads, the first a multiple of the second. */
bool fd_parse_heads(const char *command, const char *text, int32_t *heads_q, int32_t *heads_kv);

/* "fff", "bbf": one letter a dtype of q, of k and v, of o. */
bool fd_parse_dtypes(const char *command, const char *text, int32_t *dtype_q, int32_t *dtype_kv, int32_t *dtype_o);

/* Where rungs run: "cpu", "emu" or "gpu", as fd_where() has it. */
bool fd_parse_where(const char *command, const char *text, const char **where);

/* SIZE by name, as fd_size. */
bool fd_parse_size(const char *command, const char *text, int *size);

/* After getopt_long() returned something that no option of the command is, or when it left words over. */
bool fd_bad_word(const char *command, int argc, char **argv, int option);

#endif /* FD_PARSE_H */
