/* A descriptor of which only the size and the ABI are right. */
#define OWN_ENTRY
#include "plugin.h"
extern const void *const unused[2];
const void *const unused[2] = {(const void *)run, (const void *)workspace_bytes};
static fd_rung garbage;
const fd_rung *fd_plugin(uint32_t host_abi)
{
    memset(&garbage, 0x5a, sizeof garbage);
    garbage.size = sizeof garbage;
    garbage.abi = host_abi;
    return &garbage;
}
