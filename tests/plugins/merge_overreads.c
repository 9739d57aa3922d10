/* Reads one part more than there are. */
#define LAST(n) ((n) + 1)
#include "merge.h"
