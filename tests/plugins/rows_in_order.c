/* Heeds the padding of q's rows, and takes them to lie in the order of their indices. */
#define Q_AT(p, b, h) ((int64_t)(b) * (p)->heads_q + (h)) * (p)->q.stride[2]
#include "plugin.h"
