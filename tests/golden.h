/* golden.h: golden vectors (data/golden/README.md): the inputs of a case, the exact answer, and the moments from which
 * anybody can evaluate the closed bound, in one safetensors file. The numbers come from the MPFR oracle, never from a cache
 * or from a faster one, so that they never change. */
#ifndef FD_GOLDEN_H
#define FD_GOLDEN_H

#include "cases.h"

#define FD_GOLDEN_VERSION 1 /* of names, layout and numbers; a change of any bit raises it */

/* The file's name of a case: its own, with '-' for what a shell or a file system minds. */
void fd_golden_name(const fd_case *c, char *name, size_t n);

/* Writes DIR/NAME.safetensors, whole or not at all. FD_OK, FD_INVALID or FD_NO_MEMORY, with one line in why. */
fd_status fd_golden_write(const fd_case *c, const char *folder, char *why, size_t n);

#endif /* FD_GOLDEN_H */
