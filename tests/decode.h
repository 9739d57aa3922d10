/* decode.h: the loop that decoding is: append a key and a value, attend, take the next token.
 *
 * A token is a 64-bit number; q, k and v of its position are drawn from it. The next token is a hash of every bit of o
 * and lse. So nothing here is a language model, but a rung that returns one wrong bit at one step says something else
 * ever after, as a model does. Rungs that return the same bits say the same. */
#ifndef FD_DECODE_H
#define FD_DECODE_H

#include "bound.h"
#include "instance.h"

typedef struct fd_decode_shape {
    int32_t heads_q, heads_kv, head_dim;
    int32_t dtype_q, dtype_kv, dtype_o;
    int64_t kv_capacity; /* tokens at most */
} fd_decode_shape;

/* One sequence. k and v are stored [kv_capacity, heads_kv, head_dim], so that what is visible comes first; slots that hold
 * no token yet hold NaN. */
typedef struct fd_decode {
    fd_problem problem; /* batch 1; in host memory; kv_lens is kv_len */
    fd_buffer q, k, v, o, lse, kv_lens, workspace;
    uint64_t *tokens; /* [kv_capacity], of which kv_len are there */
    int64_t kv_len;
    const fd_rung *rung; /* fd_decode_use() */
    fd_plan *plan;       /* NULL: the rung has none */
    int64_t planned;     /* keys that it was made for */
} fd_decode;

/* What a sampled step was held against. */
typedef struct fd_decode_check {
    bool same;         /* bits of a cache built at once from the tokens, with the same plan */
    bool same_planned; /* and with a plan for this very length */
    bool claimed;      /* the rung claims that, or has no plan */
    double ratio;      /* largest |o - o*| or |lse - lse*| over its proved bound, of one query head */
} fd_decode_check;

/* FD_OK; FD_INVALID, FD_NO_MEMORY with one line in why, and nothing to free. */
fd_status fd_decode_create(fd_decode *d, const fd_decode_shape *shape, char *why, size_t n);
void fd_decode_free(fd_decode *d); /* legal for a zeroed struct */

/* Bytes that a step at kv_len keys must read: its k and v. */
int64_t fd_decode_bytes(const fd_decode *d);

/* Chooses the rung, plans it once for sequences of up to `keys` keys and so many threads, makes a workspace. FD_UNSUPPORTED and
 * the other statuses of a plan, with one line in why. */
fd_status fd_decode_use(fd_decode *d, const fd_rung *rung, int32_t threads, int64_t keys, char *why, size_t n);

/* Writes k and v of the token into the next slot, and its q. kv_len < kv_capacity. */
void fd_decode_append(fd_decode *d, uint64_t token);

/* One call of the rung; *ns is how long it took, copies to a device included. */
fd_status fd_decode_attend(fd_decode *d, double *ns, char *why, size_t n);

/* The token that o and lse say. */
uint64_t fd_decode_next(const fd_decode *d);

/* The i-th of the tokens that are read in behind one, none of which is attended to on its own. */
uint64_t fd_decode_text(uint64_t token, int64_t i);

/* Holds o and lse of the last step against fresh computations, and query head h against the oracle. FD_OK whatever comes
 * out. */
fd_status fd_decode_recheck(const fd_decode *d, int32_t threads, int32_t h, const fd_rounding *rounding,
                            fd_decode_check *check, char *why, size_t n);

/* `flashdecode decode` (cmd_decode.c) */
int fd_cmd_decode(int argc, char **argv);

#endif /* FD_DECODE_H */
