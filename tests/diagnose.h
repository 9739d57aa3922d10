/* diagnose.h: what a wrong answer looks like. A rung's output is compared with what each mutant returns on the same case.
 * The diagnosis is the mutant that returns the same on every case: wrong where the rung fails, and right where it passes. */
#ifndef FD_DIAGNOSE_H
#define FD_DIAGNOSE_H

#include "judge.h"

#define FD_MUTANTS_MAX 127

/* A set of mutants: bit k, counted through both words, is fd_mutants[k], which explains everything seen so far. Begins with
 * all bits set; the last one, which is no mutant's, says that nothing has been seen. */
typedef struct fd_suspects {
    uint64_t bits[2];
} fd_suspects;

#define FD_ALL_SUSPECTS ((fd_suspects){{UINT64_MAX, UINT64_MAX}})

static inline bool fd_suspected(fd_suspects x, int k)
{
    return x.bits[k / 64] >> k % 64 & 1u;
}

static inline fd_suspects fd_suspects_without(fd_suspects x, int k)
{
    x.bits[k / 64] &= ~((uint64_t)1 << k % 64);
    return x;
}

static inline fd_suspects fd_suspects_both(fd_suspects x, fd_suspects y)
{
    return (fd_suspects){{x.bits[0] & y.bits[0], x.bits[1] & y.bits[1]}};
}

static inline fd_suspects fd_suspects_either(fd_suspects x, fd_suspects y)
{
    return (fd_suspects){{x.bits[0] | y.bits[0], x.bits[1] | y.bits[1]}};
}

/* What a rung returns on the instance under each of two poisons: a read of stale memory is a NaN under one, a wrong number
 * under the other. o [batch, heads_q, head_dim_v], then lse [batch, heads_q]; NULL: no answer. */
typedef struct fd_answer {
    const fd_rung *rung;
    float *under[2]; /* may be the same memory */
    bool asked[2];
} fd_answer;

/* The answers of mutants and their parents on one instance. Each runs when it is first needed, and once. */
typedef struct fd_gallery {
    fd_instance *instance;
    int64_t elements, values; /* of o; of o and lse */
    fd_answer *answers;
    int count;
} fd_gallery;

/* FD_OK or FD_NO_MEMORY. The instance is run again whenever an answer is needed. */
fd_status fd_gallery_open(fd_gallery *gallery, fd_instance *instance);
void fd_gallery_close(fd_gallery *gallery);

/* Keeps what the judge has seen of a rung, so that it need not run again. */
void fd_gallery_keep(fd_gallery *gallery, const fd_outcome *outcome);

/* Strikes out the mutants that do not explain this outcome: those whose o or lse differs from the rung's somewhere by
 * more than two bounds (plus 2^-12 of the way from the right answer), and, if the rung fails, those that are right here. */
fd_suspects fd_gallery_diagnose(fd_gallery *gallery, const fd_outcome *outcome, fd_suspects suspects);

/* The same with a gallery of its own. */
fd_suspects fd_diagnose(fd_instance *instance, const fd_outcome *outcome, fd_suspects suspects);

/* "looks like: NAME", with "or" between several; "looks like: unknown" for none. */
void fd_diagnosis_text(fd_suspects suspects, char *text, size_t n);

/* How many of the failures that were asked about each mutant explains. Begins with zeros. */
typedef struct fd_votes {
    int32_t failures, of[FD_MUTANTS_MAX];
} fd_votes;

void fd_votes_add(fd_votes *votes, fd_suspects explains);

/* The same text for all failures together. If nobody explains all, "looks like: unknown; NAME in 20 of 24": whoever explains
 * most, if that is more than half. */
void fd_votes_text(const fd_votes *votes, fd_suspects suspects, char *text, size_t n);

#endif /* FD_DIAGNOSE_H */
