/* Takes no notice of rows that no part has a key for. */
#define NO_KEYS(m) ((m) != (m))
#include "merge.h"
