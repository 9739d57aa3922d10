/* trial_dump.c: the verdict on tensors: a folder of cases, whose inputs are made again, or a file with a problem of its
 * own. */
#include <stdlib.h>
#include <sys/stat.h>

#include "case_file.h"
#include "commands.h"
#include "dump_pair.h"
#include "given.h"
#include "text.h"
#include "trial.h"

/* The command line wins over the file. */
static fd_status set_claims(fd_given_court *c, const fd_dump_pair *files)
{
    const fd_trial_options *o = &c->trial->options;
    fd_status status = FD_OK;
    if (o->declared) {
        c->claims = o->claims;
    } else {
        status = fd_dump_pair_claims(files, &c->claims, c->why, c->n);
    }
    fd_given_math(&c->claims);
    return status;
}

/* ---- A case ------------------------------------------------------------------------------------ */

static fd_status skip(fd_given_court *c, const fd_trial_line *line, const char *reason)
{
    fd_trial_line skipped = *line;
    skipped.verdict = FD_SKIP;
    skipped.seconds = -1.0;
    snprintf(skipped.group, sizeof skipped.group, "tensors");
    snprintf(skipped.reason, sizeof skipped.reason, "%s", reason);
    return fd_trial_add(c->trial, &skipped, NULL);
}

static fd_status judge_case(fd_given_court *c, const fd_case *found_case, const fd_dump_pair *files,
                            fd_trial_line *line)
{
    fd_case the_case = *found_case;
    const int32_t q_len = the_case.q_len > 0 ? the_case.q_len : 1;
    int32_t q_lens[FD_CASE_BATCH_MAX], sequences[FD_CASE_BATCH_MAX];
    const fd_rows rows = {.batch = the_case.batch,
                          .heads_q = the_case.heads_q,
                          .head_dim_v = the_case.head_dim_v,
                          .q_len = q_len,
                          .q_lens = q_lens};
    fd_dumped dumped;
    bool found = false;
    fd_given a = {.o = NULL};
    fd_instance x;
    for (int32_t b = 0; b < the_case.batch; b++) {
        q_lens[b] = q_len;
        sequences[b] = b;
    }
    fd_status status = fd_dump_pair_answer(files, &rows, &dumped, &found, c->why, c->n);
    if (status != FD_OK || !found) {
        return status == FD_OK ? skip(c, line, "no o: not answered") : status;
    }
    status = set_claims(c, files);
    if (status != FD_OK) {
        return status;
    }
    const int64_t row_count = (int64_t)the_case.batch * q_len * the_case.heads_q;
    status = fd_given_new(&a, row_count, the_case.head_dim_v);
    snprintf(c->why, c->n, "%s: no memory for o", line->name);
    if (status == FD_OK) {
        fd_dumped_gather(&dumped, sequences, the_case.batch, q_len, a.o, a.lse);
        a.has_lse = dumped.lse.data != NULL;
        /* What an implementation stores is its own business. */
        the_case.dtype_o = fd_given_type(&a, row_count * the_case.head_dim_v, dumped.o.dtype, the_case.dtype_o, line);
        status = fd_instance_create(&x, &the_case, c->why, c->n);
    }
    if (status != FD_OK) {
        fd_given_free(&a);
        return status;
    }
    if (files->has_file) {
        status = fd_case_file_compare(&files->file, files->path, &x, c->why, c->n);
    }
    if (status == FD_OK && files->has_answers) {
        status = fd_case_file_compare(&files->answers, files->answer_path, &x, c->why, c->n);
    }
    if (status == FD_OK) {
        status = fd_given_judge(c, &x, &a, NULL, line);
    }
    fd_given_free(&a);
    fd_instance_free(&x);
    return status;
}

static const fd_case *case_named(const fd_case_table *table, const char *name)
{
    for (int32_t i = 0; i < table->count; i++) {
        if (strcmp(table->cases[i].name, name) == 0) {
            return &table->cases[i];
        }
    }
    return NULL;
}

