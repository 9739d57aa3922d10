/* Leaves flush-to-zero set. */
#if defined(__x86_64__)
#include <xmmintrin.h>
#define AFTER(p, c) _mm_setcsr(_mm_getcsr() | 0x8040u)
#else
#define AFTER(p, c) fesetround(FE_UPWARD)
#include <fenv.h>
#endif
#include "plugin.h"
