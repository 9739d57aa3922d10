/* dump_pair.h: the file of inputs and the file of answers beside it. Either may be missing; answers may be in the first. */
#ifndef FD_DUMP_PAIR_H
#define FD_DUMP_PAIR_H

#include "dump.h"

typedef struct fd_dump_pair {
    char path[4200], answer_path[4200];
    fd_safetensors file, answers;
    bool has_file, has_answers;
} fd_dump_pair;

/* path is that of the inputs. FD_OK if neither is there; to be closed in any case. */
fd_status fd_dump_pair_open(fd_dump_pair *pair, const char *path, char *why, size_t n);
void fd_dump_pair_close(fd_dump_pair *pair);

/* What the file that the answer is in says about its arithmetic. */
fd_status fd_dump_pair_claims(const fd_dump_pair *pair, fd_arith *claims, char *why, size_t n);

/* o and lse, from whichever of the two has o; *found says whether one has. FD_INVALID if both do. */
fd_status fd_dump_pair_answer(const fd_dump_pair *pair, const fd_rows *rows, fd_dumped *answer, bool *found, char *why,
                              size_t n);

#endif /* FD_DUMP_PAIR_H */
