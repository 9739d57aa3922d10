/* plan_options.h: what `flashdecode plan` was asked for. */
#ifndef FD_PLAN_OPTIONS_H
#define FD_PLAN_OPTIONS_H

#include <stdbool.h>

#include "options.h"
#include "plan.h"

typedef struct fd_plan_options {
    int32_t batch, heads_q, heads_kv;
    bool per_query_head; /* a block serves one query head; else the group of a KV head */
    int64_t kv_lens[FD_LIST_MAX];
    int num_kv_lens;
    int32_t sms, blocks_per_sm;
    int32_t policy;                                 /* fd_split_kind; -1: one after the other */
    int32_t tile, chunk, split_size_min, threshold; /* keys */
    const char *csv;                                /* NULL: none */
} fd_plan_options;

extern const char *const fd_split_kind_names[4]; /* "none", "chunk", "fill", by fd_split_kind; NULL */

/* Fills options. Returns -1 to go on, or the exit code after --help or a message on stderr. */
int fd_plan_parse(int argc, char **argv, fd_plan_options *options);

#endif /* FD_PLAN_OPTIONS_H */
