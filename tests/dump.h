/* dump.h: somebody's tensors in a .safetensors file, as a problem and its answer. tutorials/dumps.md is the page of names,
 * shapes, types and metadata that a user reads; here is what is made of them. Files are not trusted: FD_INVALID, with one
 * line that names the file, the tensor and the cure, for whatever does not make a problem. */
#ifndef FD_DUMP_H
#define FD_DUMP_H

#include "instance.h"
#include "safetensors.h"

#define FD_DUMP_VERSION 1 /* of the names and of index.csv */

enum fd_dump_tensor {
    FD_DUMP_Q = 0,
    FD_DUMP_K,
    FD_DUMP_V,
    FD_DUMP_O,
    FD_DUMP_LSE,
    FD_DUMP_KV_LENS,
    FD_DUMP_CU_SEQLENS_Q,
    FD_DUMP_CU_SEQLENS_K,
    FD_DUMP_PAGE_TABLE,
    FD_DUMP_SM_SCALE,
    FD_DUMP_WINDOW_RIGHT,
    FD_DUMP_TENSORS
};

/* ---- Names (dump_names.c) ---- */

/* A file's tensors under the names that others give them, too. FD_INVALID for a name nobody knows, or two of one
 * tensor; names with a dot in them are the user's own. */
fd_status fd_dump_find(const fd_safetensors *file, const char *path, const fd_safetensor *found[FD_DUMP_TENSORS],
                       char *why, size_t n);

/* FD_INVALID for metadata that nobody knows: a misspelt mask must not be taken for none. */
fd_status fd_dump_check_metadata(const fd_safetensors *file, const char *path, char *why, size_t n);

/* Metadata as a word out of a list (its index; absent: 0) and as a whole number (absent: left alone). */
fd_status fd_dump_word(const fd_safetensors *file, const char *path, const char *key, const char *const *words,
                       int count, int *index, char *why, size_t n);
fd_status fd_dump_number(const fd_safetensors *file, const char *path, const char *key, int64_t least, int64_t most,
                         int64_t *value, char *why, size_t n);

/* Element i of an integer tensor, I32 or I64. */
int64_t fd_dump_integer(const fd_safetensor *x, int64_t i);

/* "F32 [2, 1, 8]", for messages. */
const char *fd_dump_shape(const fd_safetensor *x, char *text, size_t n);

/* ---- Query rows, and the answers in them (dump_answer.c) ---- */

/* Where the query rows of each sequence are in q, o and lse. */
typedef struct fd_rows {
    int32_t batch, heads_q, head_dim_v;
    int32_t q_len;         /* the largest of q_lens */
    const int32_t *q_lens; /* [batch] */
    const int64_t *starts; /* [batch + 1] rows before a sequence, where all are packed into one dimension; NULL: not */
    bool heads_first;      /* the heads' dimension comes before that of the rows of one sequence */
} fd_rows;

typedef struct fd_dumped {
    const fd_rows *rows;
    fd_tensor o, lse; /* in the file's memory, with its strides; lse.data NULL: there is none */
} fd_dumped;

/* Looks for o (*found says whether it is there) and lse, and checks them. */
fd_status fd_dumped_read(const fd_safetensors *file, const char *path, const fd_rows *rows, fd_dumped *answer,
                         bool *found, char *why, size_t n);

/* Rows of `count` sequences that have q_len rows each, in the order of fd_row_index(): o [.., head_dim_v], lse. */
void fd_dumped_gather(const fd_dumped *answer, const int32_t *sequences, int32_t count, int32_t q_len, float *o,
                      float *lse);

/* Claims from the metadata (dump_claims.c), whose keys and values are the options of claims_options.h; of those that are
 * not there, what fd_claims_none() has. */
fd_status fd_dump_claims(const fd_safetensors *file, const char *path, fd_arith *claims, char *why, size_t n);

/* ---- A problem (dump_read.c) ---- */

typedef struct fd_dump {
    const char *path;
    fd_problem problem; /* extents of the largest sequence; q, k, v in the file's memory; kv_lens_host; no page table */
    fd_rows rows;
    int32_t *q_lens, *kv_lens; /* [batch] */
    int64_t *q_starts, *kv_starts;
    int32_t *page_table; /* [batch, pages_each], checked as far as kv_lens go; NULL: not paged */
    int64_t pages_each;
    bool lens_given, mask_given,
        scale_given; /* else: every slot is visible, to every row, and sm_scale is 1/sqrt(head_dim) */
} fd_dump;

fd_status fd_dump_read(const fd_safetensors *file, const char *path, fd_dump *dump, char *why, size_t n);
void fd_dump_free(fd_dump *dump);

/* An instance of the sequences that have one q_len; `part` must live as long as the instance does. */
typedef struct fd_dump_part {
    const fd_dump *dump;
    const int32_t *sequences; /* [count] */
    int32_t count, q_len;
} fd_dump_part;

fd_status fd_dump_instance(const fd_dump_part *part, const char *name, int32_t dtype_o, fd_instance *instance,
                           char *why, size_t n);

#endif /* FD_DUMP_H */
