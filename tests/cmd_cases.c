/* `flashdecode cases`: the inputs of cases as files, for programs in any language. */
#define _POSIX_C_SOURCE 200809L

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "case_file.h"
#include "commands.h"
#include "options.h"
#include "trial_cases.h"

typedef struct options {
    const char *folder, *case_name, *family;
    int size;
    int32_t dtype; /* of q, k and v; -1: any */
    bool smoke;
} options;

static const char usage[] = "usage: flashdecode cases DIR [options]\n"
                            "Writes the inputs of cases into DIR, as safetensors, a file each: q, k, v,\n"
                            "kv_lens, sm_scale and window_right. Your program adds o, and lse, to the file,\n"
                            "or writes them to NAME.out.safetensors beside it; `flashdecode check DIR`\n"
                            "judges them. tutorials/dumps.md has examples.\n\n"
                            "  --smoke         a case of each family, type and kind of batch\n"
                            "  --size SIZE     small, class or full (default small)\n"
                            "  --family NAME   only this family of cases\n"
                            "  --case NAME     only this case\n"
                            "  --dtype TYPE    only cases whose q, k and v are fp32, fp16 or bf16\n"
                            "  --help\n\n"
                            "Exit code: 0 all is written, 2 usage or bad input, a full disk included.\n";

/* -1: go on; else the exit code, and everything is said. */
static int parse(int argc, char **argv, options *o)
{
    static const char *const dtypes[] = {"fp32", "fp16", "bf16", NULL}; /* by fd_dtype */
    *o = (options){.size = FD_SMALL, .dtype = -1};
    const fd_option table[] = {
        fd_operand(fd_opt_text("DIR", &o->folder)),
        fd_opt_flag("smoke", &o->smoke),
        fd_opt_size(&o->size),
        fd_opt_text("family", &o->family),
        fd_opt_text("case", &o->case_name),
        fd_opt_word("dtype", &o->dtype, dtypes),
        {.name = NULL},
    };
    const int parsed = fd_options_parse(argc, argv, usage, table);
    o->size = o->case_name != NULL ? FD_FULL : o->size;
    return parsed;
}

static bool wanted(const options *o, const fd_case *c)
{
    return c->size <= o->size && (o->case_name == NULL || strcmp(o->case_name, c->name) == 0) &&
           (o->family == NULL || strcmp(o->family, c->family) == 0) &&
           (o->dtype < 0 || (c->dtype_q == o->dtype && c->dtype_kv == o->dtype));
}

/* One of these is enough for a smoke test: bugs of ragged batches, empty caches and several rows show only there. */
static bool alike(const fd_case *x, const fd_case *y)
{
    return strcmp(x->family, y->family) == 0 && x->dtype_kv == y->dtype_kv && (x->q_len > 1) == (y->q_len > 1) &&
           fd_case_has_empty(x) == fd_case_has_empty(y) && (x->batch > 1) == (y->batch > 1);
}

/* Does x tell more in a smoke test than y: as many keys as just exceed a tile, then few bytes? */
static bool tells_more(const fd_case *x, const fd_case *y)
{
    const int32_t far_x = abs(x->kv_len - FD_SMOKE_KEYS), far_y = abs(y->kv_len - FD_SMOKE_KEYS);
    return far_x != far_y ? far_x < far_y : fd_case_file_bytes(x) < fd_case_file_bytes(y);
}

/* The cases, in the order of the table; with --smoke, one of each sort. */
static int32_t choose(const options *o, const fd_case_table *table, const fd_case **chosen)
{
    int32_t count = 0;
    for (int32_t i = 0; i < table->count; i++) {
        const fd_case *c = &table->cases[i];
        int32_t place = count;
        if (!wanted(o, c)) {
            continue;
        }
        for (int32_t k = 0; k < count && o->smoke; k++) {
            place = alike(chosen[k], c) ? k : place;
        }
        if (place == count || tells_more(c, chosen[place])) {
            chosen[place] = c;
        }
        count += place == count;
    }
    return count;
}

/* A folder that is not there is made; one that is holds nothing, or what an interrupted run left. */
static fd_status prepare(const char *folder, char *why, size_t n)
{
    if (mkdir(folder, 0777) == 0) {
        return FD_OK;
    }
    DIR *d = errno == EEXIST ? opendir(folder) : NULL;
    if (d == NULL) {
        return fd_safetensors_refuse(folder, why, n, "cannot be made or read: %s; name a folder that can be written",
                                     strerror(errno));
    }
    fd_status status = FD_OK;
    for (struct dirent *e; status == FD_OK && (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, "index.csv") == 0) {
            status = fd_safetensors_refuse(folder, why, n, "holds cases already; remove it, or name another folder");
        } else if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && !fd_case_file_is_name(e->d_name)) {
            status = fd_safetensors_refuse(
                folder, why, n, "holds '%.100s', which is none of these files; name an empty folder", e->d_name);
        }
    }
    closedir(d);
    return status;
}

static fd_status write_all(const options *o, const fd_case *const *cases, int32_t count, char *why, size_t n)
{
    fd_status status = FD_OK;
    for (int32_t i = 0; i < count && status == FD_OK; i++) {
        char name[160], path[4200];
        fd_instance instance;
        fd_progress("cases", i, count);
        fd_case_file_name(i + 1, cases[i], name, sizeof name);
        snprintf(path, sizeof path, "%s/%s", o->folder, name);
        status = fd_instance_create(&instance, cases[i], why, n);
        if (status == FD_OK) {
            status = fd_case_file_write(path, &instance, why, n);
            fd_instance_free(&instance);
        }
    }
    fd_progress("", 1, 1);
    return status == FD_OK ? fd_case_index_write(o->folder, cases, count, why, n) : status;
}

int fd_cmd_cases(int argc, char **argv)
{
    options o;
    const int parsed = parse(argc, argv, &o);
    if (parsed >= 0) {
        return parsed;
    }
    char why[1024] = "", path[512];
    fd_case_table table = {0};
    const fd_case **chosen = NULL;
    int64_t bytes = 0;
    int32_t count = 0;
    fd_status status = fd_cases_read(fd_data_path("cases.csv", path, sizeof path), &table, why, sizeof why);
    if (status == FD_OK) {
        chosen = calloc((size_t)table.count + 1, sizeof *chosen);
        status = chosen != NULL ? FD_OK : FD_NO_MEMORY;
        snprintf(why, sizeof why, "no memory for the list of cases");
    }
    if (status == FD_OK && (count = choose(&o, &table, chosen)) == 0) {
        snprintf(why, sizeof why, "no case matches; flashdecode oracle --list names them");
        status = FD_INVALID;
    }
    if (status == FD_OK) {
        status = prepare(o.folder, why, sizeof why);
    }
    if (status == FD_OK) {
        for (int32_t i = 0; i < count; i++) {
            bytes += fd_case_file_bytes(chosen[i]);
        }
        printf("%d cases, %.1f MB, into %s\n", count, (double)bytes * 1e-6, o.folder);
        fflush(stdout);
        status = write_all(&o, chosen, count, why, sizeof why);
    }
    if (status == FD_OK) {
        printf("Next: add o, and lse, to each; then %s check %s\n", fd_program, o.folder);
    } else {
        fprintf(stderr, "cases: %s\n", why);
    }
    free(chosen);
    fd_cases_free(&table);
    return status == FD_OK ? FD_EXIT_PASS : FD_EXIT_USAGE;
}
