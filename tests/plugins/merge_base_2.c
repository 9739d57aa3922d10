/* Takes the parts' lse for one in base 2. */
#define WEIGHT(x) exp2f(x)
#include "merge.h"
