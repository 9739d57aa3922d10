/* Rung 05 of the ladder, as a plug-in: its verdicts must be those of the program's own. */
#include "../../reference/05_split_kv.c"

#include "ladder.h"

const fd_rung *const fd_ladder[] = {NULL}; /* fd.c searches it */
const int fd_ladder_count = 0;

const fd_rung *fd_plugin(uint32_t host_abi)
{
    return host_abi == FD_ABI ? &fd_rung_05_split_kv : NULL;
}
