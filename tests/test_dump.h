/* test_dump.h: what the tests of tensors share: a folder of their own, commands as a user calls them, answers of rungs. */
#ifndef FD_TEST_DUMP_H
#define FD_TEST_DUMP_H

#include <criterion/criterion.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "case_file.h"
#include "commands.h"
#include "dump.h"
#include "execute.h"
#include "ladder.h"
#include "mutants.h"

typedef int fd_command(int argc, char **argv);

/* What the command wrote to standard output and error. */
typedef struct said {
    int code;
    char out[32768], err[2048];
} said;

static inline void read_back(FILE *file, char *text, size_t n)
{
    rewind(file);
    text[fread(text, 1, n - 1, file)] = '\0';
    fclose(file);
}

/* words: the arguments, name of the command first, ended by NULL. */
static inline const said *call(fd_command *command, const char *const *words)
{
    static said s;
    char *argv[16] = {NULL};
    int argc = 0;
    FILE *out = tmpfile(), *err = tmpfile();
    cr_assert(out != NULL && err != NULL);
    while (words[argc] != NULL) {
        argv[argc] = strdup(words[argc]);
        argc++;
    }
    fflush(stdout);
    fflush(stderr);
    const int old_out = dup(STDOUT_FILENO), old_err = dup(STDERR_FILENO);
    dup2(fileno(out), STDOUT_FILENO);
    dup2(fileno(err), STDERR_FILENO);
    optind = 0; /* getopt begins anew */
    s.code = command(argc, argv);
    fflush(stdout);
    fflush(stderr);
    dup2(old_out, STDOUT_FILENO);
    dup2(old_err, STDERR_FILENO);
    close(old_out);
    close(old_err);
    read_back(out, s.out, sizeof s.out);
    read_back(err, s.err, sizeof s.err);
    for (int k = 0; k < argc; k++) {
        free(argv[k]);
    }
    return &s;
}

static inline const said *check(const char *target)
{
    return call(fd_cmd_check, (const char *const[]){"check", target, NULL});
}

/* A fresh folder, and a path in it. Each test runs in a process of its own. */
static inline const char *folder(void)
{
    static char name[512];
    if (name[0] == '\0') {
        const char *root = getenv("TMPDIR");
        snprintf(name, sizeof name, "%s/fd-dump-XXXXXX", root != NULL ? root : "/tmp");
        cr_assert_not_null(mkdtemp(name));
    }
    return name;
}

static inline const char *in_folder(const char *name)
{
    static char path[4][1200];
    static int next;
    next = (next + 1) % 4;
    snprintf(path[next], sizeof path[next], "%s/%s", folder(), name);
    return path[next];
}

static inline void remove_folder(void)
{
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", folder());
    cr_assert(system(command) == 0);
}

static inline const fd_case_table *table(void)
{
    static fd_case_table cases;
    char path[512], why[256];
    if (cases.count == 0) {
        cr_assert(fd_cases_read(fd_data_path("cases.csv", path, sizeof path), &cases, why, sizeof why) == FD_OK, "%s",
                  why);
    }
    return &cases;
}

static inline const fd_case *case_of(const char *name)
{
    for (int32_t i = 0; i < table()->count; i++) {
        if (strcmp(table()->cases[i].name, name) == 0) {
            return &table()->cases[i];
        }
    }
    cr_assert_fail("no case %s", name);
    return NULL;
}

static inline const fd_rung *mutant_of(const char *file)
{
    for (int k = 0; k < fd_mutants_count; k++) {
        if (strstr(fd_mutant_files[k], file) != NULL) {
            return fd_mutants[k];
        }
    }
    cr_assert_fail("no mutant %s", file);
    return NULL;
}

/* The answer of a rung, in the order of fd_row_index(); o and lse are the caller's to free. */
static inline void answer_of(const fd_rung *rung, fd_instance *x, float **o, float **lse)
{
    const int64_t rows = fd_row_count(&x->problem);
    fd_plan *plan = NULL;
    char why[256] = "";
    *o = calloc((size_t)(rows * x->problem.head_dim_v) + 1, sizeof(float));
    *lse = calloc((size_t)rows + 1, sizeof(float));
    cr_assert(fd_plan_for(rung, &x->problem, &plan, why, sizeof why) == FD_OK, "%s", why);
    cr_assert(fd_execute(rung, plan, x, true, FD_POISON_NAN, *o, *lse, why, sizeof why) == FD_OK, "%s: %s", rung->name,
              why);
    free(plan);
}

/* o as F32, whatever type the rung was asked for: its values are those of that type. */
static inline fd_safetensor f32(const char *name, const float *data, int32_t rank, int64_t a, int64_t b, int64_t c,
                                int64_t d)
{
    return (fd_safetensor){.name = name, .dtype_name = "F32", .rank = rank, .shape = {a, b, c, d}, .data = data};
}

static inline void write_file(const char *path, const fd_safetensor *tensors, int32_t count,
                              const fd_metadata *metadata, int32_t num_metadata)
{
    char why[1024];
    cr_assert(fd_safetensors_write(path, tensors, count, metadata, num_metadata, why, sizeof why) == FD_OK, "%s", why);
}

#endif /* FD_TEST_DUMP_H */
