/* emulate_options.h: what `flashdecode emulate` was asked for. */
#ifndef FD_EMULATE_OPTIONS_H
#define FD_EMULATE_OPTIONS_H

#include "cases.h"
#include "emu/emulator.h"
#include "options.h"

typedef struct fd_emulate_options {
    int64_t rungs[FD_LIST_MAX];
    int num_rungs; /* 0: all */
    fd_case c;     /* of the table, or made of the shape */
    bool padded;   /* strides as in `verify`, not dense */
    fd_emu_options emulator;
    const char *csv; /* NULL: none */
} fd_emulate_options;

/* Fills options. Returns -1 to go on, or the exit code after --help or a message on stderr. */
int fd_emulate_parse(int argc, char **argv, fd_emulate_options *options);

#endif /* FD_EMULATE_OPTIONS_H */
