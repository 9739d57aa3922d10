/* options.h: the options of a command as a table, read by getopt_long() (argp, which has tables, is in no C library but
 * glibc). What is wrong is said in one line on stderr:
 *
 *     flashdecode bench: --batch 0; give a number from 1 to 2147483647
 */
#ifndef FD_OPTIONS_H
#define FD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define FD_LIST_MAX 64 /* numbers in a list */

typedef struct fd_option fd_option;

/* Takes what was given to an option (NULL to a flag), or says what is wrong, with fd_bad_value(), and returns false. */
typedef bool fd_option_take(const char *command, const fd_option *option, const char *text);

struct fd_option {
    const char *name;         /* without dashes; NULL behind the last of a table */
    fd_option_take *take;     /* NULL: a flag */
    void *to[3];              /* what is set; unchanged where the option is not given */
    int64_t least, most;      /* of numbers */
    const char *const *names; /* of words, NULL behind the last */
    bool operand;             /* a word that has no option before it, and must be there */
};

/* Reads argv, argv[0] being the command's name. -1: go on; else the exit code, after --help, for which usage is
 * printed, or after bad usage. Of an option that is given twice the later one counts; lists grow. */
int fd_options_parse(int argc, char **argv, const char *usage, const fd_option *options);

fd_option fd_opt_flag(const char *name, bool *to);
fd_option fd_opt_text(const char *name, const char **to);
fd_option fd_opt_number(const char *name, int32_t *to, int64_t least, int64_t most);
fd_option fd_opt_long(const char *name, int64_t *to, int64_t least, int64_t most);
fd_option fd_opt_real(const char *name, double *to, int64_t least); /* finite, and not below least */
/* One of names[]; *to is its index. */
fd_option fd_opt_word(const char *name, int32_t *to, const char *const *names);
/* Numbers with commas between them, appended to list[FD_LIST_MAX], of which *count are taken. */
fd_option fd_opt_list(const char *name, int64_t *list, int *count, int64_t least, int64_t most);
/* Anything else: take() finds `to` in option->to[0]. */
fd_option fd_opt_own(const char *name, fd_option_take *take, void *to);
fd_option fd_operand(fd_option option);

/* What several commands have. */
fd_option fd_opt_rungs(int64_t *list, int *count);                              /* --rung 5,7: numbers of the ladder */
fd_option fd_opt_heads(int32_t *heads_q, int32_t *heads_kv);                    /* --heads 32:8 */
fd_option fd_opt_dtypes(int32_t *dtype_q, int32_t *dtype_kv, int32_t *dtype_o); /* --dtype bbf */
fd_option fd_opt_where(const char **where); /* --where cpu, emu or gpu: fd_where() */
fd_option fd_opt_size(int32_t *size);       /* --size small, class or full: fd_size */

extern const char *const fd_size_names[4];

/* Was the number asked for? No list means all are. */
bool fd_in_list(const int64_t *list, int count, int64_t number);

/* Is a CUDA rung among them? If not, that is said. */
bool fd_some_cuda_rung(const char *command, const int64_t *list, int count);

/* "flashdecode COMMAND: --OPTION TEXT; CURE". Returns false. */
bool fd_bad_value(const char *command, const fd_option *option, const char *text, const char *cure);

/* The same of options that do not go together: "flashdecode COMMAND: WHAT; CURE". Returns FD_EXIT_USAGE. */
int fd_bad_usage(const char *command, const char *what, const char *cure);

#endif /* FD_OPTIONS_H */
