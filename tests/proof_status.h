/* proof_status.h: on which open obligations of proofs/README.md section 11 a bound rests. */
#ifndef FD_PROOF_STATUS_H
#define FD_PROOF_STATUS_H

#include <stdbool.h>
#include <stddef.h>

#include "fd.h"

/* Is the bound that these claims get a theorem that Coq has checked, from the counts to U? If not, `open` (at most n bytes)
 * says what is derived on paper only, "proof open: merges of (o, lse); flushed subnormals"; else it is empty. */
bool fd_proof_closed(const fd_arith *arith, char *open, size_t n);

#endif /* FD_PROOF_STATUS_H */
