/* oracle_cache.h: the oracle's answers on disk, one file a row, found by the content of the question. A question is
 * what fd_oracle() reads: the numbers of q, of the visible k and v, their types, sm_scale, the shape, and which oracle is
 * asked. Whoever changes one bit of it, or a character of the oracle's source, asks another question.
 *
 * An answer comes back bit for bit, or is computed. A file that is damaged, cut short, or answers something else counts
 * as absent and is written again. Processes and threads may share a folder: a file appears whole, by rename. */
#ifndef FD_ORACLE_CACHE_H
#define FD_ORACLE_CACHE_H

#include <stdbool.h>

#include "oracle.h"

#define FD_ORACLE_CACHE_BYTES ((int64_t)2 << 30) /* the usual limit: SIZE=small needs a tenth of it */

typedef struct fd_oracle_cache {
    char folder[512]; /* empty: off, every row is computed */
    int64_t limit;    /* bytes of all files. Above it the least recently used go, down to 7/8 of it */
    int64_t asked, found;
    int64_t
        unmeasured; /* bytes written since the folder's size was last looked at; -1: never. It may lie over its limit
                         * by a sixteenth of that for each process that writes */
    bool silent, gave_up; /* a folder that cannot be written is said once, and rows are only computed from there on */
} fd_oracle_cache;

/* folder "": off. The folder is made when the first row is written; its parent must exist. */
void fd_oracle_cache_open(fd_oracle_cache *cache, const char *folder, int64_t limit);

/* The process's own: $FD_ORACLE_CACHE, or build/oracle_cache where there is a folder build; "off": none. */
fd_oracle_cache *fd_oracle_cache_usual(void);

/* fd_oracle_fast(), by way of the cache; the same results, statuses and threads. Rows that are quicker
 * to compute than to find, and problems with features the question does not cover, go to the oracle directly. */
fd_status fd_oracle_cached(fd_oracle_cache *cache, const fd_problem *problem, int32_t b, int32_t t, int32_t h,
                           fd_oracle_row *row, char *why, size_t n);

/* The question's hash as 32 hexadecimal digits, the file's name; false if the row is not one for the cache. */
bool fd_oracle_cache_name(const fd_problem *problem, int32_t b, int32_t t, int32_t h, const fd_oracle_row *row,
                          char name[33]);

#endif /* FD_ORACLE_CACHE_H */
