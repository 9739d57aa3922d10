/* Takes the strides of its own o and lse for those of the parts. */
#define PART_AT(part, own) (own)
#include "merge.h"
