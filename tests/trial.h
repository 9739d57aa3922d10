/* trial.h: `flashdecode check TARGET`, the verdict on somebody else's implementation. TARGET is a plug-in (a shared
 * object, trial_plugin.c) or tensors (a folder or a .safetensors file, trial_dump.c). Either adds a line a verdict;
 * trial.c keeps them, prints the failures as they come and the summary at the end. */
#ifndef FD_TRIAL_H
#define FD_TRIAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "judge.h"

typedef struct fd_trial_options {
    const char *target;
    const char *case_name, *family; /* only these cases; NULL: all of the size */
    int32_t size;                   /* fd_size of the cases */
    bool smoke;                     /* instead: a case of each family, under 10 s */
    enum fd_tier lowest, highest;   /* tiers that are asked; METAMORPHIC is the relations */
    bool declared;                  /* claims were given on the command line, and replace the target's own: */
    fd_arith claims;
    int32_t seconds;   /* that one run of a plug-in may take */
    int64_t megabytes; /* of memory that its process may have beyond the case's own tensors; 0: no limit */
    bool sanitize;     /* GPU plug-ins: under compute-sanitizer */
    const char *csv;   /* NULL: not asked for */
    const char *junit;
    const char *baseline;
} fd_trial_options;

/* One verdict. */
typedef struct fd_trial_line {
    char name[128];        /* of the case, of relation and case, or of the file: what --case takes, where that is one */
    char group[32];        /* "tiers", "relations", "tensors": a suite of JUnit */
    int32_t verdict, tier; /* fd_verdict, fd_tier */
    char reason[320];      /* of a failure or a skip, one line */
    char looks_like[200];  /* "" if nobody asked */
    char declared[400];    /* the hypotheses of tier 2, in words */
    char replay[256];      /* a command */
    double err_max, err_p50, bound, ratio, lse_err, lse_ratio, z_max, z_lse; /* as in fd_outcome; 0 where unknown */
    int64_t vacuous, undecided;
    double seconds; /* that the verdict took; -1: unknown */
} fd_trial_line;

typedef struct fd_trial {
    fd_trial_options options;
    char implementation[128]; /* its name, for every heading: what the plug-in calls itself, or the file */
    char place[8];            /* "cpu", "gpu", "emu", "file" */
    fd_trial_line *lines;
    int32_t count, capacity;
    int64_t not_run; /* verdicts that were not reached, after a limit on crashes, say; not_run_why names it */
    char not_run_why[200];
} fd_trial;

/* Keeps a copy of the line, and prints it if it is a failure, `detail` (may be NULL) between its reason and what it
 * looks like. FD_OK or FD_NO_MEMORY. */
fd_status fd_trial_add(fd_trial *trial, const fd_trial_line *line, const char *detail);

/* A line from an outcome of the judge; the caller fills name, group, looks_like, replay and seconds. */
void fd_trial_line_of(const fd_outcome *outcome, fd_trial_line *line);

/* Judges the target. FD_OK whatever the verdicts are; else the target could not be judged (no such file, no plug-in,
 * not the tensors of a problem), and why says what is wrong and how to cure it. */
fd_status fd_trial_plugin(fd_trial *trial, char *why, size_t n);
fd_status fd_trial_dump(fd_trial *trial, char *why, size_t n);

/* Writes the lines as CSV and as JUnit XML, each whole or not at all. FD_OK, or FD_INVALID with one line in why. */
fd_status fd_trial_write_csv(const fd_trial *trial, const char *path, char *why, size_t n);
fd_status fd_trial_write_junit(const fd_trial *trial, const char *path, char *why, size_t n);

/* The summary, ending with "N passed, N failed, N skipped". */
void fd_trial_summary(const fd_trial *trial);
int fd_trial_exit_code(const fd_trial *trial);
void fd_trial_free(fd_trial *trial);

#endif /* FD_TRIAL_H */
