/* proof_status.c: the table of open obligations (proofs/README.md, section 11), as a function of a rung's claims. Whoever
 * closes one in Coq takes its line from both. */
#include "proof_status.h"

#include <stdio.h>

typedef struct obligation {
    const char *what;
    bool (*rests)(const fd_arith *arith);
} obligation;

static int32_t level_count(const fd_arith *arith)
{
    return arith->num_levels < 0 ? 0 : arith->num_levels > FD_MAX_LEVELS ? FD_MAX_LEVELS : arith->num_levels;
}

/* Levels of that kind; a TREE of one part merges nothing. */
static int count_levels(const fd_arith *arith, int32_t merge)
{
    int count = 0;
    for (int32_t i = 0; i < level_count(arith); i++) {
        count += arith->level[i].merge == merge && (arith->level[i].ways > 1 || arith->level[i].order == FD_SEQUENTIAL);
    }
    return count;
}

static bool merges_lse(const fd_arith *arith)
{
    return count_levels(arith, FD_MERGE_LSE) > 0;
}

static bool merges_without_division(const fd_arith *arith)
{
    return count_levels(arith, FD_MERGE_LSE_NO_DIV) > 0;
}

static bool flushes(const fd_arith *arith)
{
    return arith->flushes != 0;
}

static bool narrow_types(const fd_arith *arith)
{
    return arith->dtype_p != FD_F32 || arith->dtype_partial != FD_F32;
}

static bool other_accumulators(const fd_arith *arith)
{
    return arith->accumulator != FD_ACC_F32;
}

/* U covers the theorem's where no part, or one level of parts, is normalised; a TREE of them is several levels. */
static bool other_normalised(const fd_arith *arith)
{
    int levels = 0;
    for (int32_t i = 0; i < level_count(arith); i++) {
        levels += arith->level[i].merge != FD_MERGE_NORMALISED ? 0
                  : arith->level[i].order == FD_SEQUENTIAL     ? 1
                  : arith->level[i].ways > 2                   ? 2
                                                               : arith->level[i].ways > 1;
    }
    return arith->num_levels == 0 || levels > 1;
}

static const obligation open_obligations[] = {
    {"merges of (o, lse)", merges_lse},
    {"merges of (o, lse) without a division", merges_without_division},
    {"16-bit weights or partials", narrow_types},
    {"sums other than fp32", other_accumulators},
    {"flushed subnormals", flushes},
    {"underflow (U) of these normalised parts", other_normalised},
};

bool fd_proof_closed(const fd_arith *arith, char *open, size_t n)
{
    size_t used = 0;
    bool closed = true;
    if (n > 0) {
        open[0] = '\0';
    }
    for (size_t i = 0; i < sizeof open_obligations / sizeof *open_obligations; i++) {
        if (open_obligations[i].rests(arith)) {
            if (used < n) {
                used += (size_t)snprintf(open + used, n - used, "%s%s", closed ? "proof open: " : ", ",
                                         open_obligations[i].what);
            }
            closed = false;
        }
    }
    return closed;
}
