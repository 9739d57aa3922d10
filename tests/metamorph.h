/* metamorph.h: tier 4. A relation says how the answers of two runs of one rung hang together, whatever the right answer
 * is: bit for bit where the arithmetic is the same, else no further apart than the two proved bounds together. */
#ifndef FD_METAMORPH_H
#define FD_METAMORPH_H

#include "judge.h"

enum fd_relation_kind {
    FD_SAME_BITS = 0,
    FD_SAME_BITS_IF_CUT_ALIKE, /* where both plans cut the row at the same keys, or the rung has no plan; else bounds */
    FD_WITHIN_BOUNDS
};

/* Where a row of the first run is found in the second: o is o_scale times the first one's, lse is lse_shift higher. */
typedef struct fd_image {
    int32_t b, t, h;
    float o_scale; /* a power of two */
    double lse_shift;
} fd_image;

typedef struct fd_relation {
    const char *name, *promise;
    int32_t kind;
    bool
        same_numbers; /* each row of the second run has the q, k, v of a row of the first: one oracle row serves both */
    int32_t (*variants)(const fd_instance *x); /* how many second instances there are; 0: nothing to compare */
    /* The second instance. FD_UNSUPPORTED, with the reason, if x has none (a sum that its dtype cannot hold). */
    fd_status (*build)(const fd_instance *x, int32_t variant, fd_instance *y, char *why, size_t n);
    /* image holds row [b, t, h], 1, 0 when called; false: the row is not compared. NULL: nothing to change. */
    bool (*image)(const fd_instance *x, int32_t variant, int32_t b, int32_t t, int32_t h, fd_image *image);
    uint32_t claim; /* fd_invariance: a rung that claims it owes the same bits, whatever the kind; 0: none */
    int32_t (*threads)(int32_t variant); /* of the second run; NULL: those of the first */
} fd_relation;

extern const fd_relation fd_relations[];
extern const int fd_relation_count;

/* Names of the cases that `relations` and `check` ask them on: small, and different in what can go wrong. */
extern const char *const fd_relation_cases[];
extern const int fd_relation_case_count;

typedef struct fd_relation_outcome {
    bool applies;          /* false: the case has no second instance, and the verdict is a skip */
    int32_t verdict, tier; /* fd_verdict; FD_TIER_METAMORPHIC if it failed */
    int64_t same_bits, bounded, vacuous,
        declared;     /* values compared in either way; without a bound that says something;
                                                      of rows that the rung declares to fail on */
    double ratio;     /* largest distance over the sum of the two bounds */
    int32_t variant;  /* of the failure */
    fd_witness worst; /* got: second run; want: what the first one asks for */
    char reason[240]; /* of a failure or a skip */
} fd_relation_outcome;

/* Runs every rung on the case and on the second instances of every relation. outcomes: [count][fd_relation_count].
 * k is rounded to multiples of 2^-4 if it is 16-bit, v to multiples of 2^-8 if it is fp16, so that sums and powers of two
 * stay exact. FD_OK whatever the verdicts are. */
fd_status fd_metamorph(const fd_rung *const *rungs, int count, const fd_case *c, const fd_rounding *rounding,
                       fd_relation_outcome *outcomes, char *why, size_t n);

#endif /* FD_METAMORPH_H */
