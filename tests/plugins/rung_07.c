/* Rung 07 of the ladder, as a plug-in: it has a merge(). */
#include "../../reference/07_lse_merge.c"

#include "ladder.h"

const fd_rung *const fd_ladder[] = {NULL}; /* fd.c searches it */
const int fd_ladder_count = 0;

const fd_rung *fd_plugin(uint32_t host_abi)
{
    return host_abi == FD_ABI ? &fd_rung_07_lse_merge : NULL;
}
