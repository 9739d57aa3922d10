/* Writes to an address that is nobody's. */
#define BEFORE(p, c) *(volatile float *)(uintptr_t)0x123456789000 = 1.0f
#include "plugin.h"
