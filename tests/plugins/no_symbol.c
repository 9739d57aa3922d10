/* Exports something else. */
#define OWN_ENTRY
#include "plugin.h"
extern const void *const attention[2];
const void *const attention[2] = {(const void *)run, (const void *)workspace_bytes};