static fd_status judge_folder(fd_given_court *c, const fd_case_table *table)
{
    const fd_trial_options *o = &c->trial->options;
    fd_case_index index;
    int32_t chosen = 0;
    fd_status status = fd_case_index_read(o->target, &index, c->why, c->n);
    for (int32_t i = 0; i < index.count && status == FD_OK; i++) {
        const fd_case_entry *e = &index.entries[i];
        const fd_case *x = case_named(table, e->name);
        if (x == NULL) {
            status = fd_safetensors_refuse(o->target, c->why, c->n,
                                           "index.csv names case '%.95s', which is not in this "
                                           "table; write the folder anew",
                                           e->name);
            continue;
        }
        if ((o->case_name != NULL && strcmp(o->case_name, x->name) != 0) ||
            (o->family != NULL && strcmp(o->family, x->family) != 0)) {
            continue;
        }
        char path[4200];
        fd_dump_pair files;
        fd_trial_line line = {.verdict = FD_SKIP};
        chosen++;
        fd_progress("check", i, index.count);
        snprintf(line.name, sizeof line.name, "%s", x->name);
        fd_trial_replay(line.replay, sizeof line.replay, o->target, "", x->name);
        snprintf(path, sizeof path, "%s/%s", o->target, e->file);
        status = fd_dump_pair_open(&files, path, c->why, c->n);
        if (status == FD_OK) {
            status = files.has_file || files.has_answers ? judge_case(c, x, &files, &line)
                                                         : skip(c, &line, "its file is not there");
        }
        fd_dump_pair_close(&files);
    }
    if (status == FD_OK && chosen == 0) {
        status =
            fd_safetensors_refuse(o->target, c->why, c->n, "no case in its index.csv matches; drop --case or --family");
    }
    fd_case_index_free(&index);
    return status;
}

/* ---- A problem of somebody's own --------------------------------------------------------------- */

/* What a file leaves out is taken to be thus; a wrong guess looks like a wrong kernel. */
static void assumed_text(const fd_dump *d, int32_t q_len, char *text, size_t n)
{
    size_t used = 0;
    if (!d->lens_given) {
        used += (size_t)snprintf(text, n, "kv_lens is not given: all %lld slots are visible; ",
                                 (long long)d->problem.kv_capacity);
    }
    if (q_len > 1 && !d->mask_given) {
        used += (size_t)snprintf(text + used, n - used, "causal is not given: no mask; ");
    }
    if (!d->scale_given) {
        used += (size_t)snprintf(text + used, n - used, "sm_scale is not given: 1/sqrt(head_dim), %a; ",
                                 (double)d->problem.sm_scale);
    }
    text[used >= 2 ? used - 2 : 0] = '\0';
}

static fd_status judge_part(fd_given_court *c, const fd_dump *d, const fd_dumped *dumped, const int32_t *sequences,
                            int32_t count, int32_t q_len, bool only)
{
    const fd_dump_part part = {d, sequences, count, q_len};
    fd_trial_line line = {.verdict = FD_SKIP};
    fd_given a = {.o = NULL};
    fd_instance x;
    snprintf(line.name, sizeof line.name, "%.80s", d->path);
    if (!only) {
        snprintf(line.name, sizeof line.name, "%.80s, sequences of q_len %d", d->path, q_len);
    }
    fd_trial_replay(line.replay, sizeof line.replay, d->path, "", NULL);
    assumed_text(d, q_len, line.notes, sizeof line.notes);
    const int64_t row_count = (int64_t)count * q_len * d->problem.heads_q;
    fd_status status = fd_given_new(&a, row_count, d->problem.head_dim_v);
    snprintf(c->why, c->n, "%s: no memory for o", line.name);
    if (status == FD_OK) {
        fd_dumped_gather(dumped, sequences, count, q_len, a.o, a.lse);
        a.has_lse = dumped->lse.data != NULL;
        const int32_t dtype_o =
            fd_given_type(&a, row_count * d->problem.head_dim_v, dumped->o.dtype, d->problem.q.dtype, &line);
        status = fd_dump_instance(&part, line.name, dtype_o, &x, c->why, c->n);
    }
    if (status == FD_OK) {
        status = fd_given_judge(c, &x, &a, sequences, &line);
        fd_instance_free(&x);
    }
    fd_given_free(&a);
    return status;
}

