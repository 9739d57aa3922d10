/* parametric.h: rung 05 with a fault of adjustable size. A mutant asks whether the judge sees a bug; this asks how small
 * a bug may be before it does not. The claims stay those of rung 05. */
#ifndef FD_PARAMETRIC_H
#define FD_PARAMETRIC_H

#include "fd.h"

/* What is wrong. The level says how little: the fault halves with each. Level 0 is no fault, whatever the kind. */
enum fd_fault {
    FD_FAULT_SCALE = 0, /* sm_scale is off by a factor 1 + 2^-level */
    FD_FAULT_KEY, /* one key of each sequence, at a seeded position, is left out: one of 2^level, if so many are there */
    FD_FAULT_PARTIAL, /* partial_o is stored with `level` significand bits */
    FD_FAULT_WEIGHTS, /* each weight is off by a factor 1 + 2^-level or 1 - 2^-level, a seeded coin for each key */
    FD_FAULT_SUM_V,   /* the sum over p v of a split is rounded to `level` bits after each addition */
    FD_FAULT_SUM_L,   /* so is l of a split */
    FD_FAULT_EXP,     /* the argument of exp is rounded to `level` bits */
    FD_NUM_FAULTS
};

#define FD_FAULT_BITS 24       /* of fp32: faults of precision end below it */
#define FD_PARAMETRIC_SLOTS 64 /* faulty rungs at a time */

const char *fd_fault_name(int32_t fault);

/* The size of the fault as a relative error: 2^-level in every kind (the unit roundoff of `level` bits; one key of 2^level). */
double fd_fault_size(int32_t level);

/* Gives the slot that fault and returns its rung. A rung takes no argument of its own, so the fault sits in static
 * memory: a slot may be filled anew once nobody runs its rung any more. */
const fd_rung *fd_parametric(int slot, int32_t fault, int32_t level);

/* x with `bits` significand bits, to nearest, ties to even (with 1 bit: to the even exponent). 0, or 24 and more: x. */
float fd_round_to_bits(float x, int32_t bits);

#endif /* FD_PARAMETRIC_H */
