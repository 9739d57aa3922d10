/* Writes an lse that nobody wants. */
#define WANTS_LSE(p) true
#include "merge.h"
