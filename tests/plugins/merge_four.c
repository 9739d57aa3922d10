/* Leaves out what comes behind four parts. */
#define COUNT(n) ((n) < 4 ? (n) : 4)
#include "merge.h"
