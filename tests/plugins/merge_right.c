/* A right merge(). */
#include "merge.h"
