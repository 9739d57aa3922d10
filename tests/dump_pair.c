/* dump_pair.c: see dump_pair.h. */
#define _POSIX_C_SOURCE 200809L

#include "dump_pair.h"

#include <errno.h>
#include <unistd.h>

#include "case_file.h"

static fd_status open_one(const char *path, fd_safetensors *file, bool *there, char *why, size_t n)
{
    *there = access(path, F_OK) == 0 || errno != ENOENT; /* what is there and cannot be read is not left out */
    return *there ? fd_safetensors_open(path, file, why, n) : FD_OK;
}

fd_status fd_dump_pair_open(fd_dump_pair *p, const char *path, char *why, size_t n)
{
    *p = (fd_dump_pair){.has_file = false};
    snprintf(p->path, sizeof p->path, "%s", path);
    fd_case_answer_name(path, p->answer_path, sizeof p->answer_path);
    const fd_status status = open_one(p->path, &p->file, &p->has_file, why, n);
    return status == FD_OK && p->answer_path[0] != '\0' ? open_one(p->answer_path, &p->answers, &p->has_answers, why, n)
                                                        : status;
}

void fd_dump_pair_close(fd_dump_pair *p)
{
    if (p->has_file) {
        fd_safetensors_close(&p->file);
    }
    if (p->has_answers) {
        fd_safetensors_close(&p->answers);
    }
}

fd_status fd_dump_pair_answer(const fd_dump_pair *p, const fd_rows *rows, fd_dumped *dumped, bool *found, char *why,
                              size_t n)
{
    fd_dumped other = {.rows = NULL};
    bool beside = false;
    fd_status status = FD_OK;
    *found = false;
    if (p->has_answers) {
        status = fd_dumped_read(&p->answers, p->answer_path, rows, dumped, &beside, why, n);
    }
    if (status == FD_OK && p->has_answers && !beside) {
        return fd_safetensors_refuse(p->answer_path, why, n, "there is no tensor o; add it");
    }
    if (status == FD_OK && p->has_file) {
        status = fd_dumped_read(&p->file, p->path, rows, &other, found, why, n);
    }
    if (status == FD_OK && beside && *found) {
        return fd_safetensors_refuse(p->path, why, n, "o is here and in %s; remove one", p->answer_path);
    }
    if (!beside) {
        *dumped = other;
    }
    *found = *found || beside;
    return status;
}

fd_status fd_dump_pair_claims(const fd_dump_pair *p, fd_arith *claims, char *why, size_t n)
{
    return p->has_answers ? fd_dump_claims(&p->answers, p->answer_path, claims, why, n)
                          : fd_dump_claims(&p->file, p->path, claims, why, n);
}
