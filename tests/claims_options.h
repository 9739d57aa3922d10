/* claims_options.h: hypotheses on the command line: what an implementation that is not of this project says about
 * its own arithmetic. Whatever is not said stays as fd_arith has it: fp32, the host's exp, any merge tree. */
#ifndef FD_CLAIMS_OPTIONS_H
#define FD_CLAIMS_OPTIONS_H

#include "fd.h"

/* The names of the options, without dashes, NULL at the end. */
extern const char *const fd_claims_option_names[];

/* Their part of a usage text. */
#define FD_CLAIMS_OPTIONS_HELP                                                                                         \
    "  --accumulate HOW  sums in fp32 (default); fp16: every result rounded to it;\n"                                  \
    "                    tensor-core: q.k and p v by instructions with fp32 sums.\n"                                   \
    "                    bf16-p, fp16-p: tensor-core, --weights bf16 or fp16\n"                                        \
    "  --mma-keys N      products that one such instruction adds (default 16)\n"                                       \
    "  --mma-error X     its error over its sum of |addends| (default 9.6e-7, as 16\n"                                 \
    "                    additions in fp32, H100 included; A100 1.2e-6, V100 2.4e-6)\n"                                \
    "  --weights TYPE    rounded to bf16 or fp16 before they meet V (default fp32:\n"                                  \
    "                    not); bf16x2, fp16x2: in two parts, a high and a low one\n"                                   \
    "  --l WHICH         l sums the weights unrounded (default) or rounded\n"                                          \
    "  --partials TYPE   partial_o is stored in fp32 (default), bf16 or fp16\n"                                        \
    "  --exp-ulp X       exp errs by at most X units in the last place of a float,\n"                                  \
    "                    log too without --log-ulp (default: as measured here)\n"                                      \
    "  --log-ulp X       the same for log\n"                                                                           \
    "  --order TREE      how the keys of a row are joined (default any):\n"                                            \
    "                      any           any tree, a rescale and an addition a merge\n"                                \
    "                      sequential    one after another, the maximum known\n"                                       \
    "                      online        one after another, with a running maximum\n"                                  \
    "                      split:N       splits of N keys, each sequential, divided\n"                                 \
    "                                    by its own l, then merged in sequence\n"                                      \
    "                      split:N,online         each with a running maximum\n"                                       \
    "                      split:N,...,lse        merged as (o, lse)\n"                                                \
    "                      split:N,...,rescale    not divided before the merge\n"                                      \
    "                      ...,tree      merged in pairs\n"

/* Claims before any option: size set, the rest 0. */
fd_arith fd_claims_none(void);

/* Takes the option of that name. FD_OK; FD_UNSUPPORTED if there is none of that name; FD_INVALID with one line in
 * why, at most n bytes, if its value is none. */
fd_status fd_claims_option(const char *name, const char *value, fd_arith *claims, char *why, size_t n);

/* After the last option: do they go together? FD_OK, or FD_INVALID with one line in why. */
fd_status fd_claims_options_check(const fd_arith *claims, char *why, size_t n);

#endif /* FD_CLAIMS_OPTIONS_H */
