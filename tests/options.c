/* options.c: see options.h. */
#include "options.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "execute.h"
#include "ladder.h"

#define OPTIONS_MAX 48
#define FIRST 256 /* getopt's value of options[0]: above every letter */
#define HEADS_MAX 65536

const char *const fd_size_names[4] = {"small", "class", "full", NULL};

bool fd_bad_value(const char *command, const fd_option *option, const char *text, const char *cure)
{
    fprintf(stderr, "flashdecode %s: %s%s %s; %s\n", command, option->operand ? "" : "--", option->name, text, cure);
    return false;
}

int fd_bad_usage(const char *command, const char *what, const char *cure)
{
    fprintf(stderr, "flashdecode %s: %s; %s\n", command, what, cure);
    return FD_EXIT_USAGE;
}

bool fd_in_list(const int64_t *list, int count, int64_t number)
{
    bool found = count == 0;
    for (int i = 0; i < count; i++) {
        found |= list[i] == number;
    }
    return found;
}

bool fd_some_cuda_rung(const char *command, const int64_t *list, int count)
{
    for (int k = 0; k < fd_ladder_count; k++) {
        if (!fd_runs_on_host(fd_ladder[k]) && fd_in_list(list, count, fd_ladder[k]->number)) {
            return true;
        }
    }
    fprintf(stderr, "flashdecode %s: none of the rungs is a CUDA rung; flashdecode ladder lists them\n", command);
    return false;
}

/* ---- Sorts of values --------------------------------------------------------------------------- */

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

static bool take_text(const char *command, const fd_option *option, const char *text)
{
    (void)command;
    *(const char **)option->to[0] = text;
    return true;
}

static bool take_long(const char *command, const fd_option *option, const char *text)
{
    const char *end;
    int64_t value;
    if (!number_at(text, '\0', option->least, option->most, &value, &end)) {
        char cure[80];
        snprintf(cure, sizeof cure, "give a number from %" PRId64 " to %" PRId64, option->least, option->most);
        return fd_bad_value(command, option, text, cure);
    }
    *(int64_t *)option->to[0] = value;
    return true;
}

static bool take_number(const char *command, const fd_option *option, const char *text)
{
    int64_t value;
    fd_option wide = *option;
    wide.to[0] = &value;
    if (!take_long(command, &wide, text)) {
        return false;
    }
    *(int32_t *)option->to[0] = (int32_t)value;
    return true;
}

static bool take_real(const char *command, const fd_option *option, const char *text)
{
    char *end;
    const double value = strtod(text, &end);
    if (*text == '\0' || *end != '\0' || !(value >= (double)option->least && value < HUGE_VAL)) {
        char cure[64];
        snprintf(cure, sizeof cure, "give a number from %" PRId64, option->least);
        return fd_bad_value(command, option, text, cure);
    }
    *(double *)option->to[0] = value;
    return true;
}

static bool take_word(const char *command, const fd_option *option, const char *text)
{
    char cure[160] = "give";
    for (int32_t i = 0; option->names[i] != NULL; i++) {
        if (strcmp(text, option->names[i]) == 0) {
            *(int32_t *)option->to[0] = i;
            return true;
        }
        const char *before = i == 0 ? "" : option->names[i + 1] == NULL ? " or" : ",";
        const size_t used = strlen(cure);
        snprintf(cure + used, sizeof cure - used, "%s %s", before, option->names[i]);
    }
    return fd_bad_value(command, option, text, cure);
}

static bool take_list(const char *command, const fd_option *option, const char *text)
{
    int64_t *list = option->to[0];
    int *count = option->to[1];
    const char *end = text;
    for (const char *at = text;
         *count < FD_LIST_MAX && number_at(at, ',', option->least, option->most, &list[*count], &end); at = end + 1) {
        (*count)++;
        if (*end == '\0') {
            return true;
        }
    }
    char cure[120];
    snprintf(cure, sizeof cure, "give up to %d numbers from %" PRId64 " to %" PRId64 ", with commas between",
             FD_LIST_MAX, option->least, option->most);
    return fd_bad_value(command, option, text, cure);
}

static bool take_rungs(const char *command, const fd_option *option, const char *text)
{
    const int64_t *list = option->to[0];
    const int *count = option->to[1], before = *count;
    if (!take_list(command, option, text)) {
        return false;
    }
    for (int i = before; i < *count; i++) {
        if (fd_ladder_find((int32_t)list[i]) == NULL) {
            return fd_bad_value(command, option, text, "there is no such rung; flashdecode ladder lists them");
        }
    }
    return true;
}

static bool take_heads(const char *command, const fd_option *option, const char *text)
{
    const char *end;
    int64_t q, kv;
    if (!number_at(text, ':', 1, HEADS_MAX, &q, &end) || *end != ':' ||
        !number_at(end + 1, '\0', 1, HEADS_MAX, &kv, &end) || q % kv != 0) {
        return fd_bad_value(command, option, text, "give Q:KV, such as 32:8: Q at most 65536, and a multiple of KV");
    }
    *(int32_t *)option->to[0] = (int32_t)q;
    *(int32_t *)option->to[1] = (int32_t)kv;
    return true;
}

static bool take_dtypes(const char *command, const fd_option *option, const char *text)
{
    static const char letters[] = "fhb"; /* in the order of fd_dtype */
    if (strlen(text) != 3 || strspn(text, letters) != 3) {
        return fd_bad_value(command, option, text, "give three letters of f, h, b, such as fff or bbf");
    }
    for (int i = 0; i < 3; i++) {
        *(int32_t *)option->to[i] = (int32_t)(strchr(letters, text[i]) - letters);
    }
    return true;
}

