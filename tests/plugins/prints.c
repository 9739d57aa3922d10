/* A line of debugging was left in. */
#define BEFORE(p, c) printf("batch %d\nheads %d\n", (p)->batch, (p)->heads_q)
#include "plugin.h"
