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
    const char *name;               /* what verdicts call it; NULL: what it calls itself */
    const char *case_name, *family; /* only these cases; NULL: all of the size */
    int32_t size;                   /* fd_size of the cases */
    bool smoke;                     /* instead: a case of each family, under 10 s */
    enum fd_tier lowest, highest;   /* tiers that are asked; METAMORPHIC is the relations */
    bool declared;                  /* claims were given on the command line, and replace the target's own: */
    fd_arith claims;
    int32_t seconds;   /* that one run of a plug-in may take */
    int64_t megabytes; /* of memory that its process may have beyond the case's own tensors; 0: no limit */
    bool sanitize;     /* GPU plug-ins: under compute-sanitizer */
    bool time;         /* plug-ins: against reading k and v */
    const char *csv;   /* NULL: not asked for */
    const char *junit;
    const char *baseline;
    double growth; /* of an error against the baseline that is no regression yet; 1: any growth is one */
    int argc;      /* the command as typed, for the machine record */
    char *const *argv;
} fd_trial_options;

/* Where a verdict stands against the baseline's. */
enum fd_standing {
    FD_STANDING_NONE = 0, /* no baseline, or as it was */
    FD_STANDING_FIXED,    /* failed, and passes */
    FD_STANDING_KNOWN,    /* failed, and fails: not held against it */
    FD_STANDING_WORSE     /* a regression: passed before, or its error was smaller, or nobody had asked */
};

/* How long a plug-in takes; over: each run's time over that of the reading of k and v right after it. */
typedef struct fd_trial_time {
    int32_t repeats; /* 0: not timed */
    int64_t bytes;   /* of k and v */
    double ns_median, ns_p25, ns_p75, floor_ns, over_median, over_p25, over_p75;
    double rung_over; /* the same of rung 05, in between, on the host; 0: it was not timed */
} fd_trial_time;

/* One verdict. */
typedef struct fd_trial_line {
    char name[128];        /* of the case, of relation and case, or of the file: what --case takes, where that is one */
    char group[32];        /* "tiers", "relations", "tensors": a suite of JUnit */
    int32_t verdict, tier; /* fd_verdict, fd_tier */
    char reason[320];      /* of a failure or a skip, one line */
    char detail[256];      /* of a failure: the element, got and want, or what the process said; "" */
    char looks_like[200];  /* "" if nobody asked */
    char declared[FD_CLAIMS_TEXT]; /* the hypotheses of tier 2, in words */
    char replay[640];              /* a command */
    char notes[480];               /* what was made of the input: "lse is in base 2"; "" */
    double err_max, err_p50, bound, ratio, lse_err, lse_ratio, z_max, z_lse; /* as in fd_outcome; 0 where unknown */
    int64_t vacuous, undecided;
    double seconds; /* that the verdict took; -1: unknown */
    fd_trial_time time;
    int32_t standing;  /* fd_standing */
    char against[160]; /* what the baseline says, where the standing is not NONE */
} fd_trial_line;

/* A time is worse if the middle half of its runs lies above that of the baseline's, and its median has grown by more than
 * this, both over the reading and over rung 05: what slows everything down is not the plug-in's. */
#define FD_TIME_GROWTH 1.05

struct fd_baseline;

typedef struct fd_trial {
    fd_trial_options options;
    char implementation[128]; /* its name, for every heading: what the plug-in calls itself, or the file */
    char place[8];            /* "cpu", "gpu", "emu", "file" */
    char device[96];          /* the name of a GPU; "": none */
    fd_trial_line *lines;
    int32_t count, capacity;
    struct fd_baseline *baseline; /* NULL: every failure counts */
    int64_t not_run; /* verdicts that were not reached, after a limit on crashes, say; not_run_why names it */
    char not_run_why[200];
    char under[FD_CLAIMS_TEXT]; /* the hypotheses that a failure was last printed with: they are not repeated */
    char over_all[200];         /* "looks like: ...", over all failures; "": nobody asked */
    char unasked[200];          /* what it says it takes, and no case asks for; "": nothing */
} fd_trial;

