/* instance.h: a case in memory. Buffers with guard bytes around them and poison in every byte that is not a visible
 * token, so that a rung that reads or writes where it should not is caught exactly, without a tolerance. */
#ifndef FD_INSTANCE_H
#define FD_INSTANCE_H

#include <stdbool.h>

#include "buffer.h"
#include "cases.h"

/* Where bytes lie that are no visible token: between and behind the rows of q; likewise of k and v, and behind kv_lens. */
enum fd_region {
    FD_REGION_ALL = 0,
    FD_REGION_Q,
    FD_REGION_K,
    FD_REGION_V,
    FD_REGION_WORKSPACE,
    FD_REGION_OUTPUTS,
    FD_NUM_REGIONS
};
enum fd_poison { FD_POISON_NAN = 0, FD_POISON_INF, FD_POISON_FINITE, FD_NUM_POISONS }; /* FINITE: 10^4 */

/* Writes the visible elements of q, k and v of a problem with an instance's strides, again whenever it is asked. */
typedef struct fd_filler {
    fd_status (*fill)(void *from, const fd_problem *problem, char *why, size_t n);
    void *from;
} fd_filler;

typedef struct fd_instance {
    fd_case c;          /* of fd_instance_create_from(): name and sizes; no family, and its kv_lens mean nothing */
    fd_problem problem; /* points into the buffers only; split_size_request from the case; lse present */
    fd_buffer q, k, v, o, lse, kv_lens;
    int32_t *lens;    /* [batch] what kv_lens holds unless somebody wrote there */
    fd_filler filler; /* .fill is NULL for a case */
    int32_t poisoned; /* fd_region that gets the poison which is asked for; the others then get FD_POISON_NAN */

    /* Where the answers come from a file: */
    bool given_once;       /* they cannot be asked for again, with other poison */
    bool lse_absent;       /* there is none, and nothing is said about it */
    int32_t lse_roundings; /* that lse met behind the computation which the bound describes: one base into another */
    bool summed[FD_NUM_POISONS]; /* is the checksum of the inputs under that poison known? */
    uint64_t sums[FD_NUM_POISONS];
} fd_instance;

/* Query rows of a problem, and the place of row [b, t, h] among them: the order of o and lse once gathered. */
static inline int64_t fd_row_count(const fd_problem *p)
{
    return (int64_t)p->batch * p->q_len * p->heads_q;
}

static inline int64_t fd_row_index(const fd_problem *p, int32_t b, int32_t t, int32_t h)
{
    return ((int64_t)b * p->q_len + t) * p->heads_q + h;
}

static inline void fd_row_of_index(const fd_problem *p, int64_t index, int32_t *b, int32_t *t, int32_t *h)
{
    *b = (int32_t)(index / p->heads_q / p->q_len);
    *t = (int32_t)(index / p->heads_q % p->q_len);
    *h = (int32_t)(index % p->heads_q);
}

/* Allocates, generates and poisons (FD_POISON_NAN). k and v have kv_capacity = kv_len + 5 slots, and the case's
 * layout; rows of q, v, o and lse are padded, each by another number of elements, so that no stride follows from a
 * shape or from another tensor; the family real has one k and v for the whole batch (stride 0). kv_lens is there, kv_lens_host equals it.
 * FD_OK, FD_INVALID, FD_NO_MEMORY; why receives one line. After a failure nothing needs freeing. */
fd_status fd_instance_create(fd_instance *instance, const fd_case *c, char *why, size_t n);

/* The same for somebody's own problem: extents, kv_lens_host, scale, mask, split_size_request and the dtypes of q, k, v
 * and o are those of `shape`, whose tensors have no data; k and v share one dtype. name: what verdicts call it. */
fd_status fd_instance_create_from(fd_instance *instance, const fd_problem *shape, const char *name, fd_filler filler,
                                  char *why, size_t n);
void fd_instance_free(fd_instance *instance);

/* The problem alone, for supports() and plan(): its tensors have shapes and strides, and memory nowhere. Free it as any other. */
fd_status fd_instance_outline(fd_instance *instance, const fd_case *c, char *why, size_t n);

/* Fills with poison: the slots of k and v at or past each kv_lens[b], all of o and lse. */
void fd_instance_poison(fd_instance *instance, enum fd_poison poison);

/* What that region gets when this poison is asked for. */
enum fd_poison fd_instance_poison_of(const fd_instance *instance, enum fd_region region, enum fd_poison poison);

/* After a run: are the guards of o and lse intact, and is everything between their rows still that poison? */
bool fd_instance_outputs_intact(const fd_instance *instance, enum fd_poison poison);

/* Of the whole buffers of q, k, v and kv_lens, guards included: changes when a byte of them does. */
uint64_t fd_instance_checksum(const fd_instance *instance);

/* What it was when it was first asked for under this poison, which the instance holds. Whoever changes inputs after a run
 * makes another instance: of all that is read in a run, half would be read for a sum that is known. */
uint64_t fd_instance_first_checksum(fd_instance *instance, enum fd_poison poison);

/* Makes the inputs again, after somebody wrote to them. */
fd_status fd_instance_restore(fd_instance *instance, char *why, size_t n);

/* Fills bytes of any buffer with the poison's float pattern. That of NAN is all ones: NaN in every float format. */
void fd_poison_fill(void *data, size_t bytes, enum fd_poison poison);

#endif /* FD_INSTANCE_H */
