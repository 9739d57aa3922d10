/* case_file.h: a folder of cases as files: NNN_NAME.safetensors for each, and index.csv, written last. */
#ifndef FD_CASE_FILE_H
#define FD_CASE_FILE_H

#include "instance.h"
#include "safetensors.h"

#define FD_CASE_FILE_END ".safetensors"
#define FD_CASE_ANSWER_END ".out.safetensors" /* of NNN_NAME: o and lse, if they are not in the case's own file */

/* "001_gaussian_fff_h4_1_d64_n0.safetensors" for case number 1 of a folder. */
void fd_case_file_name(int32_t number, const fd_case *c, char *name, size_t n);

/* Does this command write such names? Answers are none of them. */
bool fd_case_file_is_name(const char *name);

/* The same name, with FD_CASE_ANSWER_END in place of FD_CASE_FILE_END; "" if it does not end so. */
void fd_case_answer_name(const char *name, char *answer, size_t n);

/* Bytes of the tensors of a case's file. */
int64_t fd_case_file_bytes(const fd_case *c);

/* q [batch, q_len, heads_q, head_dim], k and v [batch, kv_len, heads_kv, ..] with NaN behind each kv_lens, kv_lens,
 * sm_scale, window_right; metadata. FD_OK, FD_INVALID or FD_NO_MEMORY, with one line in why. */
fd_status fd_case_file_write(const char *path, const fd_instance *instance, char *why, size_t n);

/* FD_INVALID if an input tensor that is in the file is not the case's, bit for bit where a token is visible. */
fd_status fd_case_file_compare(const fd_safetensors *file, const char *path, const fd_instance *instance, char *why,
                               size_t n);

/* ---- The index (case_index.c) ---- */

typedef struct fd_case_entry {
    char file[160], name[96]; /* in the folder; of the case */
} fd_case_entry;

typedef struct fd_case_index {
    fd_case_entry *entries;
    int32_t count;
} fd_case_index;

/* index.csv of folder, for these cases in this order. */
fd_status fd_case_index_write(const char *folder, const fd_case *const *cases, int32_t count, char *why, size_t n);
fd_status fd_case_index_read(const char *folder, fd_case_index *index, char *why, size_t n);
void fd_case_index_free(fd_case_index *index);

#endif /* FD_CASE_FILE_H */
