/* ladder.h: every rung, in order of its number. The table itself, build/ladder.c, is written by the Makefile from the
 * files reference/NN_name.c and cuda/NN_name.cu, each of which defines fd_rung_NN_name: adding a file is enough. */
#ifndef FD_LADDER_H
#define FD_LADDER_H

#include "fd.h"

extern const fd_rung *const fd_ladder[];
extern const int fd_ladder_count;
extern const int fd_ladder_cpu_count; /* of these, the first: rungs that run on the host. The rest are CUDA rungs */

/* The rung of that number, or NULL. */
const fd_rung *fd_ladder_find(int32_t number);

#endif /* FD_LADDER_H */
