/* An assertion fails. */
#undef NDEBUG
#include <assert.h>
#define BEFORE(p, c) assert((p)->batch == 0 && "a batch of this size")
#include "plugin.h"
