/* commands.h: the subcommands of build/flashdecode. Each takes the arguments behind its name, with argv[0] the name,
 * and returns an exit code. */
#ifndef FD_COMMANDS_H
#define FD_COMMANDS_H

#include <stdbool.h>

#include "data_path.h"
#include "judge.h"
#include "libm_error.h"

enum {
    FD_EXIT_PASS = 0,
    FD_EXIT_FAIL = 1,    /* a numeric failure, or a verdict against somebody's code */
    FD_EXIT_USAGE = 2,   /* usage, or bad input */
    FD_EXIT_NOTHING = 77 /* nothing could be run */
};

int fd_cmd_ladder(int argc, char **argv);
int fd_cmd_plan(int argc, char **argv);
int fd_cmd_verify(int argc, char **argv);
int fd_cmd_huge(int argc, char **argv);
int fd_cmd_check(int argc, char **argv);
int fd_cmd_cases(int argc, char **argv);
int fd_cmd_mutants(int argc, char **argv);
int fd_cmd_killtable(int argc, char **argv);
int fd_cmd_bench(int argc, char **argv);
int fd_cmd_golden(int argc, char **argv);
int fd_cmd_hashes(int argc, char **argv);
int fd_cmd_decode(int argc, char **argv);
int fd_cmd_splits(int argc, char **argv);
int fd_cmd_oracle(int argc, char **argv);
int fd_cmd_relations(int argc, char **argv);
int fd_cmd_seeds(int argc, char **argv);
int fd_cmd_curves(int argc, char **argv);
int fd_cmd_emulate(int argc, char **argv);

/* "fff", "bbb": one letter a dtype of q, of k and v, of o. */
const char *fd_dtype_letters(const fd_case *c, char letters[4]);

/* What this program was called as: commands that it prints begin with it. "build/flashdecode" until main() says otherwise. */
extern const char *fd_program;

/* fp32 on this host: IEEE arithmetic, expf and logf as measured or assumed. */
fd_rounding fd_host_rounding(const fd_libm_error *libm);

/* One line of hypotheses: versions, whose exp, measured or assumed. */
void fd_print_hypotheses(const fd_libm_error *libm);

/* "got 0.75, want 1 (0x1.8p-1 and 0x1p+0, |difference| 0.25, pass line 0.01)". */
void fd_witness_text(const fd_witness *worst, char *text, size_t n);

/* The lines of a failure: where, got and want, which tier, what it looks like, how to replay it. */
void fd_print_failure(const fd_case *c, const fd_outcome *outcome, const char *looks_like, const char *replay);

/* A line that overwrites itself on stderr, if that is a terminal; done >= total erases it. */
void fd_progress(const char *what, int64_t done, int64_t total);

/* Exit code of a run: a failure wins, then "nothing ran". */
int fd_exit_code(int64_t passed, int64_t failed);

#endif /* FD_COMMANDS_H */
