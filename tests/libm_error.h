/* libm_error.h: how far this machine's expf and logf are from exp and log.
 *
 * The proofs need numbers: |expf(x) - exp x| <= exp_rel exp x + exp_abs, and the same for logf. Few C libraries
 * promise them, so they are measured on every float of each range; only the far tail, where expf is 0, is sampled.
 * The reference is the library's double exp and log, assumed good to 2^-50 relative; that is spot-checked with MPFR,
 * and so is the worst float of each range. Rounding is to nearest. */
#ifndef FD_LIBM_ERROR_H
#define FD_LIBM_ERROR_H

#include <stdbool.h>
#include <stdio.h>

#include "fd.h"

/* The functions under test. */
typedef struct fd_libm {
    float (*exp)(float);
    float (*log)(float);
} fd_libm;

extern const fd_libm fd_libm_host;

/* Errors are rounded up, the slack of the reference included. */
typedef struct fd_libm_error {
    double exp_rel;          /* x <= 0, exp x >= 2^-126: relative */
    double exp_abs;          /* x <= 0, exp x < 2^-126: absolute */
    double exp_rel_positive; /* 0 < x: relative, where exp x does not round to infinity */
    double log_rel;          /* 1 <= x <= 2^20: relative. A sum of softmax weights is there */
    double log_rel_anywhere; /* 0 < x: relative */
    bool measured;           /* false: all of the above, and what follows, is assumed */
    bool exp_zero_exact;     /* expf(0) == expf(-0) == 1 */
    bool exp_at_most_one;    /* 0 <= expf(x) <= 1 for x <= 0 */
    bool exp_minus_inf_zero; /* expf(-INFINITY) == 0 */
    bool exp_tail_zero;      /* expf(x) == 0 for x < -103.98; sampled below -1024 */
    bool exp_monotone;       /* expf does not decrease on [-104, 88.73]; no proof uses it */
    bool log_one_exact;      /* logf(1) == 0 */
    bool log_non_negative;   /* logf(x) >= 0 for 1 <= x <= 2^20 */
    char libm[128];          /* whose: C library, processor and fingerprint, or "assumed" */
} fd_libm_error;

enum {
    FD_LIBM_EXP_NORMAL = 0, /* [-104, 0] where exp x >= 2^-126 */
    FD_LIBM_EXP_SUBNORMAL,  /* [-104, 0] elsewhere; error in units of 2^-149, not relative */
    FD_LIBM_EXP_TAIL,       /* below -103.98, compared with 0 only; below -1024 one float in 61 */
    FD_LIBM_EXP_POSITIVE,   /* (0, 88.73] */
    FD_LIBM_LOG_SUM,        /* [1, 2^20] */
    FD_LIBM_LOG_OTHER,      /* the other positive finite floats, subnormal ones included */
    FD_LIBM_RANGES
};

typedef struct fd_libm_range {
    uint64_t tested, misrounded; /* floats; results that differ from the rounded reference */
    double error;                /* largest, against the double reference; NaN results count as INFINITY */
    float at;                    /* the argument with that error */
    double error_exact;          /* there, against MPFR */
} fd_libm_range;

typedef struct fd_libm_report {
    fd_libm_range range[FD_LIBM_RANGES];
    double reference_error; /* largest relative error of the double exp and log on a sample, against MPFR */
    bool reference_good;    /* the reference kept its promise wherever it was checked */
    uint64_t decreases;     /* neighbours x < y with expf(x) > expf(y) */
    bool exp_zero_exact, exp_at_most_one, exp_minus_inf_zero, exp_tail_zero, log_one_exact, log_non_negative;
    double seconds;
} fd_libm_report;

/* Called now and then with the part done, 0 to 1. */
typedef void fd_libm_progress(double part);

/* Tests every stride-th float of each range, and its ends. progress may be NULL. */
void fd_libm_measure(const fd_libm *libm, uint32_t stride, fd_libm_progress *progress, fd_libm_report *report);

/* The numbers the proofs use. `libm` is left empty. */
fd_libm_error fd_libm_error_from(const fd_libm_report *report);

/* Does everything hold that the proofs need, and did the reference? */
bool fd_libm_sound(const fd_libm_report *report);

/* The table of `flashdecode exp`, each line behind prefix. */
void fd_libm_report_write(const fd_libm_report *report, FILE *file, const char *prefix);

/* ---- The cache (libm_cache.c) ------------------------------------------------------------------ */

/* A measurement holds for one C library on one processor; the fingerprint, the bits of about 100000 results, also
 * tells apart the variants that a library chooses between when it starts. */
typedef struct fd_libm_key {
    char libc[64], processor[128];
    uint64_t fingerprint;
} fd_libm_key;

fd_libm_key fd_libm_key_of(const fd_libm *libm);

/* $FD_LIBM_CACHE, or build/libm_error.csv. */
const char *fd_libm_cache_path(void);

/* FD_OK; FD_UNSUPPORTED: no such file, or another machine's; FD_INVALID: damaged. why receives one line. */
fd_status fd_libm_cache_read(const char *path, const fd_libm_key *key, fd_libm_error *error, char *why, size_t n);
fd_status fd_libm_cache_write(const char *path, const fd_libm_key *key, const fd_libm_report *report, char *why,
                              size_t n);

/* The cached measurement of this machine, or the assumption exp_rel = 2^-23, exp_abs = 2^-148, log_rel = 2^-22 with
 * measured = false. cache_path NULL: the default. A damaged cache is as good as none, with a line on stderr. */
fd_libm_error fd_libm_error_get(const char *cache_path);

/* `flashdecode exp` (cmd_exp.c) */
int fd_cmd_exp(int argc, char **argv);

#endif /* FD_LIBM_ERROR_H */
