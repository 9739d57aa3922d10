/* Prints what a terminal obeys, and what is no text. */
#define BEFORE(p, c) printf("\033[2Jcleared \302\233 \377 \342\200\256 \303\251\n")
#include "plugin.h"
