/* observe.h: `flashdecode observe`, on a GPU: not how long a step takes, as bench says, but why. Three questions:
 *
 *   sms      how many multiprocessors does it take to read K and V at full speed
 *   splits   time against num_splits, and of it the split kernel and the combine alone
 *   blocks   when and on which multiprocessor each block ran (a program of make gpu OBSERVE=1) */
#ifndef FD_OBSERVE_H
#define FD_OBSERVE_H

#include "bench.h"
#include "device.h"
#include "machine.h"
#include "options.h"
#include "point_gpu.h"
#include "resume.h"

enum fd_observe_what { FD_OBSERVE_SMS = 0, FD_OBSERVE_SPLITS, FD_OBSERVE_BLOCKS };
extern const char *const fd_observe_names[4];

typedef struct fd_observe_options {
    int what;             /* fd_observe_what */
    fd_bench_shape shape; /* kv_len apart */
    int64_t rungs[FD_LIST_MAX], kv_lens[FD_LIST_MAX];
    int64_t splits[FD_LIST_MAX]; /* requests; 0: the rung's own choice */
    int64_t blocks[FD_LIST_MAX]; /* of a reading grid */
    int num_rungs, num_kv_lens, num_splits, num_blocks;
    const char *csv; /* NULL: none */
} fd_observe_options;

/* Fills options. Returns -1 to go on, or the exit code after --help or a message on stderr. */
int fd_observe_parse(int argc, char **argv, fd_observe_options *options);

/* What the three have in common: the card, and the file that grows. */
typedef struct fd_observation {
    const fd_observe_options *options;
    const fd_device *gpu;
    fd_machine_record machine;
    fd_resume csv;              /* .file NULL: none */
    double launch_ns, floor_ns; /* an empty kernel; the fastest read of the cache at hand */
    bool unwritable;            /* the file */
    int64_t done, skipped, failed;
} fd_observation;

extern const char fd_observe_sms_head[], fd_observe_splits_head[], fd_observe_blocks_head[]; /* of the files */

/* Prints a table and adds rows that the file does not have. FD_OK; else one line in why, at most n bytes. A rung that
 * fails is counted, and the others go on. */
fd_status fd_observe_sms(fd_observation *seen, char *why, size_t n);
fd_status fd_observe_splits(fd_observation *seen, char *why, size_t n);
fd_status fd_observe_blocks(fd_observation *seen, char *why, size_t n);

/* At each kv_len that was asked for: a cache of that length, its fastest read, and visit(). */
typedef fd_status fd_observe_visit(fd_observation *seen, fd_point *point, void *data, char *why, size_t n);
fd_status fd_observe_lengths(fd_observation *seen, fd_observe_visit *visit, void *data, char *why, size_t n);

/* There, with each rung and number of splits that was asked for and is not in the file: visit(). key: what its rows begin with;
 * the rung is at hand. A rung that takes no such problem, or fails, is counted and said. */
typedef fd_status fd_observe_step(fd_observation *seen, fd_point *point, const char *key, int64_t request, void *data,
                                  char *why, size_t n);
fd_status fd_observe_rungs(fd_observation *seen, fd_observe_step *visit, void *data, char *why, size_t n);
#define FD_OBSERVE_KEY "rung,where,dtype_q,dtype_kv,dtype_o,batch,heads_q,heads_kv,head_dim,q_len,kv_len,requested,"

/* Rows for the file, if there is one; a row that begins so. */
fd_status fd_observe_add(fd_observation *seen, const char *rows, char *why, size_t n);
bool fd_observe_has(const fd_observation *seen, const char *key);

int fd_cmd_observe(int argc, char **argv);

#endif /* FD_OBSERVE_H */
