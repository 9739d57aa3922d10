/* decode_options.h: what `flashdecode decode` was asked for. */
#ifndef FD_DECODE_OPTIONS_H
#define FD_DECODE_OPTIONS_H

#include "decode.h"
#include "options.h"

typedef struct fd_decode_options {
    fd_decode_shape shape;
    int64_t rungs[FD_LIST_MAX];
    int num_rungs; /* 0: all that run on the host */
    int32_t steps, append, prompt, checks;
    int32_t threads; /* 0: as many as cores */
    const char *csv; /* NULL: none */
} fd_decode_options;

/* Fills options. Returns -1 to go on, or the exit code after --help or a message on stderr. */
int fd_decode_parse(int argc, char **argv, fd_decode_options *options);

#endif /* FD_DECODE_OPTIONS_H */
