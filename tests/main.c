/* main.c: build/flashdecode. */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <fenv.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "commands.h"
#include "observe.h"
#include "text.h"
#include "worker_protocol.h"

#define THREADS_MOST 1024 /* as of --threads */

static const struct {
    const char *name, *what;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"ladder", "list the rungs and what each changes", fd_cmd_ladder},
    {"plan", "where each policy cuts the cache, and how the grid fills a machine", fd_cmd_plan},
    {"verify", "judge every rung on every case, against the oracle", fd_cmd_verify},
    {"huge", "every rung past 2^31 elements and 2^32 bytes", fd_cmd_huge},
    {"check", "judge somebody else's plug-in or tensors", fd_cmd_check},
    {"cases", "write the inputs of cases as tensors, for check", fd_cmd_cases},
    {"bench", "time every rung against reading the same bytes", fd_cmd_bench},
    {"observe", "on a GPU: when and where blocks run, what a combine costs", fd_cmd_observe},
    {"decode", "time per token as the cache grows, and are the bits right", fd_cmd_decode},
    {"splits", "error and time against the number of splits", fd_cmd_splits},
#ifndef FD_NO_EMULATOR
    {"emulate", "run CUDA rungs on the emulator: faults, races, memory counts", fd_cmd_emulate},
#endif
    {"mutants", "judge the wrong rungs: each must die, by name", fd_cmd_mutants},
    {"relations", "tier 4: how the answers of two runs must hang together", fd_cmd_relations},
    {"killtable", "our tiers beside the rules that other projects publish", fd_cmd_killtable},
    {"curves", "how small may a fault be before the judge misses it", fd_cmd_curves},
    {"seeds", "judge right rungs on random instances: how far out do they come", fd_cmd_seeds},
    {"oracle", "print the exact answer of a case", fd_cmd_oracle},
    {"golden", "write the golden vectors anew", fd_cmd_golden},
    {"hashes", "have cases and answers the same bits here as elsewhere", fd_cmd_hashes},
    {"exp", "measure this machine's expf and logf on every float", fd_cmd_exp},
};

static void usage(FILE *f)
{
    fprintf(f, "usage: flashdecode COMMAND [options]\n\n");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        fprintf(f, "  %-9s %s\n", commands[i].name, commands[i].what);
    }
    fprintf(f, "\nflashdecode COMMAND --help says more. Exit codes: 0 pass (skips are counted\n"
               "in the last line), 1 a numeric failure, 2 usage or bad input, 77 nothing could run.\n");
}

/* A result file must not get the number of a stream that the caller closed: what is printed would land in it. */
static void open_streams(void)
{
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++) {
        if (fcntl(stream, F_GETFD) < 0) { /* opened for reading: who prints there gets an error, as before */
            (void)open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}

/* A library that gives up (libgomp without its threads, GMP without memory) ends the program with code 1. That is no
 * verdict. */
static bool decided;

static void on_exit_of_library(void)
{
    if (!decided) {
        fflush(NULL);
        _exit(FD_EXIT_USAGE);
    }
}

/* OMP_NUM_THREADS may be anything; far more threads than processors overflow libgomp's stack. */
static void limit_threads(void)
{
#ifdef _OPENMP
    if (omp_get_max_threads() > THREADS_MOST) {
        omp_set_num_threads(THREADS_MOST);
    }
#endif
}

int main(int argc, char **argv)
{
    open_streams();
    signal(SIGCHLD,
           SIG_DFL);      /* a caller that ignores it has the kernel bury our children before we learn how they died */
    fesetenv(FE_DFL_ENV); /* -ffast-math among CFLAGS, or a preloaded library, flushes subnormals before main() */
    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0)) {
        usage(stdout);
        return FD_EXIT_PASS;
    }
    if (argc >= 2 && strcmp(argv[1], "worker") == 0) { /* what `check` starts; nothing for people */
        return fd_cmd_worker(argc - 1, argv + 1);
    }
    static char program[FD_TEXT_WORD];
    if (argc >= 1 && strcmp(fd_text_word(argv[0], program), "TARGET") != 0) {
        fd_program = program;
    }
    limit_threads();
    for (size_t i = 0; argc >= 2 && i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            atexit(on_exit_of_library);
            const int code = commands[i].run(argc - 1, argv + 1);
            decided = true;
            /* A full disk behind standard output is bad input, not a pass. */
            if (fflush(stdout) != 0 || ferror(stdout)) {
                fprintf(stderr, "flashdecode: cannot write standard output: is the disk full?\n");
                return FD_EXIT_USAGE;
            }
            return code;
        }
    }
    usage(stderr);
    return FD_EXIT_USAGE;
}
