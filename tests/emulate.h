/* emulate.h: a case on the emulated device, in allocations of exactly the bytes that its tensors have: no padding, no
 * slots behind the longest cache, so that every access outside them is seen by a rung compiled with hooks. Or, to count
 * what a GPU counted in `verify`, with the strides that the instance has. */
#ifndef FD_EMULATE_H
#define FD_EMULATE_H

#include "emu/emulator.h"
#include "instance.h"

typedef struct fd_emulation {
    fd_problem problem;        /* its tensors are in device memory, in the case's order */
    size_t o_bytes, lse_bytes; /* without padding */
} fd_emulation;

/* Copies the instance there, dense, or padded as it is. After a failure nothing needs freeing. */
fd_status fd_emulation_create(fd_emulation *emulation, const fd_instance *instance, bool padded, char *why, size_t n);
void fd_emulation_free(fd_emulation *emulation);

/* One run with everything the rung writes set to NaN before; o and lse as stored, without padding: [o_bytes], [lse_bytes].
 * num_splits: of the plan, 1 without one. FD_UNSUPPORTED: the rung does not take the problem. Reports and counts are the
 * emulator's. */
fd_status fd_emulation_run(const fd_emulation *emulation, const fd_rung *rung, void *o, void *lse, int32_t *num_splits,
                           char *why, size_t n);

#endif /* FD_EMULATE_H */
