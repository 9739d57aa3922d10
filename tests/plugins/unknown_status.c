/* Returns what is no fd_status. */
#define AFTER(p, c) return (fd_status)42
#include "plugin.h"
