/* killtable.h: which rule catches which wrong rung, on which inputs; what cmd_killtable.c fills and killtable.c
 * prints. */
#ifndef FD_KILLTABLE_H
#define FD_KILLTABLE_H

#include <stdio.h>

#include "judge.h"
#include "rules.h"
#include "rules_inputs.h"

#define FD_KILL_SUBJECTS 192 /* mutants and right rungs together, at most */
#define FD_KILL_RULES 24
#define FD_KILL_TIERS 5 /* of our judge, at most; 0 is ours as a whole */
#define FD_KILL_DTYPES 3

/* One rule on one subject, over the cases of one kind of inputs and one dtype_o. */
typedef struct fd_kill {
    int32_t applied, caught; /* cases */
    double margin;           /* the largest */
} fd_kill;

typedef struct fd_kill_subject {
    const fd_rung *rung;
    bool right;    /* a rung of the ladder: whatever catches it is a false alarm */
    char name[64]; /* of a mutant; "rung 05 split-KV" */
    fd_kill rule[FD_KILL_RULES][FD_NUM_INPUTS][FD_KILL_DTYPES];
    fd_kill tier[FD_KILL_TIERS][FD_NUM_INPUTS][FD_KILL_DTYPES];
} fd_kill_subject;

typedef struct fd_kill_table {
    int count;
    fd_kill_subject subjects[FD_KILL_SUBJECTS];
} fd_kill_table;

/* "ours", "exact", "proved", ...: index 0 to FD_KILL_TIERS - 1. */
const char *fd_kill_tier_name(int tier);

/* Both kinds of inputs, or one, all dtypes together. */
fd_kill fd_kill_sum(fd_kill kills[FD_NUM_INPUTS][FD_KILL_DTYPES], int inputs /* -1: both */);

/* 100 columns: mutants down, rules across, right rungs, totals, legend. */
void fd_kill_print(fd_kill_table *table, FILE *out);

/* mutant,rule,inputs,dtype,caught,margin; before it a comment line for each rule. */
void fd_kill_csv(fd_kill_table *table, FILE *out);

#endif /* FD_KILLTABLE_H */