static bool take_where(const char *command, const fd_option *option, const char *text)
{
    static const char *const names[] = {"cpu", "emu", "gpu", NULL};
    int32_t place;
    fd_option word = *option;
    word.to[0] = &place;
    word.names = names;
    if (!take_word(command, &word, text)) {
        return false;
    }
    *(const char **)option->to[0] = names[place];
    return true;
}

/* ---- Options ----------------------------------------------------------------------------------- */

fd_option fd_opt_flag(const char *name, bool *to)
{
    return (fd_option){.name = name, .to = {to}};
}

fd_option fd_opt_text(const char *name, const char **to)
{
    return (fd_option){.name = name, .take = take_text, .to = {to}};
}

fd_option fd_opt_number(const char *name, int32_t *to, int64_t least, int64_t most)
{
    assert(least >= INT32_MIN && most <= INT32_MAX);
    return (fd_option){.name = name, .take = take_number, .to = {to}, .least = least, .most = most};
}

fd_option fd_opt_long(const char *name, int64_t *to, int64_t least, int64_t most)
{
    return (fd_option){.name = name, .take = take_long, .to = {to}, .least = least, .most = most};
}

fd_option fd_opt_real(const char *name, double *to, int64_t least)
{
    return (fd_option){.name = name, .take = take_real, .to = {to}, .least = least};
}

fd_option fd_opt_word(const char *name, int32_t *to, const char *const *names)
{
    return (fd_option){.name = name, .take = take_word, .to = {to}, .names = names};
}

fd_option fd_opt_list(const char *name, int64_t *list, int *count, int64_t least, int64_t most)
{
    return (fd_option){.name = name, .take = take_list, .to = {list, count}, .least = least, .most = most};
}

fd_option fd_opt_own(const char *name, fd_option_take *take, void *to)
{
    return (fd_option){.name = name, .take = take, .to = {to}};
}

fd_option fd_operand(fd_option option)
{
    option.operand = true;
    return option;
}

fd_option fd_opt_rungs(int64_t *list, int *count)
{
    fd_option option = fd_opt_list("rung", list, count, 1, INT32_MAX);
    option.take = take_rungs;
    return option;
}

fd_option fd_opt_heads(int32_t *heads_q, int32_t *heads_kv)
{
    return (fd_option){.name = "heads", .take = take_heads, .to = {heads_q, heads_kv}};
}

fd_option fd_opt_dtypes(int32_t *dtype_q, int32_t *dtype_kv, int32_t *dtype_o)
{
    return (fd_option){.name = "dtype", .take = take_dtypes, .to = {dtype_q, dtype_kv, dtype_o}};
}

fd_option fd_opt_where(const char **where)
{
    return (fd_option){.name = "where", .take = take_where, .to = {where}};
}

fd_option fd_opt_size(int32_t *size)
{
    return fd_opt_word("size", size, fd_size_names);
}

/* ---- Reading a command line --------------------------------------------------------------------- */

/* getopt_long() met something that is no option of the command, or is given wrongly. */
static int refuse_word(const char *command, char **argv, int found)
{
    char word[80];
    snprintf(word, sizeof word, "%.79s", argv[optind - 1]);
    if (found == '?' && optopt > 0 && optopt < FIRST && optopt != 'h') { /* one letter, perhaps amid others */
        snprintf(word, sizeof word, "-%c", optopt);
    }
    const char *wrong = found == ':' ? "needs a value" : optopt >= FIRST ? "takes no value" : "is no option";
    fprintf(stderr, "flashdecode %s: %s %s; --help lists the options\n", command, word, wrong);
    return FD_EXIT_USAGE;
}

/* What --help does not say, nobody finds. */
static void assert_described(const char *usage, const fd_option *options)
{
    for (int k = 0; options[k].name != NULL; k++) {
        char word[64];
        snprintf(word, sizeof word, "%s%s", options[k].operand ? " " : "--", options[k].name);
        assert(strstr(usage, word) != NULL);
    }
    (void)usage;
}

/* The words that no option took. */
static int take_operands(int argc, char **argv, const fd_option *options)
{
    for (int k = 0; options[k].name != NULL; k++) {
        if (options[k].operand && optind == argc) {
            fprintf(stderr, "flashdecode %s: %s is missing; see --help\n", argv[0], options[k].name);
            return FD_EXIT_USAGE;
        }
        if (options[k].operand && !options[k].take(argv[0], &options[k], argv[optind++])) {
            return FD_EXIT_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "flashdecode %s: %s is not expected; see --help\n", argv[0], argv[optind]);
        return FD_EXIT_USAGE;
    }
    return -1;
}

int fd_options_parse(int argc, char **argv, const char *usage, const fd_option *options)
{
    struct option longs[OPTIONS_MAX + 2] = {{"help", no_argument, NULL, 'h'}};
    int count = 1;
    for (int k = 0; options[k].name != NULL; k++) {
        assert(k < OPTIONS_MAX);
        if (!options[k].operand) {
            const int has_value = options[k].take != NULL ? required_argument : no_argument;
            longs[count++] = (struct option){options[k].name, has_value, NULL, FIRST + k};
        }
    }
    optind = 1;
    opterr = 0;
    for (int found; (found = getopt_long(argc, argv, ":h", longs, NULL)) != -1;) {
        if (found == 'h') {
            assert_described(usage, options);
            fputs(usage, stdout);
            return FD_EXIT_PASS;
        }
        if (found < FIRST) {
            return refuse_word(argv[0], argv, found);
        }
        const fd_option *option = &options[found - FIRST];
        if (option->take == NULL) {
            *(bool *)option->to[0] = true;
        } else if (!option->take(argv[0], option, optarg)) {
            return FD_EXIT_USAGE;
        }
    }
    return take_operands(argc, argv, options);
}