/* Sequences of one q_len at a time: a problem of fd.h has one. Those of no row have nothing to judge. */
static fd_status judge_own(fd_given_court *c, const fd_dump_pair *files)
{
    fd_dump d;
    fd_dumped dumped;
    bool found = false;
    fd_status status = fd_dump_read(&files->file, files->path, &d, c->why, c->n);
    if (status != FD_OK) {
        return status;
    }
    int32_t *sequences = calloc((size_t)d.problem.batch + 1, sizeof *sequences);
    status = fd_dump_pair_answer(files, &d.rows, &dumped, &found, c->why, c->n);
    if (status == FD_OK && !found) {
        status = fd_safetensors_refuse(files->path, c->why, c->n, "there is no tensor o to judge; add it");
    }
    status = status == FD_OK ? set_claims(c, files) : status;
    if (status == FD_OK && sequences == NULL) {
        snprintf(c->why, c->n, "no memory for a list of sequences");
        status = FD_NO_MEMORY;
    }
    for (int32_t q_len = 1; q_len <= d.problem.q_len && status == FD_OK; q_len++) {
        int32_t count = 0, rest = 0;
        for (int32_t b = 0; b < d.problem.batch; b++) {
            if (d.q_lens[b] == q_len) {
                sequences[count++] = b;
            } else {
                rest += d.q_lens[b] > 0;
            }
        }
        if (count > 0) {
            status = judge_part(c, &d, &dumped, sequences, count, q_len, rest == 0);
        }
    }
    free(sequences);
    fd_dump_free(&d);
    return status;
}

static fd_status judge_file(fd_given_court *c, const fd_case_table *table)
{
    const fd_trial_options *o = &c->trial->options;
    fd_dump_pair files;
    fd_status status = fd_dump_pair_open(&files, o->target, c->why, c->n);
    if (status == FD_OK && !files.has_file) {
        return fd_safetensors_refuse(o->target, c->why, c->n, "no such file; check the path");
    }
    const char *name = status == FD_OK ? fd_safetensors_metadata(&files.file, "case") : NULL;
    if (status == FD_OK && (o->case_name != NULL || o->family != NULL)) {
        status =
            fd_safetensors_refuse(o->target, c->why, c->n, "--case and --family choose from a folder, not in a file");
    }
    if (status == FD_OK && name == NULL) {
        status = judge_own(c, &files);
    } else if (status == FD_OK) {
        const fd_case *x = case_named(table, name);
        fd_trial_line line = {.verdict = FD_SKIP};
        if (x == NULL) {
            status = fd_safetensors_refuse(o->target, c->why, c->n,
                                           "metadata case '%.95s' is not in this table; drop it, or "
                                           "write the file anew",
                                           name);
        } else {
            snprintf(line.name, sizeof line.name, "%s", x->name);
            fd_trial_replay(line.replay, sizeof line.replay, o->target, "", NULL);
            status = judge_case(c, x, &files, &line);
        }
    }
    fd_dump_pair_close(&files);
    return status;
}

fd_status fd_trial_dump(fd_trial *trial, char *why, size_t n)
{
    const fd_trial_options *o = &trial->options;
    const fd_libm_error libm = fd_libm_error_get(NULL);
    fd_given_court c = {.trial = trial,
                        .rounding = fd_host_rounding(&libm),
                        .highest = o->highest < FD_TIER_STATISTICAL ? o->highest : FD_TIER_STATISTICAL,
                        .suspects = FD_ALL_SUSPECTS,
                        .why = why,
                        .n = n};
    char path[512];
    struct stat is;
    fd_case_table table = {0};
    if (o->lowest == FD_TIER_METAMORPHIC) {
        snprintf(why, n, "%s: --level metamorphic needs a plug-in, which can be run again", o->target);
        return FD_INVALID;
    }
    if (stat(o->target, &is) != 0) {
        return fd_safetensors_refuse(o->target, why, n, "no such file or folder; check the path");
    }
    snprintf(trial->implementation, sizeof trial->implementation, "%s", o->target);
    fd_text_clean(trial->implementation);
    snprintf(trial->place, sizeof trial->place, "file");
    fd_print_hypotheses(&libm);
    fd_status status = fd_cases_read(fd_data_path("cases.csv", path, sizeof path), &table, why, n);
    if (status == FD_OK) {
        status = S_ISDIR(is.st_mode) ? judge_folder(&c, &table) : judge_file(&c, &table);
    }
    if (status == FD_OK && c.diagnosed > 1) {
        fd_votes_text(&c.votes, c.suspects, trial->over_all, sizeof trial->over_all);
    }
    fd_cases_free(&table);
    return status;
}
