/* mutants.h: every wrong rung, in the order of its file name. The table, build/mutants.c, is written by the Makefile. */
#ifndef FD_MUTANTS_H
#define FD_MUTANTS_H

#include "fd.h"

extern const fd_rung *const fd_mutants[];
extern const int fd_mutants_count;

/* Of each: its file under tests/mutants, and what it changes, in lines "FILE:LINE" of the parent, "- old", "+ new". */
extern const char *const fd_mutant_files[];
extern const char *const fd_mutant_changes[];

/* The rungs as committed, which the mutants are made from: what a mutant's answer is compared with. build/parents.c. */
extern const fd_rung *const fd_parents[];
extern const int fd_parents_count;

#endif /* FD_MUTANTS_H */
