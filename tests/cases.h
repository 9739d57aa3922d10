/* cases.h: the case table, data/cases.csv. A case is a recipe: with its seed it has the same bits everywhere. */
#ifndef FD_CASES_H
#define FD_CASES_H

#include <stdbool.h>

#include "fd.h"

#define FD_CASE_TABLE_VERSION 1 /* of the generator and of data/cases.csv; a change of any bit raises it */
#define FD_CASE_BATCH_MAX 320

enum fd_size { FD_SMALL = 0, FD_CLASS, FD_FULL };      /* the SIZE from which on a case is run */
enum fd_layout { FD_LAYOUT_BSHD = 0, FD_LAYOUT_BHSD }; /* order of k and v in memory */

typedef struct fd_case {
    char name[96];     /* unique: family, what distinguishes it, dtypes, kv_len: "gaussian/fff/h4:1/d64/n1023" */
    char family[24];   /* of gen.h */
    char argument[48]; /* of the family: an amplitude, an offset, a file's layer; "" if it takes none */
    int32_t dtype_q, dtype_kv, dtype_o;
    int32_t batch, heads_q, heads_kv, head_dim, head_dim_v;
    int32_t kv_lens[FD_CASE_BATCH_MAX]; /* [batch] */
    int32_t kv_len;                     /* the largest of them */
    int32_t q_len;                      /* query rows a sequence; 0 is 1 */
    bool causal;                        /* masked: the row at position y sees the keys up to y + ahead */
    int32_t ahead;                      /* window_right of a masked case: 0 is causal in the strict sense */
    int32_t split_size;                 /* split_size_request of the problem; 0: the planner's choice */
    int32_t layout;                     /* fd_layout */
    int32_t size;                       /* fd_size */
    bool plot;                          /* belongs to the error-against-kv_len plots */
    uint64_t seed;
} fd_case;

typedef struct fd_case_table {
    fd_case *cases;
    int32_t count;
} fd_case_table;

/* Keys that query row t of sequence b sees: what fd_visible_end() says of the case's problem. */
static inline int64_t fd_case_visible(const fd_case *c, int32_t b, int32_t t)
{
    const int32_t rows = c->q_len > 0 ? c->q_len : 1;
    const int64_t end = c->causal ? (int64_t)c->kv_lens[b] - rows + t + 1 + c->ahead : c->kv_lens[b];
    return end < 0 ? 0 : end < c->kv_lens[b] ? end : c->kv_lens[b];
}

/* Reads the table: each line of the file is a cross product of its list-valued columns (see the file's head).
 * FD_OK, FD_INVALID (why names the file, line and column) or FD_NO_MEMORY. */
fd_status fd_cases_read(const char *path, fd_case_table *table, char *why, size_t n);
void fd_cases_free(fd_case_table *table);

#endif /* FD_CASES_H */
