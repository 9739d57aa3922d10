/* case_index.c: index.csv of a folder of cases. It is written last: a folder without one is not whole. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "case_file.h"
#include "commands.h"
#include "csv.h"
#include "dump.h"

#define NAME "index.csv"

fd_status fd_case_index_write(const char *folder, const fd_case *const *cases, int32_t count, char *why, size_t n)
{
    char path[4200], letters[4];
    fd_csv csv;
    snprintf(path, sizeof path, "%s/" NAME, folder);
    const fd_status status = fd_csv_open(&csv, path, why, n);
    if (status != FD_OK) {
        return status;
    }
    fprintf(csv.file, "# fd-dump %d, cases %d\n", FD_DUMP_VERSION, FD_CASE_TABLE_VERSION);
    fputs("file,case,family,dtypes,batch,heads_q,heads_kv,head_dim,head_dim_v,q_len,kv_len,window_right,bytes\n",
          csv.file);
    for (int32_t i = 0; i < count; i++) {
        const fd_case *c = cases[i];
        char name[160];
        fd_case_file_name(i + 1, c, name, sizeof name);
        fprintf(csv.file, "%s,", name);
        fd_csv_field(csv.file, c->name);
        fprintf(csv.file, ",%s,%s,%d,%d,%d,%d,%d,%d,%d,%d,%lld\n", c->family, fd_dtype_letters(c, letters), c->batch,
                c->heads_q, c->heads_kv, c->head_dim, c->head_dim_v, c->q_len > 0 ? c->q_len : 1, c->kv_len,
                c->causal ? c->ahead : -1, (long long)fd_case_file_bytes(c));
    }
    return fd_csv_commit(&csv, why, n);
}

static fd_status add(fd_case_index *index, int32_t *capacity, const char *path, int line, char *text, char *why,
                     size_t n)
{
    char *comma = strchr(text, ','), *end = comma != NULL ? strchr(comma + 1, ',') : NULL;
    if (end == NULL || (size_t)(comma - text) >= sizeof index->entries->file ||
        (size_t)(end - comma) > sizeof index->entries->name) {
        return fd_safetensors_refuse(path, why, n, "line %d is not file,case,...; write the folder anew", line);
    }
    *comma = *end = '\0';
    if (!fd_case_file_is_name(text) || strchr(text, '/') != NULL) {
        return fd_safetensors_refuse(path, why, n, "line %d names '%.100s', which is no file of a case", line, text);
    }
    if (index->count == *capacity) {
        *capacity = *capacity > 0 ? 2 * *capacity : 256;
        fd_case_entry *entries = realloc(index->entries, (size_t)*capacity * sizeof *entries);
        if (entries == NULL) {
            fd_safetensors_refuse(path, why, n, "no memory for its lines");
            return FD_NO_MEMORY;
        }
        index->entries = entries;
    }
    fd_case_entry *entry = &index->entries[index->count++];
    memcpy(entry->file, text, (size_t)(comma - text) + 1);
    memcpy(entry->name, comma + 1, (size_t)(end - comma));
    return FD_OK;
}

fd_status fd_case_index_read(const char *folder, fd_case_index *index, char *why, size_t n)
{
    char path[4200], text[1024];
    int version = 0, cases = 0;
    int32_t capacity = 0;
    fd_status status = FD_OK;
    *index = (fd_case_index){.entries = NULL};
    snprintf(path, sizeof path, "%s/" NAME, folder);
    struct stat is;
    if (stat(path, &is) == 0 && !S_ISREG(is.st_mode)) { /* opening a pipe waits for who writes into it */
        return fd_safetensors_refuse(path, why, n, "is no regular file; write the folder anew");
    }
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return errno == ENOENT
                   ? fd_safetensors_refuse(folder, why, n,
                                           "there is no " NAME " in it, which `flashdecode cases` writes "
                                           "last; run that to its end")
                   : fd_safetensors_refuse(path, why, n, "cannot be read: %s; check its permissions", strerror(errno));
    }
    if (fgets(text, sizeof text, file) == NULL || sscanf(text, "# fd-dump %d, cases %d", &version, &cases) != 2 ||
        version != FD_DUMP_VERSION || cases != FD_CASE_TABLE_VERSION) {
        status = fd_safetensors_refuse(path, why, n,
                                       "of fd-dump %d, cases %d; this program has %d, %d: write the folder anew",
                                       version, cases, FD_DUMP_VERSION, FD_CASE_TABLE_VERSION);
    }
    for (int line = 2; status == FD_OK && fgets(text, sizeof text, file) != NULL; line++) {
        if (line > 2) {
            status = add(index, &capacity, path, line, text, why, n);
        }
    }
    fclose(file);
    if (status == FD_OK && index->count == 0) {
        status = fd_safetensors_refuse(path, why, n, "names no case; write the folder anew");
    }
    if (status != FD_OK) {
        fd_case_index_free(index);
    }
    return status;
}

void fd_case_index_free(fd_case_index *index)
{
    free(index->entries);
    *index = (fd_case_index){.entries = NULL};
}
