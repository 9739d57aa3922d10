/* claims_options.h: hypotheses on the command line: what an implementation that is not of this project says about
 * its own arithmetic. Whatever is not said stays as fd_arith has it: fp32, the host's exp, any merge tree. */
#ifndef FD_CLAIMS_OPTIONS_H
#define FD_CLAIMS_OPTIONS_H

#include "fd.h"

/* The options, for getopt's table and for a usage text: their names without dashes, NULL at the end. */
extern const char *const fd_claims_option_names[];
extern const char fd_claims_options_help[];

/* Claims before any option: size set, the rest 0. */
fd_arith fd_claims_none(void);

/* Takes the option of that name. FD_OK; FD_UNSUPPORTED if there is none of that name; FD_INVALID with one line in
 * why, at most n bytes, if its value is none. */
fd_status fd_claims_option(const char *name, const char *value, fd_arith *claims, char *why, size_t n);

/* After the last option: do they go together? FD_OK, or FD_INVALID with one line in why. */
fd_status fd_claims_options_check(const fd_arith *claims, char *why, size_t n);

#endif /* FD_CLAIMS_OPTIONS_H */