/* What every heading calls it. */
static inline const char *fd_trial_name(const fd_trial *trial)
{
    return trial->options.name != NULL ? trial->options.name : trial->implementation;
}

/* The command that gives this verdict again: program, target and options as words of a shell. case_name NULL: of no case. */
void fd_trial_replay(char *text, size_t n, const char *target, const char *options, const char *case_name);

/* Keeps a copy of the line and says nothing. FD_OK or FD_NO_MEMORY. */
fd_status fd_trial_keep(fd_trial *trial, const fd_trial_line *line);

/* Keeps a copy of the line, holds it against the baseline, and prints it if it is a failure that counts, `detail` (may be
 * NULL) between its reason and what it looks like. FD_OK or FD_NO_MEMORY. */
fd_status fd_trial_add(fd_trial *trial, const fd_trial_line *line, const char *detail);

/* A line from an outcome of the judge; the caller fills name, group, looks_like, replay and seconds. */
void fd_trial_line_of(const fd_outcome *outcome, fd_trial_line *line);

/* "pass", "fail", "expected-failure", "skip"; "exact" .. "metamorphic", "none". fd_tier_named: FD_TIER_NONE if there is none. */
const char *fd_verdict_name(int32_t verdict);
const char *fd_tier_name(int32_t tier);
enum fd_tier fd_tier_named(const char *name);

/* Judges the target. FD_OK whatever the verdicts are; else the target could not be judged (no such file, no plug-in,
 * not the tensors of a problem), and why says what is wrong and how to cure it. */
fd_status fd_trial_plugin(fd_trial *trial, char *why, size_t n);
fd_status fd_trial_dump(fd_trial *trial, char *why, size_t n);

/* The merge() of the plug-in that the worker has loaded, a line a check. FD_OK whatever the verdicts are. */
fd_status fd_trial_merge(fd_trial *trial, const fd_rounding *rounding, char *why, size_t n);

/* The plug-in's times, a line each. FD_INVALID on the emulator, and on a GPU without GPU code in this program. */
fd_status fd_trial_times(fd_trial *trial, char *why, size_t n);

/* Reads the former --csv that options.baseline names, before anything is judged. FD_OK (also without one), or FD_INVALID with
 * one line in why: no such file, none of --csv, made with another case table or contract. */
fd_status fd_trial_read_baseline(fd_trial *trial, char *why, size_t n);

/* Sets standing and against of a line, and in a line whose error has grown verdict and reason, too. */
void fd_baseline_hold(struct fd_baseline *baseline, double growth, fd_trial_line *line);
void fd_baseline_free(struct fd_baseline *baseline); /* NULL is legal */

/* It runs on this device ("": none): a baseline of another one is of another machine. NULL is legal. */
void fd_baseline_device(struct fd_baseline *baseline, const char *device);

/* Verdicts of the baseline that nobody asked for this time, and whether it comes from another machine. */
int32_t fd_baseline_unmet(const struct fd_baseline *baseline);
const char *fd_baseline_machine(const struct fd_baseline *baseline);

/* The plug-in once more, on two small cases, under each tool of compute-sanitizer: a line each. FD_INVALID without that
 * program. */
fd_status fd_trial_sanitize(fd_trial *trial, char *why, size_t n);

/* Writes the lines as CSV and as JUnit XML, each whole or not at all. FD_OK, or FD_INVALID with one line in why. */
fd_status fd_trial_write_csv(const fd_trial *trial, const char *path, char *why, size_t n);
fd_status fd_trial_write_junit(const fd_trial *trial, const char *path, char *why, size_t n);

/* The summary, ending with "N passed, N failed, N skipped". */
void fd_trial_summary(const fd_trial *trial);
int fd_trial_exit_code(const fd_trial *trial);
void fd_trial_free(fd_trial *trial);

#endif /* FD_TRIAL_H */
