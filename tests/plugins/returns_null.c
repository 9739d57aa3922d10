/* Serves no host. */
#define OWN_ENTRY
#include "plugin.h"
extern const void *const unused[2];
const void *const unused[2] = {(const void *)run, (const void *)workspace_bytes};
const fd_rung *fd_plugin(uint32_t host_abi)
{
    (void)host_abi;
    return NULL;
}
